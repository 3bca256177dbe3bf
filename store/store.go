// Package store holds every fact the service may rely on after a crash.
//
// It owns the SQLite file: pragmas, migrations, the lock, the single writer.
// Nothing here calls Stripe, sleeps, or knows HTTP; its one goroutine is the
// writer. What money means is decided by store/payment, which is pure; the
// store loads facts, asks it, and writes the difference.
//
// # Why a 200 is safe
//
// A webhook is answered after [Store.AddEvent] has returned nil, and that is
// after the COMMIT of the transaction that holds its row. The file is in WAL
// mode with synchronous=FULL, so SQLite has called fsync on the WAL before
// COMMIT returns: the row survives the death of the process and of the
// machine, as far as the disk keeps its own promise. A repeat of a known event
// raises that row's counter and waits for the same COMMIT, so the answer
// "duplicate" is worth as much as "accepted". An error, a timeout or a full
// queue is 503, which says "not known to be stored" and never "stored".
//
// # The single writer
//
// All writes queue up for one goroutine with one connection; those that are
// waiting share one transaction and one fsync (group commit). BEGIN IMMEDIATE
// means that a transaction never learns halfway that another program came
// first. Each write is a closure that may fail alone: a savepoint takes it
// back, and if that is not possible the whole group runs again, one by one.
// Reads use a second, query_only pool and never wait for the writer.
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// Mode says who opens the file.
type Mode int

const (
	// Serve owns the file: it takes the lock, migrates, releases old claims.
	Serve Mode = iota
	// Client is a command beside a running serve, or without one. It neither
	// locks nor migrates, and refuses a schema that is not exactly its own.
	Client
)

// Options are what main decides for the store.
type Options struct {
	Path     string
	Mode     Mode
	Env      string            // "sandbox" or "live"; "" checks nothing (Client)
	Scopes   map[string]string // source name → "stripe:self:test": remembered, others refused (Serve)
	Adopt    []string          // Payment Links that become orders: ids, or "*"
	Unlinked string            // "watch" or "ignore": whether unlinked money is worth a look
	Links    map[string]Item   // Payment Link → what an order that is adopted from it sells
	Actor    string            // "api" or "cli": who acts
	Listen   string            // told to the loser of the lock
	Now      func() time.Time
	Log      *slog.Logger

	StockLow    int64 // on hand at or under it is attention low_stock; 0 is off
	StockReturn bool  // a full refund gives back the stock that its order took

	// Compose says what an operation becomes for each target. nil, as for a
	// command beside serve, leaves operations for the process that has one.
	Compose Compose
	// Queued, when set, is called after a commit that may have brought work for
	// an effect worker. It must not block.
	Queued func()
	// StripeKey says that calls to Stripe will be made (Serve): what kind of
	// key there is, "" for none. A command asks the file.
	StripeKey string
	// Targets are the names of all targets that effects can go to (Serve).
	Targets []string
	// Audit keeps a trail of decisions, calls and acts, for CopyAudit.
	Audit bool

	// Testpoint, when set, is called at named points inside write
	// transactions, so that a test can end the process there. No flag and no
	// variable reaches it.
	Testpoint func(point string)
	// MaxPages, when above 0, is PRAGMA max_page_count: a disk that is full at
	// that size, for tests where none may be mounted.
	MaxPages int64
}

// Store is the open file. Its methods may be called from any goroutine.
type Store struct {
	opt   Options
	log   *slog.Logger
	reads *sql.DB
	wdb   *sql.DB
	w     *writer
	lock  *fileLock
	times *timings
	ready readiness
	spare reserve
	seen  func(query string) // of a test that looks at how each read is answered

	installed Time // when the file was made; Serve
}

