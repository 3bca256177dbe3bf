package store

import "encoding/json"

// NewEvent is a verified delivery, as the handler hands it over.
type NewEvent struct {
	Scope      string // provider:account:mode
	ID         string // the sender's id, or sha256:HEX
	BodyHash   string // hex SHA-256 where the sender's id is not signed (github, hmac); else ""
	Source     string
	Tenant     string // where its orders are looked up: "main", or a connected account
	Via        string // webhook | reconcile | send
	Type       string
	APIVersion string
	OccurredAt Time
	Body       []byte
	// Ignored, when not empty, records the event as done at once, with this
	// reason: a foreign account or mode under foreign = "ignore".
	Ignored string
}

// Added says what AddEvent found.
type Added struct {
	ID        string // the event id the row has: of the earlier row for a duplicate by body
	Duplicate bool
}

// Event is an inbox row as the API and the CLI show it (design.md §7).
type Event struct {
	Scope           string          `json:"scope"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Via             string          `json:"via"`
	Type            string          `json:"type"`
	Status          string          `json:"status"`
	Verdict         string          `json:"verdict"`
	Reason          string          `json:"reason"`
	LastError       string          `json:"last_error"`
	Attempts        int64           `json:"attempts"`
	Deliveries      int64           `json:"deliveries"`
	NextAttemptAt   Time            `json:"next_attempt_at,omitzero"`
	OccurredAt      Time            `json:"occurred_at"`
	ReceivedAt      Time            `json:"received_at"`
	DoneAt          Time            `json:"done_at,omitzero"`
	Order           string          `json:"order,omitempty"`
	APIVersion      string          `json:"api_version"`
	Payload         json.RawMessage `json:"payload,omitempty"` // FindEvent only
	PayloadEncoding string          `json:"payload_encoding,omitempty"`
}

// EventFilter selects events for ListEvents. Empty fields select all.
type EventFilter struct {
	Status, Verdict, Type, Order, Tenant, Source string
	Limit                                        int // 1 to 200; 0 is 50
	Cursor                                       string
}

// Stats is what GET /v1/stats shows.
type Stats struct {
	Events               map[string]map[string]int64 `json:"events"` // status → verdict → number
	OldestPendingSeconds float64                     `json:"oldest_pending_seconds"`
	Retries              int64                       `json:"retries"` // pending rows that failed before
	Quarantined          int64                       `json:"quarantined"`
	Unlinked             int64                       `json:"unlinked"` // only those that [orders] unlinked has watched
	AckMS                Percentiles                 `json:"ack_ms"`
	ReceiptToDoneMS      Percentiles                 `json:"receipt_to_done_ms"`
	Effects              map[string]int64            `json:"effects"`
	LastWebhookAt        *Time                       `json:"last_webhook_at"`
	LastReconcile        *Time                       `json:"last_reconcile"`
}

// Percentiles of the last hour, in milliseconds; p50 and p99 are the upper
// bound of their bucket (within 10 %), max is exact. All are 0 without data.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}
