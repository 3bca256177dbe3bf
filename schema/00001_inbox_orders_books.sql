-- +goose Up

-- What the file remembers of its own life: the environment it was made for,
-- the scope of each source, when it was installed. See store/guard.go.
CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- The inbox. One event is one row for as long as the file lives (P2): rows are
-- never deleted, only payloads are. AUTOINCREMENT, so that an id is never
-- reused and a cursor never points at another event (cases.md B67).
CREATE TABLE events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    source_scope TEXT    NOT NULL, -- provider:account:mode
    event_id     TEXT    NOT NULL CHECK (event_id <> ''),
    body_hash    TEXT,             -- SHA-256, only where the sender's id is not signed
    source       TEXT    NOT NULL,
    tenant       TEXT    NOT NULL, -- where its orders are looked up
    via          TEXT    NOT NULL CHECK (via IN ('webhook', 'reconcile', 'send')),
    type         TEXT    NOT NULL,
    api_version  TEXT    NOT NULL,
    object_id    TEXT,             -- the Stripe object it speaks of, once decoded
    status       TEXT    NOT NULL CHECK (status IN ('pending', 'done', 'quarantined')),
    verdict      TEXT    NOT NULL,
    reason       TEXT    NOT NULL DEFAULT '',
    last_error   TEXT    NOT NULL DEFAULT '',
    merged       INTEGER NOT NULL DEFAULT 0 CHECK (merged IN (0, 1)),  -- it changed a fact, once
    order_id     INTEGER REFERENCES orders (id),
    attempts     INTEGER NOT NULL DEFAULT 0,  -- only those that the row is to blame for
    failures     INTEGER NOT NULL DEFAULT 0,  -- all of them, for the backoff
    deliveries   INTEGER NOT NULL DEFAULT 1,
    lease        INTEGER NOT NULL DEFAULT 0,  -- raised by every claim; a finish asks for it back (P6)
    claim        TEXT    NOT NULL DEFAULT '' CHECK (claim IN ('', 'batch', 'alone')),
    suspect      INTEGER NOT NULL DEFAULT 0 CHECK (suspect IN (0, 1)), -- in hand when the process died: runs alone
    due_at       INTEGER NOT NULL,            -- next attempt; while claimed, the end of the lease
    occurred_at  INTEGER NOT NULL,            -- the sender's created
    received_at  INTEGER NOT NULL,
    done_at      INTEGER,
    UNIQUE (source_scope, event_id),
    CHECK (
        (status = 'pending'     AND verdict IN ('new', 'retrying')) OR
        (status = 'done'        AND verdict IN ('applied', 'duplicate', 'stale', 'unlinked', 'ignored', 'routed')) OR
        (status = 'quarantined' AND verdict IN ('amount_mismatch', 'currency_mismatch', 'order_conflict',
                                                'contradiction', 'malformed', 'too_many_attempts'))
    ),
    CHECK (status = 'pending' OR (claim = '' AND done_at IS NOT NULL))
) STRICT;

-- The claim reads this index and nothing else, so it costs the same at one
-- thousand and at one million done rows.
CREATE INDEX events_due ON events (suspect, due_at, id) WHERE status = 'pending';
CREATE UNIQUE INDEX events_body ON events (source_scope, body_hash) WHERE body_hash IS NOT NULL;
-- Rows that a later correction may finish, found by the object they speak of.
CREATE INDEX events_waiting ON events (source_scope, object_id)
    WHERE verdict IN ('unlinked', 'amount_mismatch', 'currency_mismatch', 'order_conflict', 'contradiction');
-- What an operator lists: rows that want a person.
CREATE INDEX events_open ON events (verdict, id)
    WHERE verdict IN ('unlinked', 'amount_mismatch', 'currency_mismatch', 'order_conflict', 'contradiction',
                      'malformed', 'too_many_attempts');
CREATE INDEX events_order ON events (order_id, id) WHERE order_id IS NOT NULL;

-- The raw body, byte for byte, apart from the row that changes state: a claim
-- is 1.6 to 2.7 times cheaper when it does not drag the body along.
CREATE TABLE payloads (
    event INTEGER PRIMARY KEY REFERENCES events (id),
    body  BLOB NOT NULL
) STRICT;

-- How many events stand where, kept by the transaction that moves them, so
-- that stats cost the same at any size.
CREATE TABLE event_counts (
    status  TEXT    NOT NULL,
    verdict TEXT    NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (status, verdict)
) STRICT, WITHOUT ROWID;

