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
