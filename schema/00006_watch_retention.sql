-- +goose Up

-- What is wrong around the service and stands in no other table: a backup that
-- failed, an endpoint that is disabled, a clock that is off. Whoever watches
-- replaces the rows of its name; alerts read them.
CREATE TABLE findings (
    name  TEXT    NOT NULL, -- of the alert
    thing TEXT    NOT NULL,
    text  TEXT    NOT NULL,
    at    INTEGER NOT NULL, -- since when
    PRIMARY KEY (name, thing)
) STRICT, WITHOUT ROWID;

-- Effects that have an end and still hold what was sent: what a purge looks at.
CREATE INDEX effects_purge ON effects (done_at) WHERE status IN ('done', 'canceled') AND length(body) > 0;

-- Lists cost the same at any size, whatever is asked for: what is rare is found
-- through an index, and not by reading all that is common.
CREATE INDEX events_side ON events (verdict, id) WHERE verdict IN ('ignored', 'routed', 'stale', 'duplicate');
CREATE INDEX events_type ON events (type, id);
CREATE INDEX events_other ON events (source, id) WHERE source_scope NOT GLOB 'stripe:*';
CREATE INDEX effects_target ON effects (target, id);
CREATE INDEX effects_kind ON effects (kind, id);
