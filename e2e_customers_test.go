package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestCustomersStandOnlyWhereTheyBelong looks for a customer's data in every
// column of every table. It may stand in the order as it was registered and in
// the body as it came, both of which `orders forget` and the retention reach;
// anywhere else it would outlive them.
func TestCustomersStandOnlyWhereTheyBelong(t *testing.T) {
	const mark = "customermark"
	w := newWorld(t)
	w.env["STRIPE_WEBHOOK_SECRET"], w.env["PAIDONCE_ADMIN_TOKEN"] = goodSecret, "a-token-for-this-test"
	s := w.serve("-v")
	for i, body := range []string{
		strings.Replace(intent(``, `{"order_id":"mark-0","note":"`+mark+`"}`), `"status"`, `"receipt_email":"`+mark+`@example.com","description":"`+mark+`","status"`, 1),
		strings.Replace(intent(``, `{"order_id":"mark-1"}`), `"amount_received":1250`, `"amount_received":"`+mark+`"`, 1),
		strings.Replace(intent(``, `{"order_id":"mark-2"}`), `"eur"`, `"`+mark+`"`, 1),
		strings.Replace(intent(``, `{"order_id":"mark-3"}`), `"status"`, `"shipping":{"name":"`+mark+`"},"last_payment_error":{"message":"`+mark+`"},"status"`, 1),
		strings.Replace(intent(``, `{"order_id":"mark-4"}`), `"object":"payment_intent"`, `"object":"charge","billing_details":{"email":"`+mark+`@example.com","name":"`+mark+`"}`, 1),
	} {
		in := fmt.Sprintf(`{"id":"mark-%d","total_minor":1250,"currency":"eur","customer":{"email":%q,"name":%q},"metadata":{"k":%q}}`, i, mark+"@example.com", mark, mark)
		if code, answer := admin(t, s, http.MethodPost, "/v1/orders", in); code != http.StatusCreated {
			t.Fatalf("register: %d %s", code, answer)
		}
		event := fmt.Sprintf("evt_mark%d", i)
		if code, answer := postSigned(t, s, []byte(strings.NewReplacer("EVT", event, "PI", fmt.Sprintf("pi_mark%d", i)).Replace(body))); code != http.StatusOK {
			t.Fatalf("%s: %d %s", event, code, answer)
		}
		settledEvent(t, s, event)
	}
	_, log := s.end()
	unwanted(t, "the log", log, mark, "panic")

	db := openFile(t)
	rows, err := db.QueryContext(t.Context(), `SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var columns [][2]string
	for rows.Next() {
		var c [2]string
		if err := rows.Scan(&c[0], &c[1]); err != nil {
			t.Fatal(err)
		}
		columns = append(columns, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var holds []string
	for _, c := range columns {
		var value string
		query := fmt.Sprintf(`SELECT CAST(%[2]q AS TEXT) FROM %[1]q WHERE instr(lower(CAST(%[2]q AS TEXT)), ?) > 0`, c[0], c[1])
		switch err := db.QueryRowContext(t.Context(), query, mark).Scan(&value); {
		case err == nil:
			holds = append(holds, c[0]+"."+c[1])
			t.Logf("%s.%s: %s", c[0], c[1], value)
		case !errors.Is(err, sql.ErrNoRows):
			t.Fatal(err)
		}
	}
	slices.Sort(holds)
	if want := []string{"orders.customer", "orders.metadata", "payloads.body"}; !slices.Equal(holds, want) {
		t.Errorf("customers' data stands in %v, want %v", holds, want)
	}
}

// openFile opens the world's database for a look, as the sqlite3 shell would.
func openFile(t *testing.T) *sql.DB {
	t.Helper()
	if _, err := os.Stat(defaultDB); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+defaultDB+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
