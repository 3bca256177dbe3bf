package store

import (
	"context"
	"errors"
	"fmt"
)

// What a demo or a test does to a file on purpose. Nothing in the service calls
// these.

// LimitPages makes the disk end: the file may not grow beyond n pages, or not
// at all where it is larger already. 0 takes the limit away.
func (s *Store) LimitPages(ctx context.Context, n int64) error {
	if n == 0 {
		n = 1<<32 - 2 // SQLite's own limit
	}
	return s.w.write(ctx, "limit pages", func(t *Tx) error {
		_, err := one(t, fmt.Sprintf("PRAGMA max_page_count = %d", n), nil, new(int64))
		return err
	})
}

// HoldLock takes the file's write lock as another program would, until release
// is called.
func HoldLock(ctx context.Context, path string) (release func() error, err error) {
	db, err := openPool(Options{Path: path}, false)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), conn.Close(), db.Close())
	}
	return func() error {
		_, err := conn.ExecContext(background, "ROLLBACK")
		return errors.Join(err, conn.Close(), db.Close())
	}, nil
}
