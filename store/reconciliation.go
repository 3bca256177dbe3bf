package store

import "time"

// Reconciliation asks Stripe what it has and compares (P8). The worker does the
// asking; what is kept of it, and what it means, is here. It has two passes,
// and one report on both:
//
// The event pass lists events by `created`, newest first, in sweeps: one for
// each account and each set of at most twenty types. A sweep is a fixed span of
// time and remembers its page, so that a process that was killed goes on where
// it was. Coverage, the time up to which every event is known, moves when all
// sweeps of a run are through, and for nothing else (cases.md B53, B55).
//
// The object pass fetches, by id, what should have moved and did not: see
// [Checkup].

const (
	// EventOverlap is how far a pass reaches back behind coverage: events
	// become visible late, and share a second with others (cases.md B54).
	EventOverlap = 15 * time.Minute
	// EventLife is how long Stripe lists an event (stripe.md §2).
	EventLife = 30 * 24 * time.Hour
	// MaxEventTypes is how many types one list can be filtered by.
	MaxEventTypes = 20
)

// ReconcileSource is a Stripe source of the configuration whose account the key
// can read.
type ReconcileSource struct {
	Name    string // of the source
	Account string // "": the key's own; "acct_…": a connected one, by Stripe-Account
	Scope   string // stripe:self:test; what its events are filed under
	Tenant  string
	Live    bool
}

// RunRequest is what a run is asked for.
type RunRequest struct {
	Since  Time   // 0: what coverage says; never before EventLife
	Reason string // "schedule", "start", "api", "cli"
}

// Run is one reconciliation, as it stands: a row of its own from its first
// moment, so that whoever waits can see how far it is.
type Run struct {
	ID           int64
	Since, Until Time
	Sweeps       []Sweep // those that are not through
	Pages        int64   // read so far
	Resumed      bool    // it was begun by a process that is gone
}

// Sweep is one list of events: an account, a set of types, a span of time.
type Sweep struct {
	ID     int64
	Source ReconcileSource
	Types  []string // none: all types, and the worker drops what nothing wants
	Since  Time     // created[gte], whole seconds
	Until  Time     // created[lte], whole seconds
	After  string   // starting_after: the last event of the last page that was taken in; "" is the first page
}

// EventPage is one page of a sweep, taken in by one transaction together with
// the sweep's new position.
type EventPage struct {
	Events []NewEvent // Via is "reconcile"; of the types that something wants
	Listed int        // how many Stripe listed, wanted or not
	Last   string     // id of the last event on the page
	More   bool       // has_more
}

// Checkup is an object that should have moved and did not, or of which too
// little is known: it is fetched by id, and merged under the version rule of
// design.md §5.
type Checkup struct {
	Source  ReconcileSource
	Object  string // cs_…, pi_…, ch_…, re_…, dp_…
	Kind    string // session, payment_intent, charge, refund, dispute
	Version int64  // of the fact when it was chosen; 0: there is none
	Why     string // order_open, unlinked, refund_open, dispute_open, tie
	Tries   int64
}

// Compared is what came of one Checkup.
type Compared string

const (
	ComparedEqual   Compared = "equal"   // the copy says nothing that was not known
	ComparedDiffers Compared = "differs" // it said something new, and is in the inbox
	ComparedMoved   Compared = "moved"   // the fact changed meanwhile: looked at again later
	ComparedGone    Compared = "gone"    // Stripe does not know it
)

// Difference is what did not agree, in words with ids and no customer's data.
type Difference struct {
	Object   string `json:"object"`
	What     string `json:"what"`            // missing_event, state, amount, gone
	Detail   string `json:"detail"`          // "open here, complete at Stripe"
	Order    string `json:"order,omitempty"` // that it is about
	Resolved bool   `json:"resolved"`        // it was brought in by this run
}

// Gap is a span of time whose events Stripe no longer lists.
type Gap struct {
	From Time `json:"from"`
	To   Time `json:"to"`
}

// DaySum compares one day's money in one currency, by Stripe's own objects:
// what was captured less what was refunded and charged back, of the objects
// that Stripe created on that UTC day. Minor units.
type DaySum struct {
	Day         string `json:"day"` // 2026-12-03
	Currency    string `json:"currency"`
	StripeMinor int64  `json:"stripe_minor"`
	BooksMinor  int64  `json:"books_minor"`
}

// RunReport is what GET /v1/reconcile shows of one run (design.md §7).
type RunReport struct {
	ID              int64        `json:"id"`
	Reason          string       `json:"reason"`
	StartedAt       Time         `json:"started_at"`
	FinishedAt      Time         `json:"finished_at,omitzero"`
	Since           Time         `json:"since"`
	Until           Time         `json:"until"`
	EventsSeen      int64        `json:"events_seen"`
	EventsNew       int64        `json:"events_new"`
	ObjectsChecked  int64        `json:"objects_checked"`
	PaymentsSeen    int64        `json:"payments_seen"`
	Differences     []Difference `json:"differences"`
	MoreDifferences int64        `json:"more_differences,omitzero"` // beyond those that are kept
	Gaps            []Gap        `json:"gaps"`
	Sums            []DaySum     `json:"sums"`
	Summary         string       `json:"summary"` // for the shop's owner
	Error           string       `json:"error,omitempty"`
	DryRun          bool         `json:"dry_run,omitempty"`
}
