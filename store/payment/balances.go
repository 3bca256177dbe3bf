package payment

import (
	"cmp"
	"slices"
	"strings"
)

// balances applies rule 7: what each object comes to in each account. The money
// of a payment that is not accepted stands in suspense, with its refunds and
// disputes, under the same objects, so that linking or accepting it moves the
// same amounts to their accounts. Sorted, without zeros.
func balances(payments []*tally) []Balance {
	type place struct {
		scope, object string
		account       Account
		currency      string
	}
	sums := make(map[place]Balance)
	for _, t := range payments {
		for _, line := range t.lines {
			if line.Currency == "" {
				continue
			}
			if !t.Accepted {
				line.Account = AccountSuspense
			}
			at := place{line.Scope, line.Object, line.Account, line.Currency}
			if sum, ok := sums[at]; ok {
				line.AmountMinor = add(line.AmountMinor, sum.AmountMinor)
				line.OccurredAt = earliest(line.OccurredAt, sum.OccurredAt)
			}
			sums[at] = line
		}
	}
	var list []Balance
	for _, b := range sums {
		if b.AmountMinor != 0 {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b Balance) int {
		return cmp.Or(
			strings.Compare(a.Scope, b.Scope),
			strings.Compare(a.Object, b.Object),
			strings.Compare(string(a.Account), string(b.Account)),
			strings.Compare(a.Currency, b.Currency),
		)
	})
	return list
}
