package main

import (
	"fmt"
	"math"
	"slices"

	"paidonce/store"
)

// fileStock is [stock] of the TOML file.
type fileStock struct {
	Low            *int64 `toml:"low"`
	ReturnOnRefund *bool  `toml:"return_on_refund"`
}

// fileLink is one [[link]]: what a Payment Link sells.
type fileLink struct {
	ID       *string `toml:"id"`
	SKU      *string `toml:"sku"`
	Quantity *int64  `toml:"quantity"`
}

// stock takes over [stock].
func (f *fileChecker) stock(c *config, stock fileStock) {
	if v := stock.Low; v != nil {
		if *v < 0 || *v > math.MaxInt32 {
			f.wrong("stock.low", "low must be from 0 (off) to %d", math.MaxInt32)
		}
		c.stockLow = *v
	}
	if v := stock.ReturnOnRefund; v != nil {
		c.stockReturn = *v
	}
}

// linksSold takes over [[link]], after [orders].
func (f *fileChecker) linksSold(c *config, links []fileLink) {
	c.links = map[string]store.Item{}
	lines := map[string]string{} // where a link stands
	for i, l := range links {
		path := fmt.Sprintf("link.%d", i)
		item := store.Item{Quantity: 1}
		var id string
		switch {
		case l.ID == nil:
			f.wrong(path, "id is missing: the Payment Link, plink_…")
		case !linkID.MatchString(*l.ID):
			f.wrong(path+".id", "id must be that of a Payment Link: plink_…")
		case lines[*l.ID] != "":
			f.wrong(path+".id", "there is a [[link]] of this id at %s", lines[*l.ID])
		default:
			id = *l.ID
			lines[id] = f.at(path + ".id")
			if !slices.Contains(c.adopt, id) && !slices.Contains(c.adopt, "*") {
				c.warnings = append(c.warnings, f.at(path)+": the link sells nothing: adopt in [orders] does not hold its id")
			}
		}
		switch {
		case l.SKU == nil:
			f.wrong(path, "sku is missing: what the link sells")
		case *l.SKU == "" || len(*l.SKU) > 255 || clean(*l.SKU) != *l.SKU:
			f.wrong(path+".sku", "sku must be 1 to 255 bytes of printable text")
		default:
			item.SKU = *l.SKU
		}
		if v := l.Quantity; v != nil {
			if *v < 1 || *v > math.MaxInt32 {
				f.wrong(path+".quantity", "quantity must be a whole number of at least 1")
			}
			item.Quantity = *v
		}
		if id != "" {
			c.links[id] = item
		}
	}
}

// ruled returns o with what the configuration says of orders and stock. It is
// the same for serve and for the commands beside it: both derive orders.
func (c *config) ruled(o store.Options) store.Options {
	o.Adopt, o.Unlinked, o.Links = c.adopt, c.unlinked, c.links
	o.StockLow, o.StockReturn = c.stockLow, c.stockReturn
	return o
}
