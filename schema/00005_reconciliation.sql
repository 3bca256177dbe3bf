-- +goose Up

-- Up to when every event of a scope is known that something wants: a time that
-- a completed pass over Stripe's list moves, and nothing else (cases.md B55). A
-- scope without a row begins at the installation.
CREATE TABLE coverage (
    scope TEXT    NOT NULL PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A reconciliation: asked for, under way, or the report on one that was.
CREATE TABLE runs (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    state           TEXT    NOT NULL CHECK (state IN ('requested', 'running', 'done', 'failed')),
    reason          TEXT    NOT NULL,           -- start, schedule, api, cli
    asked_since     INTEGER NOT NULL DEFAULT 0, -- 0: what coverage says
    created_at      INTEGER NOT NULL,
    started_at      INTEGER,
    finished_at     INTEGER,
    since           INTEGER NOT NULL DEFAULT 0,
    until           INTEGER NOT NULL DEFAULT 0,
    pages           INTEGER NOT NULL DEFAULT 0,
    events_seen     INTEGER NOT NULL DEFAULT 0, -- listed, of the types that something wants
    events_new      INTEGER NOT NULL DEFAULT 0, -- of those, unknown here: no webhook had brought them
    objects_checked INTEGER NOT NULL DEFAULT 0,
    payments_seen   INTEGER NOT NULL DEFAULT 0,
    differences     INTEGER NOT NULL DEFAULT 0, -- all of them; the first are in run_differences
    gaps            TEXT    NOT NULL DEFAULT '[]',
    summary         TEXT    NOT NULL DEFAULT '',
    error           TEXT    NOT NULL DEFAULT '',
    CHECK ((state IN ('done', 'failed')) = (finished_at IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX runs_running ON runs (state) WHERE state = 'running';
CREATE INDEX runs_requested ON runs (id) WHERE state = 'requested';
CREATE INDEX runs_done ON runs (id) WHERE state = 'done';

-- The lists of events that a run reads: each a fixed span of time, with the
-- place where it was last.
CREATE TABLE sweeps (
    id      INTEGER PRIMARY KEY,
    run     INTEGER NOT NULL REFERENCES runs (id),
    source  TEXT    NOT NULL,
    account TEXT    NOT NULL,
    scope   TEXT    NOT NULL,
    tenant  TEXT    NOT NULL,
    live    INTEGER NOT NULL CHECK (live IN (0, 1)),
    types   TEXT    NOT NULL,            -- JSON
    since   INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    after   TEXT    NOT NULL DEFAULT '', -- the last event of the last page
    done    INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1))
) STRICT;
CREATE INDEX sweeps_run ON sweeps (run);

CREATE TABLE run_differences (
    run      INTEGER NOT NULL REFERENCES runs (id),
    n        INTEGER NOT NULL,
    object   TEXT    NOT NULL,
    what     TEXT    NOT NULL,
    detail   TEXT    NOT NULL,
    order_id TEXT    NOT NULL DEFAULT '',
    resolved INTEGER NOT NULL CHECK (resolved IN (0, 1)),
    PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

-- What a day's objects come to, at Stripe and here.
CREATE TABLE run_sums (
    run          INTEGER NOT NULL REFERENCES runs (id),
    day          TEXT    NOT NULL, -- UTC, when Stripe made the object
    currency     TEXT    NOT NULL,
    stripe_minor INTEGER NOT NULL,
    books_minor  INTEGER NOT NULL,
    PRIMARY KEY (run, day, currency)
) STRICT, WITHOUT ROWID;

-- Objects that should move, or of which too little is known: to be fetched by
-- their ids when they are due. A row goes when its object has come to an end.
CREATE TABLE checkups (
    object_id TEXT    NOT NULL PRIMARY KEY,
    scope     TEXT    NOT NULL, -- '': tied to an order and never seen; the order's tenant tells where to ask
    why       TEXT    NOT NULL CHECK (why IN ('order_open', 'unfinished', 'unlinked', 'tie', 'sums')),
    due_at    INTEGER NOT NULL,
    tries     INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX checkups_due ON checkups (due_at);

-- What is unfinished in a file that is older than this table.
INSERT INTO checkups (object_id, scope, why, due_at)
SELECT object_id, scope, 'unfinished', updated_at FROM facts
WHERE (kind IN ('session', 'payment_intent', 'charge', 'refund', 'dispute')
    AND json_extract(body, '$.snapshot.status') IN ('open', 'requires_payment_method', 'requires_confirmation', 'requires_action',
        'processing', 'requires_capture', 'pending', 'needs_response', 'under_review', 'warning_needs_response', 'warning_under_review'));
INSERT INTO checkups (object_id, scope, why, due_at)
SELECT r.object_id, '', 'order_open', r.created_at FROM refs r
WHERE NOT EXISTS (SELECT 1 FROM facts f WHERE f.object_id = r.object_id)
ON CONFLICT DO NOTHING;

-- Watched money that no order claims, by its age.
CREATE INDEX events_watched ON events (received_at) WHERE watched = 1;
-- Events that Stripe listed and no webhook has brought since.
CREATE INDEX events_undelivered ON events (received_at) WHERE via = 'reconcile' AND deliveries = 0;
