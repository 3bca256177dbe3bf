package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
)

// Diagnosis is how the file stands, measured and not assumed.
type Diagnosis struct {
	Schema      int64               `json:"schema"`
	Bytes       int64               `json:"bytes"`
	WALBytes    int64               `json:"wal_bytes"`
	Connections []map[string]string `json:"connections"` // of fresh connections: pragmas, and txlock
	HeldSince   Time                `json:"held_since"`  // restored and not released
	Coverage    []Covered           `json:"coverage"`
	Alerts      []Firing            `json:"alerts"`
}

// Covered is up to when the events of a scope are known.
type Covered struct {
	Scope string `json:"scope"`
	Until Time   `json:"until"`
}

// Firing is an alert that has begun and not ended.
type Firing struct {
	Name  string `json:"name"`
	Since Time   `json:"since"`
	Count int64  `json:"count"`
}

// Diagnose looks at the file through connections of its own (cases.md B60). It
// takes the write lock for a moment, to see that transactions do.
func (s *Store) Diagnose(ctx context.Context) (Diagnosis, error) {
	d := Diagnosis{Connections: []map[string]string{}, Coverage: []Covered{}, Alerts: []Firing{}}
	st, err := os.Stat(s.opt.Path)
	if err != nil {
		return d, err
	}
	d.Bytes = st.Size()
	if d.WALBytes, err = s.walSize(); err != nil {
		return d, err
	}
	if d.Schema, err = newestMigration(); err != nil { // that the file has it was checked when it was opened
		return d, err
	}
	if d.HeldSince, err = s.HeldSince(ctx); err != nil {
		return d, err
	}
	for range 3 {
		c, err := s.measureConnection(ctx)
		if err != nil {
			return d, fmt.Errorf("measure a connection: %w", err)
		}
		d.Connections = append(d.Connections, c)
	}
	err = s.read(ctx, func(q querier) error {
		rows, err := q.query(`SELECT scope, until FROM coverage ORDER BY scope`)
		covered, err := collect(rows, err, func(r *sql.Rows, c *Covered) error { return r.Scan(&c.Scope, &c.Until) })
		if err != nil {
			return err
		}
		d.Coverage = append(d.Coverage, covered...)
		rows, err = q.query(`SELECT name, since, count FROM alerts WHERE firing = 1 ORDER BY name`)
		firing, err := collect(rows, err, func(r *sql.Rows, f *Firing) error { return r.Scan(&f.Name, &f.Since, &f.Count) })
		d.Alerts = append(d.Alerts, firing...)
		return err
	})
	return d, err
}

// measureConnection asks a fresh connection for its pragmas, and finds out
// whether its transactions take the write lock when they begin.
func (s *Store) measureConnection(ctx context.Context) (map[string]string, error) {
	pool, err := openPool(s.opt, false)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	said := map[string]string{}
	for _, p := range pragmas {
		var v string
		if err := pool.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&v); err != nil {
			return nil, err
		}
		said[p.name] = v
	}
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // it wrote nothing
	other, err := openPool(s.opt, false)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return nil, err
	}
	said["txlock"] = "immediate"
	if second, err := other.BeginTx(ctx, nil); err == nil {
		said["txlock"] = "deferred"
		_ = second.Rollback()
	}
	return said, nil
}
