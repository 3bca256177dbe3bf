package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Tx is the writer's open transaction. Its statements are prepared once and
// kept: that alone is worth a factor of 1.6 a row (speed.md).
//
// All statements run under a context that nobody cancels: a client that leaves
// must not take its neighbours' commit along.
type Tx struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt

	now    Time // one instant for the whole transaction
	wrote  bool // the current op changed rows
	spoilt bool // an op failed halfway and could not be undone alone

	counts   map[[2]string]int64 // event_counts: changes of this transaction
	opCounts map[[2]string]int64 // and of the current op

	watched, opWatched int64 // the same for events.watched

	queued bool // an effect or an operation was written: someone wants to know after the commit

	testpoint func(string)
}

var background = context.Background()

func (t *Tx) begin(now Time) error {
	t.now, t.spoilt, t.queued = now, false, false
	clear(t.counts)
	t.watched = 0
	return t.raw("BEGIN IMMEDIATE")
}

func (t *Tx) commit() error {
	for key, n := range t.counts {
		if n == 0 {
			continue
		}
		if _, err := t.exec(`
			INSERT INTO event_counts (status, verdict, n) VALUES (?, ?, ?)
			ON CONFLICT (status, verdict) DO UPDATE SET n = n + excluded.n`, key[0], key[1], n); err != nil {
			return fmt.Errorf("count events: %w", err)
		}
	}
	if t.watched != 0 {
		if _, err := t.exec(`
			INSERT INTO event_counts (status, verdict, n, watched) VALUES ('done', 'unlinked', 0, ?)
			ON CONFLICT (status, verdict) DO UPDATE SET watched = watched + excluded.watched`, t.watched); err != nil {
			return fmt.Errorf("count events: %w", err)
		}
	}
	return t.raw("COMMIT")
}

func (t *Tx) rollback() error   { return t.raw("ROLLBACK") }
func (t *Tx) savepoint() error  { return t.raw("SAVEPOINT op") }
func (t *Tx) release() error    { return t.raw("RELEASE op") }
func (t *Tx) rollbackTo() error { return errors.Join(t.raw("ROLLBACK TO op"), t.raw("RELEASE op")) }

func (t *Tx) startOp() {
	t.wrote = false
	clear(t.opCounts)
	t.opWatched = 0
}

// count notes that an event entered (+1) or left (-1) a place.
func (t *Tx) count(status, verdict string, n int64) {
	if t.opCounts == nil {
		t.opCounts = map[[2]string]int64{}
	}
	t.opCounts[[2]string{status, verdict}] += n
}

// watch notes that events.watched of a row went from was to is.
func (t *Tx) watch(was, is bool) {
	switch {
	case is && !was:
		t.opWatched++
	case was && !is:
		t.opWatched--
	}
}

func (t *Tx) keepCounts() {
	t.watched += t.opWatched
	if t.counts == nil {
		t.counts = map[[2]string]int64{}
	}
	for key, n := range t.opCounts {
		t.counts[key] += n
	}
}

// at is a point where a test may stop the process.
func (t *Tx) at(point string) {
	if t.testpoint != nil {
		t.testpoint(point)
	}
}

func (t *Tx) stmt(query string) (*sql.Stmt, error) {
	if st, ok := t.stmts[query]; ok {
		return st, nil
	}
	st, err := t.conn.PrepareContext(background, query)
	if err != nil {
		return nil, err
	}
	t.stmts[query] = st
	return st, nil
}

func (t *Tx) raw(query string) error {
	st, err := t.stmt(query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(background)
	return err
}

// exec runs a statement that changes rows and returns how many it changed.
func (t *Tx) exec(query string, args ...any) (int64, error) {
	st, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(background, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if n > 0 {
		t.wrote = true
	}
	return n, err
}

// insert runs an INSERT and returns the new row's id, or 0 when a conflict
// clause kept it from happening.
func (t *Tx) insert(query string, args ...any) (int64, error) {
	st, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(background, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return 0, err
	}
	t.wrote = true
	return res.LastInsertId()
}

func (t *Tx) query(query string, args ...any) (*sql.Rows, error) {
	st, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(background, args...)
}

func (t *Tx) closeStmts() error {
	var errs []error
	for _, st := range t.stmts {
		errs = append(errs, st.Close())
	}
	clear(t.stmts)
	return errors.Join(errs...)
}

// querier reads: the writer's transaction, or a snapshot of the read pool.
type querier interface {
	query(query string, args ...any) (*sql.Rows, error)
}

// snapshot is one consistent view of the file through the read pool.
type snapshot struct {
	ctx  context.Context
	tx   *sql.Tx
	seen func(query string)
}

func (s snapshot) query(query string, args ...any) (*sql.Rows, error) {
	if s.seen != nil {
		s.seen(query)
	}
	return s.tx.QueryContext(s.ctx, query, args...)
}

// collect reads all rows through scan and closes them: an open cursor on the
// writer's connection would block every later write.
func collect[T any](rows *sql.Rows, err error, scan func(*sql.Rows, *T) error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// one reads the first row into dest and says whether there was one.
func one(q querier, query string, args []any, dest ...any) (bool, error) {
	rows, err := q.query(query, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if !rows.Next() {
		return false, rows.Err()
	}
	if err := rows.Scan(dest...); err != nil {
		return false, err
	}
	return true, rows.Close()
}