// Open opens the file at o.Path. In Serve mode it creates it, waits for
// nobody: when another process serves it, the error says which. A file that a
// newer paidonce wrote is ErrTooNew. Errors name the path and what to do.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	if o.Now == nil || o.Log == nil {
		return nil, errors.New("store: Now and Log must be set")
	}
	if o.Actor == "" {
		o.Actor = "api"
	}
	s := &Store{opt: o, log: o.Log, times: newTimings(), ready: newReadiness()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := probe(o); err != nil {
		return nil, err
	}
	if o.Mode == Serve {
		if s.lock, err = takeLock(o.Path, o.Listen, o.Now()); err != nil {
			return nil, err
		}
	}
	if s.wdb, err = openPool(o, false); err != nil {
		return nil, err
	}
	s.wdb.SetMaxOpenConns(1)
	if err := s.guard(ctx); err != nil {
		return nil, err
	}
	if s.reads, err = openPool(o, true); err != nil {
		return nil, err
	}
	s.reads.SetMaxOpenConns(4)
	s.reads.SetMaxIdleConns(4)
	if s.w, err = newWriter(ctx, s.wdb, o.Log, o.Now, o.Testpoint, o.Queued); err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	if o.Mode == Serve {
		if err := s.remember(ctx); err != nil {
			return nil, err
		}
		if err := s.releaseClaims(ctx); err != nil {
			return nil, fmt.Errorf("release old claims in %s: %w", o.Path, err)
		}
		s.spare.path = o.Path + ".reserve"
		if err := s.spare.hold(); err != nil {
			s.log.Warn("store: no room is kept for the day the disk is full", "err", err)
		}
		if err := s.releaseEffects(ctx); err != nil {
			return nil, fmt.Errorf("release old claims in %s: %w", o.Path, err)
		}
	}
	return s, nil
}

// Close writes what is queued, then closes readers before the writer, so that
// the -wal file is gone after a clean end, and lets go of the lock.
func (s *Store) Close() error {
	var errs []error
	if s.w != nil {
		errs = append(errs, s.flushTimings(background))
	}
	if s.reads != nil {
		errs = append(errs, s.reads.Close())
	}
	if s.w != nil {
		errs = append(errs, s.w.close())
	}
	if s.wdb != nil {
		errs = append(errs, s.wdb.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return errors.Join(errs...)
}

// pragmas are what every connection must say when asked. journal_mode is set
// once for the file and only proved by readers.
var pragmas = []struct{ name, set, want string }{
	{"busy_timeout", "5000", "5000"},
	{"journal_mode", "WAL", "wal"},
	{"synchronous", "FULL", "2"},
	{"foreign_keys", "1", "1"},
	{"journal_size_limit", "67108864", "67108864"}, // the WAL goes back under 64 MiB
	{"wal_autocheckpoint", "1000", "1000"},
}

// openPool opens a pool whose connections have their pragmas from the DSN, so
// that the second connection has them too (cases.md B60), and proves them on
// each new connection: a pragma that SQLite does not take is silent.
func openPool(o Options, readOnly bool) (*sql.DB, error) {
	abs, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	c := &connector{path: o.Path}
	q := url.Values{"_txlock": {"immediate"}}
	for _, p := range pragmas {
		q.Add("_pragma", p.name+"("+p.set+")")
		c.want = append(c.want, [2]string{p.name, p.want})
	}
	if readOnly {
		q.Add("_pragma", "query_only(1)")
		c.want = append(c.want, [2]string{"query_only", "1"})
	}
	if o.MaxPages > 0 {
		q.Add("_pragma", fmt.Sprintf("max_page_count(%d)", o.MaxPages))
	}
	p := filepath.ToSlash(abs)
	if runtime.GOOS == "windows" {
		p = "/" + p
	}
	c.dsn = "file://" + (&url.URL{Path: p}).EscapedPath() + "?" + q.Encode()
	return sql.OpenDB(c), nil
}

// connector opens connections and refuses one that does not have its pragmas.
type connector struct {
	dsn, path string
	want      [][2]string
	drv       sqlite.Driver
}

func (c *connector) Driver() driver.Driver { return &c.drv }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.drv.Open(c.dsn)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", c.path, err)
	}
	for _, p := range c.want {
		got, err := pragma(ctx, conn, p[0])
		if err == nil && !strings.EqualFold(got, p[1]) {
			err = fmt.Errorf("PRAGMA %s is %q, not %q", p[0], got, p[1])
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", c.path, err), conn.Close())
		}
	}
	return conn, nil
}

func pragma(ctx context.Context, conn driver.Conn, name string) (string, error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "PRAGMA "+name, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	v := make([]driver.Value, 1)
	if err := rows.Next(v); err != nil {
		return "", fmt.Errorf("PRAGMA %s: %w", name, err)
	}
	return fmt.Sprint(v[0]), nil
}

// read runs fn on one consistent snapshot. Reads end soon: a snapshot that
// stays open keeps the WAL from shrinking.
func (s *Store) read(ctx context.Context, fn func(q querier) error) error {
	tx, err := s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing to keep
	return fn(snapshot{ctx: ctx, tx: tx, seen: s.seen})
}

// jitter returns d shortened by up to half, so that rows which failed together
// do not come back together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}
