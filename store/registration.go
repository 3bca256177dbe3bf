package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"paidonce/store/payment"
)

// mainTenant is where orders and events are unless they say otherwise.
const mainTenant = "main"

const maxIDBytes = 255

var tenantPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// registration is a NewOrder with its defaults filled in and its spelling
// fixed, so that the same order sent twice is the same bytes.
type registration struct {
	Tenant        string            `json:"tenant"`
	ID            string            `json:"id"`
	TotalMinor    int64             `json:"total_minor"`
	Currency      string            `json:"currency"`
	AmountPolicy  payment.Policy    `json:"amount_policy"`
	AllowDiscount bool              `json:"allow_discount"`
	PaymentIntent string            `json:"payment_intent,omitempty"`
	Refs          []string          `json:"refs"`
	Items         []Item            `json:"items"`
	Customer      Customer          `json:"customer"`
	Metadata      map[string]string `json:"metadata"`
	Checkout      *Checkout         `json:"checkout,omitempty"`
}

// fingerprint is the SHA-256 of the registration: enough to tell "the same
// again" from "other content", and no second copy of a customer's data.
func (r registration) fingerprint() string {
	sum := sha256.Sum256([]byte(jsonText(r)))
	return hex.EncodeToString(sum[:])
}

// problems gathers what is wrong, by field.
type problems []FieldProblem

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, FieldProblem{field, fmt.Sprintf(format, args...)})
}

func (p problems) err() error { return p.invalid("order") }

// invalid returns the Problem of a what that has some.
func (p problems) invalid(what string) error {
	if len(p) == 0 {
		return nil
	}
	fields := make([]string, len(p))
	for i, f := range p {
		fields[i] = f.Field + ": " + f.Problem
	}
	return &Problem{Code: CodeInvalid, Message: "invalid " + what + ": " + strings.Join(fields, "; "), Fields: p}
}

// newRegistration checks n and fills in what it leaves out. The error is a
// Problem that names every wrong field, and none of their contents.
func newRegistration(n NewOrder) (registration, error) {
	r := registration{
		Tenant: n.Tenant, ID: n.ID, AmountPolicy: payment.PolicyExact,
		Refs: []string{}, Items: []Item{}, Metadata: map[string]string{},
	}
	var bad problems
	if r.Tenant == "" {
		r.Tenant = mainTenant
	}
	if !tenantPattern.MatchString(r.Tenant) {
		bad.add("tenant", "must be 1 to 64 letters, digits, dots, dashes or underscores")
	}
	checkID(&bad, "id", r.ID)
	if n.TotalMinor == nil {
		bad.add("total_minor", "is required: the order's total in minor units, such as 1250 for 12.50 EUR")
	}
	if n.Currency == nil {
		bad.add("currency", "is required: a three-letter code such as eur")
	}
	r.merge(n, &bad)
	if n.PaymentIntent != nil {
		r.PaymentIntent = *n.PaymentIntent
		checkID(&bad, "payment_intent", r.PaymentIntent)
	}
	for i, ref := range n.Refs {
		checkID(&bad, fmt.Sprintf("refs[%d]", i), ref)
	}
	r.Refs = append(r.Refs, n.Refs...)
	slices.Sort(r.Refs)
	r.Refs = slices.Compact(r.Refs)
	checkCheckout(&bad, n.Checkout)
	r.Checkout = n.Checkout
	return r, bad.err()
}

// merge takes over the fields of n that an edit may change, and checks the
// result.
func (r *registration) merge(n NewOrder, bad *problems) {
	if n.TotalMinor != nil {
		r.TotalMinor = *n.TotalMinor
	}
	if n.Currency != nil {
		r.Currency = strings.ToLower(*n.Currency)
	}
	switch {
	case r.TotalMinor < 0:
		bad.add("total_minor", "must not be negative")
	case r.Currency != "" && (n.TotalMinor != nil || n.Currency != nil):
		if err := payment.ValidateAmount(r.TotalMinor, r.Currency); err != nil {
			field := "total_minor"
			if payment.ValidateAmount(0, r.Currency) != nil {
				field = "currency"
			}
			bad.add(field, "%s", err.Error())
		}
	case n.Currency != nil:
		bad.add("currency", "must not be empty")
	}
	if n.AmountPolicy != nil {
		r.AmountPolicy = payment.Policy(*n.AmountPolicy)
		switch r.AmountPolicy {
		case payment.PolicyExact, payment.PolicyAtLeast, payment.PolicyAny, payment.PolicySubtotal:
		default:
			bad.add("amount_policy", "must be exact, at_least, any or subtotal")
		}
	}
	if n.AllowDiscount != nil {
		r.AllowDiscount = *n.AllowDiscount
	}
	if n.Items != nil {
		r.Items = slices.Clone(n.Items)
		checkItems(bad, r.Items)
	}
	if n.Customer != nil {
		r.Customer = *n.Customer
		checkCustomer(bad, r.Customer)
	}
	if n.Metadata != nil {
		r.Metadata = maps.Clone(n.Metadata)
		checkMetadata(bad, r.Metadata)
	}
}

func checkID(bad *problems, field, id string) {
	switch {
	case id == "":
		bad.add(field, "must not be empty")
	case len(id) > maxIDBytes:
		bad.add(field, "must be at most %d bytes", maxIDBytes)
	case !printable(id):
		bad.add(field, "must be printable text without control characters")
	case id == "." || id == "..":
		bad.add(field, "must not be a dot or two: no URL can name it")
	case strings.TrimSpace(id) != id:
		bad.add(field, "must not begin or end with a space")
	}
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// checkNote bounds what a person writes beside an act.
func checkNote(bad *problems, note string) {
	if len(note) > 500 || !printable(note) {
		bad.add("note", "must be at most 500 bytes of printable text")
	}
}

func checkItems(bad *problems, items []Item) {
	for i, it := range items {
		at := func(name string) string { return fmt.Sprintf("items[%d].%s", i, name) }
		checkID(bad, at("sku"), it.SKU)
		if it.Quantity < 1 || it.Quantity > math.MaxInt32 {
			bad.add(at("quantity"), "must be a whole number from 1 to %d", math.MaxInt32)
		}
		if it.UnitMinor < 0 {
			bad.add(at("unit_minor"), "must not be negative")
		}
		if !printable(it.Name) || len(it.Name) > 500 {
			bad.add(at("name"), "must be at most 500 bytes of printable text")
		}
	}
}

func checkCustomer(bad *problems, c Customer) {
	if c.Email != "" {
		if a, err := mail.ParseAddress(c.Email); err != nil || a.Address != c.Email || len(c.Email) > 254 {
			bad.add("customer.email", "must be an address such as name@example.com")
		}
	}
	if !printable(c.Name) || len(c.Name) > 500 {
		bad.add("customer.name", "must be at most 500 bytes of printable text")
	}
}

func checkMetadata(bad *problems, m map[string]string) {
	if len(m) > 50 {
		bad.add("metadata", "must have at most 50 keys")
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if k == "" || len(k) > 40 || !printable(k) {
			bad.add("metadata", "keys must be 1 to 40 bytes of printable text")
		}
		if len(m[k]) > 500 || !utf8.ValidString(m[k]) {
			bad.add("metadata", "values must be at most 500 bytes of text")
		}
	}
}
