package store

import (
	"time"

	"paidonce/store/payment"
)

// Reconciliation asks Stripe what it has and compares (P8). The worker does the
// asking; what is kept of it, and what it means, is here. A run has three
// passes and one report:
//
// The event pass lists events by `created`, newest first, in sweeps: one for
// each account and each set of at most twenty types. A sweep is a fixed span of
// time and remembers its page, so that a process that was killed goes on where
// it was. Coverage, the time up to which every event is known, moves when all
// sweeps of a run are through, and for nothing else (cases.md B53, B55).
//
// The object pass fetches, by id, what should have moved and did not: see
// [Checkup].
//
// The sums pass lists the charges, refunds and disputes of the same span and
// compares what they come to with the books, object by object and day by day.

const (
	// EventOverlap is how far a pass reaches back behind coverage: events
	// become visible late, and share a second with others (cases.md B54).
	EventOverlap = 15 * time.Minute
	// EventLife is how long Stripe lists an event (stripe.md §2).
	EventLife = 30 * 24 * time.Hour
	// MaxEventTypes is how many types one list can be filtered by.
	MaxEventTypes = 20

	// maxDifferences is how many differences a report keeps one by one.
	maxDifferences = 200
)

// Why a run was begun.
const (
	RunAtStart   = "start"
	RunScheduled = "schedule"
)

// ReconcileSource is an account whose objects the key can read.
type ReconcileSource struct {
	Name    string // of the [[source]] that its events are filed under
	Account string // "": the key's own; "acct_…": another one, by Stripe-Account
	Scope   string // stripe:self:test
	Tenant  string
	Live    bool
}

// RunRequest is what a run is asked for.
type RunRequest struct {
	Sources []ReconcileSource
	Types   map[string][][]string // by source: one list each of up to MaxEventTypes names, or of one with "*" at its end
	Since   Time                  // 0: what coverage says
	Reason  string
}

// Run is one reconciliation as it stands: a row of its own from its first
// moment, so that whoever waits can see how far it is.
type Run struct {
	ID           int64
	Since, Until Time
	Sweeps       []Sweep // those that are not through
	Everything   bool    // a person asked: objects are looked at that are not due
	Resumed      bool    // it was begun by a process that is gone
}

// Sweep is one list of events: an account, a set of types, a span of time.
type Sweep struct {
	ID     int64
	Source ReconcileSource
	Types  []string
	Since  Time   // created[gte], whole seconds
	Until  Time   // created[lte], whole seconds
	After  string // starting_after: the last event of the last page that was taken in; "" is the first page
}

// EventPage is one page of a sweep, taken in by one transaction together with
// the sweep's new position.
type EventPage struct {
	Events []NewEvent
	Last   string // id of the last event on the page, wanted or not
	More   bool   // has_more
	Date   Time   // of the answer, by Stripe's clock; 0 is unknown
}

// Checkup is an object that should have moved and did not, or of which too
// little is known: it is fetched by id, and merged under the version rule of
// design.md §5.
type Checkup struct {
	Source  ReconcileSource
	Object  string // cs_…, pi_…, ch_…, re_…, dp_…
	Kind    payment.Kind
	Version int64 // of the fact when it was chosen; 0: there is none
	Why     string
}

// Why an object is looked at.
const (
	whyOrderOpen  = "order_open" // tied to an order, and never heard of
	whyUnfinished = "unfinished" // in a state that it should have left
	WhyUnlinked   = "unlinked"   // money that no order claims: its session may name one
	whyTie        = "tie"        // two events of one second that could not be ranked
	whySums       = "sums"       // Stripe's list and the books do not say the same
)

// ObjectCopy is an object as it was fetched.
type ObjectCopy struct {
	ID   string
	Word string // the object's own `object`: "checkout.session"
	Mode string // live or test; "" where the object does not say, as refunds do not
	Raw  []byte
	Date Time // of the answer, by Stripe's clock
}

// Compared is what came of one Checkup.
type Compared string

const (
	ComparedEqual   Compared = "equal"   // the copy says nothing that was not known
	ComparedDiffers Compared = "differs" // it said something new, and is in the inbox
	ComparedMoved   Compared = "moved"   // the fact changed meanwhile: looked at again later
)

// Difference is what did not agree, in words with ids and no customer's data.
type Difference struct {
	Object   string `json:"object"`
	What     string `json:"what"`            // missing_event, object_differs, object_gone, sums_differ
	Detail   string `json:"detail"`          // "open here, complete and paid at Stripe"
	Order    string `json:"order,omitempty"` // that it is about
	Resolved bool   `json:"resolved"`        // what was missing was brought in by this run
}

// foreign reports whether the object is of the other mode than the source.
func (o ObjectCopy) foreign(src ReconcileSource) bool {
	return o.Mode == "live" && !src.Live || o.Mode == "test" && src.Live
}

// What a Difference can be.
const (
	DifferenceEvent  = "missing_event"
	DifferenceObject = "object_differs"
	DifferenceGone   = "object_gone"
	DifferenceSums   = "sums_differ"
)

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
	State           string       `json:"state"` // requested, running, done, failed
	Reason          string       `json:"reason"`
	StartedAt       Time         `json:"started_at"`
	FinishedAt      Time         `json:"finished_at"`
	Since           Time         `json:"since"`
	Until           Time         `json:"until"`
	Pages           int64        `json:"pages"`
	EventsSeen      int64        `json:"events_seen"`
	EventsNew       int64        `json:"events_new"`
	ObjectsChecked  int64        `json:"objects_checked"`
	PaymentsSeen    int64        `json:"payments_seen"`
	Differences     []Difference `json:"differences"`
	DifferenceCount int64        `json:"difference_count"` // of all; a report keeps the first 200
	Gaps            []Gap        `json:"gaps"`
	Sums            []DaySum     `json:"sums"`
	Summary         string       `json:"summary"` // for the shop's owner
	Error           string       `json:"error,omitempty"`
	DryRun          bool         `json:"dry_run,omitempty"`
}

// Over reports whether the run has its end.
func (r RunReport) Over() bool { return r.State == "done" || r.State == "failed" }

// Agrees reports whether the run went through and found nothing missing.
func (r RunReport) Agrees() bool {
	return r.State == "done" && r.DifferenceCount == 0 && len(r.Gaps) == 0
}
