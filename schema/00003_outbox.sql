-- +goose Up

-- The outbox: an operation for one target. The row is written by the
-- transaction that caused it, and nothing leaves before that has committed.
-- Key and body are frozen before the first try (P7); UNIQUE is what keeps an
-- operation from having two.
CREATE TABLE effects (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    subject        TEXT    NOT NULL CHECK (subject <> ''), -- order:TENANT/ID, event:SCOPE/ID or alert:NAME
    order_id       INTEGER REFERENCES orders (id),
    event          INTEGER REFERENCES events (id),         -- what caused it; null: a person's act
    operation      TEXT    NOT NULL CHECK (operation <> ''),
    target         TEXT    NOT NULL CHECK (target <> ''),
    kind           TEXT    NOT NULL CHECK (kind IN ('http', 'email', 'exec', 'stripe')),
    key            TEXT    NOT NULL UNIQUE,     -- without its generation
    generation     INTEGER NOT NULL DEFAULT 1,  -- stripe: raised when a call is proven to have come to nothing
    body           BLOB    NOT NULL,
    request        TEXT    NOT NULL DEFAULT '', -- a refund: what was asked for, to tell the same request from another
    amount_minor   INTEGER NOT NULL DEFAULT 0,  -- a refund: how much it would give back
    status         TEXT    NOT NULL CHECK (status IN ('pending', 'sending', 'done', 'failed', 'unknown', 'canceled', 'held')),
    reason         TEXT    NOT NULL DEFAULT '', -- why it is held, canceled or failed
    attempts       INTEGER NOT NULL DEFAULT 0,
    failures       INTEGER NOT NULL DEFAULT 0,  -- in a row, for the plan
    doubts         INTEGER NOT NULL DEFAULT 0,  -- email: attempts of unknown outcome; stripe: look-ups that found nothing
    look_up        INTEGER NOT NULL DEFAULT 0 CHECK (look_up IN (0, 1)), -- stripe: find out before anything else
    lease          INTEGER NOT NULL DEFAULT 0,  -- raised by every claim; a settle asks for it back (P6)
    due_at         INTEGER,                     -- next attempt; while sending, the end of the lease; null: nothing by itself
    plan_from      INTEGER,                     -- when its 72 hours began
    first_tried_at INTEGER,                     -- of this generation: Stripe's keys live for a day
    tried_at       INTEGER,
    last_error     TEXT    NOT NULL DEFAULT '',
    provider_ref   TEXT    NOT NULL DEFAULT '', -- what it is called there: re_…, cs_…
    result         TEXT    NOT NULL DEFAULT '', -- JSON of what a caller needs of the answer
    occurred_at    INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    done_at        INTEGER,
    UNIQUE (subject, operation, target),
    CHECK (status IN ('pending', 'sending', 'unknown') OR due_at IS NULL),
    CHECK (status NOT IN ('pending', 'sending') OR due_at IS NOT NULL),
    CHECK (status NOT IN ('done', 'failed', 'canceled') OR done_at IS NOT NULL)
) STRICT;

-- What a target's worker claims.
CREATE INDEX effects_due ON effects (target, due_at, id) WHERE status IN ('pending', 'unknown') AND due_at IS NOT NULL;
-- What holds a lane: effects of one subject to one target keep their sequence.
CREATE INDEX effects_lane ON effects (subject, target, id) WHERE status IN ('pending', 'sending', 'unknown', 'held');
-- What an operator lists, and what an alert looks at.
CREATE INDEX effects_open ON effects (status, id) WHERE status <> 'done';
CREATE INDEX effects_failed ON effects (order_id, id) WHERE status = 'failed';
CREATE INDEX effects_order ON effects (order_id, id) WHERE order_id IS NOT NULL;
CREATE INDEX effects_event ON effects (event, id) WHERE event IS NOT NULL;

-- How many effects stand where, so that stats cost the same at any size.
CREATE TABLE effect_counts (
    status TEXT    NOT NULL PRIMARY KEY,
    n      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- +goose StatementBegin
CREATE TRIGGER effects_count_insert AFTER INSERT ON effects
BEGIN
    INSERT INTO effect_counts (status, n) VALUES (new.status, 1) ON CONFLICT (status) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER effects_count_update AFTER UPDATE OF status ON effects WHEN new.status <> old.status
BEGIN
    UPDATE effect_counts SET n = n - 1 WHERE status = old.status;
    INSERT INTO effect_counts (status, n) VALUES (new.status, 1) ON CONFLICT (status) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd

-- Every call that was made, and what came back. A row without an outcome is a
-- call in hand, or one whose process died before it could write down the end.
CREATE TABLE effect_attempts (
    effect      INTEGER NOT NULL REFERENCES effects (id),
    n           INTEGER NOT NULL,
    key         TEXT    NOT NULL,
    look_up     INTEGER NOT NULL DEFAULT 0 CHECK (look_up IN (0, 1)), -- it asked whether an earlier call had come to something
    started_at  INTEGER NOT NULL,
    finished_at INTEGER,
    outcome     TEXT    NOT NULL DEFAULT '' CHECK (outcome IN ('', 'done', 'again', 'unknown', 'absent', 'refused')),
    status      INTEGER NOT NULL DEFAULT 0,
    code        TEXT    NOT NULL DEFAULT '',
    error       TEXT    NOT NULL DEFAULT '',
    ref         TEXT    NOT NULL DEFAULT '',
    request_id  TEXT    NOT NULL DEFAULT '',
    answer      BLOB,
    PRIMARY KEY (effect, n)
) STRICT, WITHOUT ROWID;

-- Operations become effects where the targets are known, in the process that
-- serves. One that a command recorded beside it waits for that; what was
-- recorded before there were effects makes none.
ALTER TABLE operations ADD COLUMN fanned_out INTEGER NOT NULL DEFAULT 1 CHECK (fanned_out IN (0, 1));
CREATE INDEX operations_waiting ON operations (id) WHERE fanned_out = 0;

-- Where a Checkout Session of the order sends the buyer back to, JSON.
ALTER TABLE orders ADD COLUMN checkout TEXT NOT NULL DEFAULT '';

-- The key of our own call that made the object: it may be learned from its
-- webhook before the answer is.
ALTER TABLE facts ADD COLUMN operation TEXT;
CREATE INDEX facts_operation ON facts (operation) WHERE operation IS NOT NULL;

ALTER TABLE acts ADD COLUMN effect INTEGER REFERENCES effects (id);
CREATE INDEX acts_effect ON acts (effect, id) WHERE effect IS NOT NULL;

-- What people were told about, so that a storm is one message, a reminder
-- comes in its time, and the end is told too.
CREATE TABLE alerts (
    name    TEXT    NOT NULL PRIMARY KEY,
    firing  INTEGER NOT NULL CHECK (firing IN (0, 1)),
    seq     INTEGER NOT NULL, -- messages so far
    since   INTEGER NOT NULL, -- when it began, or ended
    told_at INTEGER NOT NULL,
    count   INTEGER NOT NULL, -- when it was last told
    newest  TEXT    NOT NULL  -- the newest of what it was about then
) STRICT, WITHOUT ROWID;

-- The trail of decisions, calls and acts, where AUDIT_LOG_PATH asks for one:
-- written by the transaction that did it, copied to the file from here.
CREATE TABLE audit (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    line TEXT    NOT NULL -- JSON, without its seq
) STRICT;
