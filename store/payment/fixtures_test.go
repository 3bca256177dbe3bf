package payment

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fixtures is where a collection of public event bodies lies beside a checkout.
// They are other projects' files and none of ours holds a copy.
const fixtures = "../../../shared/fixtures"

// What public bodies of 2012 to 2026 come to, one line each: what Decode makes
// of the body, and the status of an order that takes any amount and claims the
// object. Those whose type contradicts their object are the negative tests: the
// status follows the object.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(fixtures, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no fixtures beside this checkout: " + fixtures)
	}
	var out strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body, how := asEvent(raw)
		fmt.Fprintf(&out, "%s\n", strings.TrimSuffix(filepath.Base(file), ".json"))
		fmt.Fprintf(&out, "\t%s%s\n", how, describeEvent(Decode(body)))
	}
	golden := filepath.Join("testdata", "payment_fixtures.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is missing; go test -run TestFixtures -update writes it", golden)
	} else if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		var got, want string
		if i < len(gotLines) {
			got = gotLines[i]
		}
		if i < len(wantLines) {
			want = wantLines[i]
		}
		if got != want {
			t.Fatalf("line %d of %s is\n%s\nwant\n%s", i+1, golden, got, want)
		}
	}
}

// asEvent puts an envelope around the fixtures that have none: those that hold
// only what stands under data, and bare objects.
func asEvent(raw []byte) (body []byte, how string) {
	var top struct{ Object any }
	if err := json.Unmarshal(raw, &top); err != nil {
		return raw, ""
	}
	const envelope = `{"id":"evt_fixture","object":"event","type":"fixture","created":1,"livemode":false,"data":%s}`
	switch object := top.Object.(type) {
	case map[string]any:
		return fmt.Appendf(nil, envelope, raw), "as data: "
	case string:
		if object != "event" {
			return fmt.Appendf(nil, envelope, fmt.Sprintf(`{"object":%s}`, raw)), "as object: "
		}
	}
	return raw, ""
}

func describeEvent(ev Event) string {
	if ev.Verdict != "" {
		return fmt.Sprintf("%s: %s (%s %q)", ev.Verdict, ev.Reason, ev.Type, ev.ObjectID)
	}
	f := ev.Fact
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s of %s: class %d %q", f.Kind, f.ID, ev.Type, f.Rank.Class, f.Snapshot.Status)
	for _, a := range []struct {
		name   string
		amount Amount
	}{
		{"amount", f.Snapshot.Amount}, {"received", f.Sticky.Received}, {"captured", f.Sticky.Captured}, {"refunded", f.Snapshot.Refunded},
	} {
		if a.amount.Known {
			fmt.Fprintf(&b, " %s %s", a.name, FormatMinor(a.amount.Minor, f.Snapshot.Currency))
		}
	}
	for _, id := range []struct{ name, value string }{
		{"mode", f.Sticky.Mode}, {"payment_status", f.Sticky.PaymentStatus}, {"intent", f.PaymentIntent()}, {"charge", f.Charge()},
		{"invoice", f.Sticky.Invoice}, {"order", f.OrderName()}, {"reference", f.Reference()}, {"link", f.PaymentLink()},
	} {
		if id.value != "" {
			fmt.Fprintf(&b, " %s %s", id.name, id.value)
		}
	}
	for _, x := range f.Sticky.Transactions {
		fmt.Fprintf(&b, " moved %s", FormatMinor(x.Amount, x.Currency))
	}
	order := &Order{TotalMinor: 1, Currency: f.Snapshot.Currency, Policy: PolicyAny}
	f.Scope = testScope
	fmt.Fprintf(&b, " → %s", Derive(order, []Fact{f}, nil).Status)
	return b.String()
}
