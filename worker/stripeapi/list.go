package stripeapi

import (
	"context"

	"github.com/stripe/stripe-go/v82"

	"paidonce/store"
)

const (
	pageSize = 100
	// maxPages ends a look-up that cannot end by itself.
	maxPages = 200
)

// each visits the items of a list, newest first, page by page, until visit
// wants no more. The library's own paging is not used: it panics on an empty
// page that promises more, and hides has_more. It returns the last page's head.
func each[T any](ctx context.Context, c *Client, name, account string,
	list func(context.Context, stripe.ListParams) stripe.Seq2[T, error], visit func(T) (goOn bool)) (head, *Error) {
	after := ""
	for range maxPages {
		p := stripe.ListParams{Limit: stripe.Int64(pageSize), Single: true, StripeAccount: accountHeader(account)}
		if after != "" {
			p.StartingAfter = stripe.String(after)
		}
		var items []T
		h, e := c.call(ctx, request{name: name, object: "list"}, func(ctx context.Context) error {
			for item, err := range list(ctx, p) {
				if err != nil {
					return err
				}
				items = append(items, item)
			}
			return nil
		})
		if e != nil {
			return head{}, e
		}
		for _, item := range items {
			if !visit(item) {
				return h, nil
			}
		}
		if !h.HasMore {
			return h, nil
		}
		after = h.Data[len(h.Data)-1].ID
	}
	return head{}, &Error{Outcome: store.OutcomeAgain, text: "stripe: " + name + ": there are too many to look through"}
}

// accountHeader is Stripe-Account: the connected account that a call is made
// for; nil is the key's own.
func accountHeader(account string) *string {
	if account == "" {
		return nil
	}
	return stripe.String(account)
}
