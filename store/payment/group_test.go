package payment

import (
	"reflect"
	"slices"
	"testing"
)

func TestGroup(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bodies [][]byte
		want   map[string][]string // payment → its facts
	}{
		{"a session, its intent, the charge, refund and dispute are one", [][]byte{
			at(0, sessionOf("cs_1")), at(0, intentOf("pi_1")), at(0, chargeOf("ch_1")), at(0, refundOf("re_1")), at(0, disputeOf("dp_1")),
		}, map[string][]string{"pi_1": {"ch_1", "cs_1", "dp_1", "pi_1", "re_1"}}},
		{"two intents are two", [][]byte{
			at(0, intentOf("pi_1")), at(0, intentOf("pi_2", "latest_charge=ch_2")),
		}, map[string][]string{"pi_1": {"pi_1"}, "pi_2": {"pi_2"}}},
		{"a session and a charge meet at an intent that nobody has seen", [][]byte{
			at(0, sessionOf("cs_1")), at(0, chargeOf("ch_1")),
		}, map[string][]string{"pi_1": {"ch_1", "cs_1"}}},
		{"two refunds meet at a charge that nobody has seen", [][]byte{
			at(0, refundOf("re_1", "payment_intent=null")), at(0, refundOf("re_2", "payment_intent=null")),
		}, map[string][]string{"ch_1": {"re_1", "re_2"}}},
		{"a charge without an intent meets the intent that names it (B28)", [][]byte{
			at(0, intentOf("pi_1")), at(0, chargeOf("ch_1", "payment_intent=null")),
		}, map[string][]string{"pi_1": {"ch_1", "pi_1"}}},
		{"a refund meets the intent by its charge's word", [][]byte{
			at(0, refundOf("re_1", "payment_intent=null")), at(0, chargeOf("ch_1")),
		}, map[string][]string{"pi_1": {"ch_1", "re_1"}}},
		{"a refund meets the intent by what a dispute says of the same charge", [][]byte{
			at(0, refundOf("re_1", "payment_intent=null")), at(0, disputeOf("dp_1")),
		}, map[string][]string{"pi_1": {"dp_1", "re_1"}}},
		{"two intents that name the same charge stay two, and the charge has its own word", [][]byte{
			at(0, intentOf("pi_1")), at(0, intentOf("pi_2")), at(0, chargeOf("ch_1", "payment_intent=pi_2")), at(0, refundOf("re_1", "payment_intent=null")),
		}, map[string][]string{"pi_1": {"pi_1"}, "pi_2": {"ch_1", "pi_2", "re_1"}}},
		{"a charge that two intents name and that names none stands alone", [][]byte{
			at(0, intentOf("pi_1")), at(0, intentOf("pi_2")), at(0, intentOf("pi_3")), at(0, chargeOf("ch_1", "payment_intent=null")),
		}, map[string][]string{"pi_1": {"pi_1"}, "pi_2": {"pi_2"}, "pi_3": {"pi_3"}, "ch_1": {"ch_1"}}},
		{"a refund's own intent outranks its charge's", [][]byte{
			at(0, chargeOf("ch_1")), at(0, refundOf("re_1", "payment_intent=pi_2")),
		}, map[string][]string{"pi_1": {"ch_1"}, "pi_2": {"re_1"}}},
		{"a charge alone", [][]byte{at(0, chargeOf("ch_1", "payment_intent=null"))}, map[string][]string{"ch_1": {"ch_1"}}},
		{"a session alone", [][]byte{at(0, sessionOf("cs_1", "payment_intent=null"))}, map[string][]string{"cs_1": {"cs_1"}}},
		{"a refund that points nowhere", [][]byte{
			at(0, refundOf("re_1", "payment_intent=null", "charge=null")),
		}, map[string][]string{"re_1": {"re_1"}}},
		{"nothing", nil, map[string][]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			permutations(len(tt.bodies), func(order []int) {
				var bodies [][]byte
				for _, i := range order {
					bodies = append(bodies, tt.bodies[i])
				}
				got := make(map[string][]string)
				for _, g := range Group(learn(t, bodies...)) {
					for _, f := range g {
						got[KeyOf(g).Object] = append(got[KeyOf(g).Object], f.ID)
					}
				}
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("in the order %v the payments are %v; want %v", order, got, tt.want)
				}
			})
		})
	}
	t.Run("the same ids in another scope are another payment", func(t *testing.T) {
		facts := learn(t, at(0, intentOf("pi_1")))
		there := learn(t, at(0, chargeOf("ch_1")))[0]
		there.Scope = "stripe:acct_9:live"
		groups := Group(append(facts, there))
		if len(groups) != 2 || KeyOf(groups[0]) != (PaymentKey{"stripe:acct_9:live", "pi_1"}) || KeyOf(groups[1]) != (PaymentKey{testScope, "pi_1"}) {
			t.Errorf("groups = %+v", groups)
		}
	})
}

