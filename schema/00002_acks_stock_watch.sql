-- +goose Up

-- What a person has looked at. From here on orders.attention holds what derive
-- and stock say less what stands here. The cause is what the attention was
-- about, so that it comes back when something new causes it; a row goes when
-- its attention does.
CREATE TABLE acks (
    order_id   INTEGER NOT NULL REFERENCES orders (id),
    word       TEXT    NOT NULL,
    cause      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (order_id, word, cause)
) STRICT, WITHOUT ROWID;

-- An order that was made out of a session yields to any that speaks for the
-- payment, whichever came first.
ALTER TABLE refs ADD COLUMN adopted INTEGER NOT NULL DEFAULT 0 CHECK (adopted IN (0, 1));

-- Which orders a fact's payment was contested between, as last derived: when
-- that ends, all of them are derived again.
CREATE TABLE contested (
    fact     INTEGER NOT NULL REFERENCES facts (id),
    order_id INTEGER NOT NULL REFERENCES orders (id),
    PRIMARY KEY (fact, order_id)
) STRICT, WITHOUT ROWID;

-- How much of a thing the shop has. It may be less than nothing: then more was
-- sold than there was (attention oversold). What has no row is not counted.
CREATE TABLE stock (
    tenant        TEXT    NOT NULL,
    sku           TEXT    NOT NULL,
    on_hand       INTEGER NOT NULL,
    counted       INTEGER NOT NULL, -- what a person last counted
    counted_at    INTEGER NOT NULL,
    counted_after INTEGER NOT NULL, -- the last of stock_moves that the count has in it
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant, sku)
) STRICT, WITHOUT ROWID;

-- What orders took and gave back. The sum over an order's moves of a thing is
-- what it holds now: all of it or nothing, as its facts say.
CREATE TABLE stock_moves (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    sku      TEXT    NOT NULL,
    quantity INTEGER NOT NULL CHECK (quantity <> 0), -- taken is positive, given back negative
    short    INTEGER NOT NULL DEFAULT 0 CHECK (short >= 0 AND short <= max(quantity, 0)), -- of what was taken, how much was not there
    at       INTEGER NOT NULL,
    event    INTEGER REFERENCES events (id) -- null: a person's act, or a registration
) STRICT;
CREATE INDEX stock_moves_order ON stock_moves (order_id, sku, id);

-- Orders that were paid before there was any stock hold what they sold, so that
-- their next event takes nothing late.
INSERT INTO stock_moves (order_id, sku, quantity, at)
SELECT o.id, json_extract(i.value, '$.sku'), sum(json_extract(i.value, '$.quantity')), o.updated_at
FROM orders o, json_each(o.items) i
WHERE o.paid_at IS NOT NULL AND o.status <> 'refunded'
GROUP BY o.id, json_extract(i.value, '$.sku')
ORDER BY 1, 2;

-- Unlinked money that someone may have to look at: all of it, but for that of
-- invoices and subscriptions, which no order will ever claim. The verdict is
-- "unlinked" either way. Whether the shop wants to look at any of it is its
-- configuration, and stands in no row.
ALTER TABLE events ADD COLUMN watched INTEGER NOT NULL DEFAULT 0
    CHECK (watched IN (0, 1) AND (watched = 0 OR verdict = 'unlinked'));
ALTER TABLE event_counts ADD COLUMN watched INTEGER NOT NULL DEFAULT 0;
UPDATE events SET watched = 1 WHERE verdict = 'unlinked' AND NOT EXISTS (
    SELECT 1 FROM facts own
    JOIN facts f ON f.scope = own.scope
        AND (f.object_id = own.object_id OR f.object_id = own.payment_intent OR f.payment_intent = own.object_id)
    WHERE own.object_id = events.object_id AND own.scope = events.source_scope
        AND (json_extract(f.body, '$.sticky.invoice') IS NOT NULL
            OR json_extract(f.body, '$.sticky.mode') IN ('subscription', 'setup')));
UPDATE event_counts SET watched = (SELECT count(*) FROM events WHERE watched = 1)
WHERE status = 'done' AND verdict = 'unlinked';

-- All that was ever said of an object: an order's timeline, and what to erase
-- when a customer asks to be forgotten. events_waiting stays beside it: every
-- event that is applied reads that one, and finds nothing there.
CREATE INDEX events_object ON events (source_scope, object_id) WHERE object_id IS NOT NULL;

-- The books by day: sums are read from the index alone.
CREATE INDEX entries_occurred ON entries (occurred_at, currency, account, amount_minor);
