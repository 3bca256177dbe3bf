package payment

import (
	"math"
	"testing"
)

// Every row of Stripe's table of currencies (stripe.md 3.6).
func TestDecimals(t *testing.T) {
	for decimals, codes := range map[int][]string{
		0: {"bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf", "JPY"},
		2: {"eur", "usd", "isk", "ugx", "huf", "twd", "inr", "USD", "xyz", ""},
		3: {"bhd", "jod", "kwd", "omr", "tnd", "KWD"},
	} {
		for _, code := range codes {
			if got := Decimals(code); got != decimals {
				t.Errorf("Decimals(%q) = %d; want %d", code, got, decimals)
			}
		}
	}
}

func TestFormatMinor(t *testing.T) {
	for _, tt := range []struct {
		amount   int64
		currency string
		want     string
	}{
		{1250, "eur", "12.50 EUR"},
		{0, "eur", "0.00 EUR"},
		{5, "eur", "0.05 EUR"},
		{-5, "eur", "-0.05 EUR"},
		{-1250, "usd", "-12.50 USD"},
		{500, "jpy", "500 JPY"},
		{0, "jpy", "0 JPY"},
		{500, "isk", "5.00 ISK"},
		{1230, "kwd", "1.230 KWD"},
		{7, "kwd", "0.007 KWD"},
		{9007199254740993, "eur", "90071992547409.93 EUR"},
		{math.MaxInt64, "eur", "92233720368547758.07 EUR"},
		{math.MinInt64, "eur", "-92233720368547758.08 EUR"},
		{100, "", "1.00"},
	} {
		if got := FormatMinor(tt.amount, tt.currency); got != tt.want {
			t.Errorf("FormatMinor(%d, %q) = %q; want %q", tt.amount, tt.currency, got, tt.want)
		}
	}
}

// B32 and B34: amounts that other programs multiplied by a float.
func TestParseMajor(t *testing.T) {
	for _, tt := range []struct {
		text, currency string
		want           int64
		ok             bool
	}{
		{"19.99", "eur", 1999, true},
		{"9.95", "eur", 995, true},
		{"8.20", "eur", 820, true},
		{"8.2", "eur", 820, true},
		{"1.15", "eur", 115, true},
		{"0.29", "eur", 29, true},
		{"4.35", "eur", 435, true},
		{"12", "EUR", 1200, true},
		{"0", "eur", 0, true},
		{"007", "eur", 700, true},
		{"200", "jpy", 200, true},
		{"5", "isk", 500, true},
		{"1.234", "kwd", 1234, true},
		{"90071992547409.93", "eur", 9007199254740993, true},
		{"92233720368547758.07", "eur", math.MaxInt64, true},
		{"92233720368547758.08", "eur", 0, false},
		{"1,50", "eur", 0, false},
		{"1.005", "eur", 0, false},
		{"-1", "eur", 0, false},
		{"+1", "eur", 0, false},
		{"1e2", "eur", 0, false},
		{"", "eur", 0, false},
		{".5", "eur", 0, false},
		{"5.", "eur", 0, false},
		{".", "eur", 0, false},
		{"1.2.3", "eur", 0, false},
		{" 1", "eur", 0, false},
		{"1 ", "eur", 0, false},
		{"1_000", "eur", 0, false},
		{"0x10", "eur", 0, false},
		{"١", "eur", 0, false},
		{"2.50", "jpy", 0, false},
		{"2.0", "jpy", 0, false},
		{"1.00", "xyz", 0, false},
		{"1.00", "", 0, false},
	} {
		got, err := ParseMajor(tt.text, tt.currency)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseMajor(%q, %q) = %d, %v; want %d, ok %v", tt.text, tt.currency, got, err, tt.want, tt.ok)
		}
	}
}

// What FormatMinor writes, ParseMajor reads.
func TestParseMajorReadsFormatMinor(t *testing.T) {
	for _, currency := range []string{"eur", "jpy", "kwd", "isk"} {
		for _, amount := range []int64{0, 1, 9, 10, 99, 100, 101, 999, 1000, 1001, 99999999, math.MaxInt64} {
			text := FormatMinor(amount, currency)
			got, err := ParseMajor(text[:len(text)-len(" EUR")], currency)
			if err != nil || got != amount {
				t.Errorf("%q came back as %d, %v; want %d", text, got, err, amount)
			}
		}
	}
}

func TestValidateAmount(t *testing.T) {
	for _, tt := range []struct {
		name     string
		amount   int64
		currency string
		ok       bool
	}{
		{"an amount", 1250, "eur", true},
		{"nothing", 0, "eur", true},
		{"less than nothing", -1, "eur", false},
		{"eight digits", 99999999, "eur", true},
		{"nine digits", 100000000, "eur", false},
		{"a currency in upper case", 1250, "EUR", false},
		{"a currency nobody knows", 1250, "xyz", false},
		{"no currency", 1250, "", false},
		{"yen", 501, "jpy", true},
		{"whole krónur", 500, "isk", true},
		{"half a króna", 550, "isk", false},
		{"a shilling and a bit", 101, "ugx", false},
		{"forint with two decimals", 1255, "huf", true},
		{"dinar that ends in 0", 1230, "kwd", true},
		{"dinar that does not", 1234, "kwd", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := ValidateAmount(tt.amount, tt.currency); (err == nil) != tt.ok {
				t.Errorf("ValidateAmount(%d, %q) = %v; want ok %v", tt.amount, tt.currency, err, tt.ok)
			}
		})
	}
}