func TestNames(t *testing.T) {
	const named = `metadata={"order_id":"ORD-1"}`
	for _, tt := range []struct {
		name   string
		bodies [][]byte
		want   []Name
		raw    []string
	}{
		{"nobody speaks", [][]byte{at(0, intentOf("pi_1"))}, nil, nil},
		{"metadata speaks", [][]byte{at(0, intentOf("pi_1", named))}, []Name{{"ORD-1", "metadata.order_id", "pi_1"}}, []string{"ORD-1"}},
		{"a reference speaks", [][]byte{at(0, sessionOf("cs_1", "client_reference_id=ORD-1"))},
			[]Name{{"ORD-1", "client_reference_id", "cs_1"}}, []string{"ORD-1"}},
		{"those who agree are one name", [][]byte{
			at(0, sessionOf("cs_1", "client_reference_id=ORD-1", named)), at(0, intentOf("pi_1", named)), at(0, chargeOf("ch_1", named)),
		}, []Name{{"ORD-1", "client_reference_id", "cs_1"}}, []string{"ORD-1"}},
		{"those who do not agree are two", [][]byte{
			at(0, sessionOf("cs_1", "client_reference_id=ORD-2")), at(0, intentOf("pi_1", named)),
		}, []Name{{"ORD-1", "metadata.order_id", "pi_1"}, {"ORD-2", "client_reference_id", "cs_1"}}, []string{"ORD-1", "ORD-2"}},
		{"a name that was corrected speaks as corrected", [][]byte{
			at(0, intentOf("pi_1", `metadata={"order_id":"ORD-0"}`)), at(1, intentOf("pi_1", named)),
		}, []Name{{"ORD-1", "metadata.order_id", "pi_1"}}, []string{"ORD-0", "ORD-1"}},
		{"two names of an object that has fallen silent are a conflict", [][]byte{
			at(0, intentOf("pi_1", `metadata={"order_id":"ORD-0"}`)), at(1, intentOf("pi_1", named)), at(2, intentOf("pi_1")),
		}, []Name{{"ORD-0", "metadata.order_id", "pi_1"}, {"ORD-1", "metadata.order_id", "pi_1"}}, []string{"ORD-0", "ORD-1"}},
		{"a Payment Link's session silences the whole payment", [][]byte{
			at(0, sessionOf("cs_1", "payment_link=plink_1", "client_reference_id=ORD-2")), at(0, intentOf("pi_1", named)),
		}, nil, []string{"ORD-1", "ORD-2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := learn(t, tt.bodies...)
			if got := Names(facts); !slices.Equal(got, tt.want) {
				t.Errorf("Names = %v; want %v", got, tt.want)
			}
			if got := RawNames(facts); !slices.Equal(got, tt.raw) {
				t.Errorf("RawNames = %v; want %v", got, tt.raw)
			}
			slices.Reverse(facts)
			if got := Names(facts); !slices.Equal(got, tt.want) {
				t.Errorf("from the other end Names = %v; want %v", got, tt.want)
			}
		})
	}
}

func TestAdoptable(t *testing.T) {
	link := at(0, sessionOf("cs_1", "payment_link=plink_1", "client_reference_id=ORD-1"))
	for _, tt := range []struct {
		name   string
		adopt  []string
		bodies [][]byte
		want   string
	}{
		{"a completed session of a link on the list", []string{"plink_0", "plink_1"}, [][]byte{link, at(0, intentOf("pi_1"))}, "cs_1"},
		{"a link that is not on the list", []string{"plink_0"}, [][]byte{link}, ""},
		{"no list", nil, [][]byte{link}, ""},
		{"any link, with a star", []string{"*"}, [][]byte{link}, "cs_1"},
		{"any session that names no order, with a star", []string{"*"}, [][]byte{at(0, sessionOf("cs_1"))}, "cs_1"},
		{"a session that names an order, with a star", []string{"*"}, [][]byte{at(0, sessionOf("cs_1", "client_reference_id=ORD-1"))}, ""},
		{"a session whose intent names an order, with a star", []string{"*"},
			[][]byte{at(0, sessionOf("cs_1")), at(0, intentOf("pi_1", `metadata={"order_id":"ORD-1"}`))}, ""},
		{"a session that names no order, without a star", []string{"plink_1"}, [][]byte{at(0, sessionOf("cs_1"))}, ""},
		{"a session that is still open", []string{"*"}, [][]byte{at(0, sessionOf("cs_1", "status=open", "payment_status=unpaid"))}, ""},
		{"a session that expired", []string{"*"}, [][]byte{at(0, sessionOf("cs_1", "status=expired", "payment_status=unpaid"))}, ""},
		{"a completed session that waits for its money", []string{"*"}, [][]byte{at(0, sessionOf("cs_1", "payment_status=unpaid"))}, "cs_1"},
		{"a subscription", []string{"*"}, [][]byte{at(0, sessionOf("cs_1", "mode=subscription"))}, ""},
		{"a session without an amount", []string{"*"}, [][]byte{at(0, sessionOf("cs_1", "amount_total=null"))}, ""},
		{"a payment without a session", []string{"*"}, [][]byte{at(0, intentOf("pi_1"))}, ""},
		{"the first of two", []string{"*"}, [][]byte{at(0, sessionOf("cs_2")), at(0, sessionOf("cs_1"))}, "cs_1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Adoptable(learn(t, tt.bodies...), tt.adopt)
			if got.ID != tt.want || ok != (tt.want != "") {
				t.Errorf("Adoptable = %q, %v; want %q", got.ID, ok, tt.want)
			}
		})
	}
}
