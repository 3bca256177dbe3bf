package store_test

import (
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

func TestAnAdoptedPaymentLinkSellsWhatItsLinkSays(t *testing.T) {
	sold := map[string]store.Item{"plink_1": {SKU: "ebook", Quantity: 2}}
	for _, tt := range []struct {
		name  string
		adopt []string
		link  string
		items int
	}{
		{"its link is configured", []string{"plink_1"}, "plink_1", 1},
		{"every session is adopted", []string{"*"}, "plink_1", 1},
		{"another link", []string{"*"}, "plink_2", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t, func(o *store.Options) { o.Adopt, o.Links = tt.adopt, sold })
			setStock(t, s, "ebook", 5)
			storetest.Register(t, s, "ORD-1", 2500, "eur") // what the buyer and the link's metadata name is no name
			storetest.Deliver(t, s, session("evt_1", "cs_1", tt.link, "pi_1", 1750000000))
			wantOrder(t, s, "ORD-1", "awaiting_payment", 0, 0)
			o := wantOrder(t, s, "cs_1", "paid", 2500, 0)
			if o.Customer != (store.Customer{Email: "ann@example.com", Name: "Ann"}) {
				t.Errorf("customer %+v", o.Customer)
			}
			if len(o.Items) != tt.items || tt.items == 1 && o.Items[0] != sold["plink_1"] {
				t.Errorf("items %+v", o.Items)
			}
			if tt.items == 1 {
				wantStock(t, s, "ebook 3")
			} else {
				wantStock(t, s, "ebook 5")
			}
		})
	}
}
