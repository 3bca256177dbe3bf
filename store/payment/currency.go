package payment

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxChargeMinor is the largest amount that Stripe takes: eight digits.
const maxChargeMinor = 99_999_999

// currencies are the codes that Stripe takes, with the decimals of their minor
// unit. This is Stripe's table, not ISO's or CLDR's: HUF and TWD have two
// decimals in charges, and ISK and UGX, which have no minor unit, are still
// sent times a hundred.
var currencies = func() map[string]int {
	table := make(map[string]int)
	for decimals, codes := range map[int]string{
		0: `bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf`,
		2: `aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd btn bwp byn bzd cad cdf chf
			cny cop crc cve czk dkk dop dzd eek egp etb eur fjd fkp gbp gel ghs gip gmd gtq gyd hkd hnl hrk htg huf
			idr ils inr isk jmd kes kgs khr kyd kzt lak lbp lkr lrd lsl ltl lvl mad mdl mkd mmk mnt mop mro mru mur
			mvr mwk mxn myr mzn nad ngn nio nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sek sgd
			shp sle sll sos srd std stn svc szl thb tjs top try ttd twd tzs uah ugx usd uyu uzs vef wst xcd xcg yer
			zar zmw`,
		3: `bhd jod kwd omr tnd`,
	} {
		for _, code := range strings.Fields(codes) {
			table[code] = decimals
		}
	}
	return table
}()

// wholeUnits are sent times a hundred and must end in 00.
var wholeUnits = map[string]bool{"isk": true, "ugx": true}

// Decimals is how many decimals the minor unit of a currency has in Stripe's
// amounts; 2 for one that Stripe does not know.
func Decimals(currency string) int {
	if n, ok := currencies[strings.ToLower(currency)]; ok {
		return n
	}
	return 2
}

// FormatMinor writes an amount in major units with its currency, exactly:
// "12.50 EUR", "500 JPY", "-1.234 KWD".
func FormatMinor(amount int64, currency string) string {
	digits := strconv.FormatInt(amount, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	if n := Decimals(currency); n > 0 {
		if short := n + 1 - len(digits); short > 0 {
			digits = strings.Repeat("0", short) + digits
		}
		digits = digits[:len(digits)-n] + "." + digits[len(digits)-n:]
	}
	return strings.TrimSpace(sign + digits + " " + strings.ToUpper(currency))
}

// ParseMajor reads an amount in major units exactly: "19.99" EUR is 1999. It
// takes digits and one point and nothing else: no sign, no exponent, no comma,
// no more decimals than the currency has, as rounding is a decision about money.
func ParseMajor(text, currency string) (int64, error) {
	decimals, ok := currencies[strings.ToLower(currency)]
	if !ok {
		return 0, errUnknownCurrency
	}
	whole, fraction, point := strings.Cut(text, ".")
	if !isDigits(whole) || point && !isDigits(fraction) {
		return 0, errors.New("write an amount like 12.50: digits, with a point before the decimals")
	}
	if len(fraction) > decimals {
		return 0, fmt.Errorf("%s has %d decimals", strings.ToUpper(currency), decimals)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the amount is larger than %s", FormatMinor(math.MaxInt64, currency))
	}
	return n, nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

var errUnknownCurrency = errors.New("no currency that Stripe takes")

// ValidateAmount says why Stripe would not take an amount of minor units of a
// currency in lower case; nil if it would. Zero is fine: an order may be free.
func ValidateAmount(amount int64, currency string) error {
	decimals, ok := currencies[currency]
	switch {
	case !ok:
		return errUnknownCurrency
	case amount < 0:
		return errors.New("an amount is not negative")
	case amount > maxChargeMinor:
		return fmt.Errorf("an amount is at most %s", FormatMinor(maxChargeMinor, currency))
	case wholeUnits[currency] && amount%100 != 0:
		return fmt.Errorf("%s has no minor unit: the amount must end in 00", strings.ToUpper(currency))
	case decimals == 3 && amount%10 != 0:
		return fmt.Errorf("%s is charged in two decimals: the last digit must be 0", strings.ToUpper(currency))
	}
	return nil
}