-- How long answers and work took, a logarithmic histogram a minute.
CREATE TABLE timings (
    kind    TEXT    NOT NULL CHECK (kind IN ('ack', 'receipt_to_done')),
    minute  INTEGER NOT NULL, -- ms, the minute's start
    bucket  INTEGER NOT NULL, -- see store/timings.go
    n       INTEGER NOT NULL,
    max_us  INTEGER NOT NULL,
    PRIMARY KEY (kind, minute, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE orders (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant           TEXT    NOT NULL CHECK (tenant <> ''),
    order_id         TEXT    NOT NULL CHECK (order_id <> ''),
    version          INTEGER NOT NULL DEFAULT 1,
    status           TEXT    NOT NULL CHECK (status IN (
        'awaiting_payment', 'processing', 'authorized', 'payment_failed', 'expired', 'canceled', 'paid',
        'partially_refunded', 'refund_pending', 'refunded', 'disputed', 'charged_back')),
    total_minor      INTEGER NOT NULL CHECK (total_minor >= 0),
    currency         TEXT    NOT NULL CHECK (currency = lower(currency) AND length(currency) = 3),
    amount_policy    TEXT    NOT NULL CHECK (amount_policy IN ('exact', 'at_least', 'any', 'subtotal')),
    allow_discount   INTEGER NOT NULL CHECK (allow_discount IN (0, 1)),
    payment_intent   TEXT,             -- registered: money comes from this one only
    provider_payment TEXT,             -- the payment that was accepted first
    received_minor       INTEGER NOT NULL DEFAULT 0,
    refunded_minor       INTEGER NOT NULL DEFAULT 0,
    refund_pending_minor INTEGER NOT NULL DEFAULT 0,
    charged_back_minor   INTEGER NOT NULL DEFAULT 0,
    suspense_minor       INTEGER NOT NULL DEFAULT 0,
    attention        TEXT    NOT NULL DEFAULT '[]', -- JSON: what derive says, before acks
    items            TEXT    NOT NULL DEFAULT '[]', -- JSON, as registered
    customer         TEXT    NOT NULL DEFAULT '{}',
    metadata         TEXT    NOT NULL DEFAULT '{}',
    registered       TEXT    NOT NULL,              -- SHA-256 of the registration: the same again is 200
    closed_at        INTEGER,                       -- the shop closed it
    fulfil_at        INTEGER,                       -- a person ran order.paid by hand
    created_at       INTEGER NOT NULL,
    paid_at          INTEGER,
    updated_at       INTEGER NOT NULL,
    UNIQUE (tenant, order_id)
) STRICT;
CREATE INDEX orders_status ON orders (status, id);
CREATE INDEX orders_attention ON orders (id) WHERE attention <> '[]';
CREATE INDEX orders_order_id ON orders (order_id);
CREATE INDEX orders_email ON orders (lower(json_extract(customer, '$.email')));

-- Stripe ids that a shop or a person tied to an order. Ids are unique at
-- Stripe, so one object belongs to one order.
CREATE TABLE refs (
    object_id  TEXT    NOT NULL PRIMARY KEY,
    order_id   INTEGER NOT NULL REFERENCES orders (id),
    by_hand    INTEGER NOT NULL CHECK (by_hand IN (0, 1)), -- orders link: outranks all else
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX refs_order ON refs (order_id);

-- What we know of one Stripe object. Facts come before orders (design 3): they
-- are merged whether or not an order is known, and hold no personal data.
CREATE TABLE facts (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    scope          TEXT    NOT NULL,
    object_id      TEXT    NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind IN ('session', 'payment_intent', 'charge', 'refund', 'dispute')),
    tenant         TEXT    NOT NULL,
    version        INTEGER NOT NULL DEFAULT 1,
    body           TEXT    NOT NULL, -- JSON of payment.Fact
    payment_intent TEXT,             -- the edges: what it points to
    charge         TEXT,
    order_id       INTEGER REFERENCES orders (id), -- the one order that claims it, as last derived
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    UNIQUE (object_id, scope)
) STRICT;
CREATE INDEX facts_payment_intent ON facts (payment_intent, scope) WHERE payment_intent IS NOT NULL;
CREATE INDEX facts_charge ON facts (charge, scope) WHERE charge IS NOT NULL;
CREATE INDEX facts_order ON facts (order_id) WHERE order_id IS NOT NULL;

-- Every order id that a fact ever spoke (metadata.order_id, a session's
-- client_reference_id), so that a registration finds what came before it.
CREATE TABLE fact_names (
    tenant TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    fact   INTEGER NOT NULL REFERENCES facts (id),
    PRIMARY KEY (tenant, name, fact)
) STRICT, WITHOUT ROWID;

-- Payments that a person counted as they are (orders accept), by any object of
-- theirs: which one stands for the payment may change as more is learned.
CREATE TABLE acceptances (
    order_id   INTEGER NOT NULL REFERENCES orders (id),
    object     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (order_id, object)
) STRICT, WITHOUT ROWID;

-- The books: append-only. An entry is a change of one object's derived amount
-- in one account; the sum over an object's entries is what derive says today.
CREATE TABLE entries (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    scope        TEXT    NOT NULL,
    object       TEXT    NOT NULL,
    account      TEXT    NOT NULL CHECK (account IN ('sales', 'refunds', 'disputes', 'suspense')),
    seq          INTEGER NOT NULL,
    order_id     INTEGER REFERENCES orders (id),
    amount_minor INTEGER NOT NULL CHECK (amount_minor <> 0), -- money in is positive
    currency     TEXT    NOT NULL,
    occurred_at  INTEGER NOT NULL,
    recorded_at  INTEGER NOT NULL,
    event        INTEGER REFERENCES events (id), -- null: a person's act, or a registration
    UNIQUE (scope, object, account, seq)
) STRICT;
CREATE INDEX entries_order ON entries (order_id, id) WHERE order_id IS NOT NULL;

-- +goose StatementBegin
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ABORT, 'the books are append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
BEGIN
    SELECT RAISE(ABORT, 'the books are append-only');
END;
-- +goose StatementEnd

-- A business act that should happen once, recorded once.
CREATE TABLE operations (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id    INTEGER NOT NULL REFERENCES orders (id),
    name        TEXT    NOT NULL,
    occurred_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    event       INTEGER REFERENCES events (id),
    UNIQUE (order_id, name)
) STRICT;

-- What people did, for the timeline and the audit trail.
CREATE TABLE acts (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    actor    TEXT    NOT NULL CHECK (actor IN ('api', 'cli')),
    act      TEXT    NOT NULL,
    order_id INTEGER REFERENCES orders (id),
    event    INTEGER REFERENCES events (id),
    object   TEXT    NOT NULL DEFAULT '',
    note     TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX acts_order ON acts (order_id, id) WHERE order_id IS NOT NULL;
CREATE INDEX acts_event ON acts (event, id) WHERE event IS NOT NULL;
