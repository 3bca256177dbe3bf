package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// queueSize bounds the writes that wait. A full queue is an answer (503),
	// not a place to hide work. The bytes behind it are bounded by the handler.
	queueSize = 8192
	// maxGroup is how many writes share one transaction at most (speed.md).
	maxGroup = 512
	// maxHold is when a group commits although more is waiting, so that no
	// write transaction comes near 100 ms.
	maxHold = 50 * time.Millisecond
)

// errUnavailable is the answer to a write that did not commit, or that nobody
// knows to have committed: it does not say that the row is absent.
var errUnavailable = &Problem{Code: CodeUnavailable, Message: "not stored: the database did not take the write in time; try again"}

// op is one write in the queue.
type op struct {
	what  string
	run   func(*Tx) error
	plain bool // needs no savepoint: its first failing statement is its last, and leaves nothing behind
	state atomic.Int32
	err   error
	done  chan struct{}
}

// The life of an op: a waiter that gives up takes it out of the queue, unless
// the writer was faster.
const (
	opQueued int32 = iota
	opTaken
	opAbandoned
)

// writer is the one goroutine that writes. It owns one connection and shares
// each transaction among all the writes that are waiting: one fsync makes all
// of them durable (group commit). See the package comment.
type writer struct {
	db     *sql.DB
	conn   *sql.Conn
	tx     *Tx
	queue  chan *op
	queued func() // see Options
	stop   chan struct{}
	gone   chan struct{}
	log    *slog.Logger
	now    func() time.Time

	mu     sync.RWMutex // held for reading while an op is put into the queue
	closed bool

	fullAt atomic.Int64 // when the disk last had no room for an event (ms); 0 after one was stored
}

func newWriter(ctx context.Context, db *sql.DB, log *slog.Logger, now func() time.Time, testpoint func(string), queued func()) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{
		db: db, conn: conn, log: log, now: now, queued: queued,
		queue: make(chan *op, queueSize),
		stop:  make(chan struct{}),
		gone:  make(chan struct{}),
		tx:    &Tx{conn: conn, stmts: map[string]*sql.Stmt{}, testpoint: testpoint},
	}
	go w.loop()
	return w, nil
}

// close lets the queue run empty, then ends the goroutine and the connection.
func (w *writer) close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.mu.Unlock()
	close(w.stop)
	<-w.gone
	return errors.Join(w.tx.closeStmts(), w.conn.Close())
}

// write queues fn and waits until the transaction that it shared has been
// committed. A nil error means that it is on disk. When ctx ends first the
// answer is errUnavailable, and the write may still happen.
//
// fn may run more than once and must not act outside tx.
func (w *writer) write(ctx context.Context, what string, fn func(*Tx) error) error {
	return w.submit(ctx, &op{what: what, run: fn, done: make(chan struct{})})
}

// writePlain is write for a closure whose failure leaves nothing to undo.
func (w *writer) writePlain(ctx context.Context, what string, fn func(*Tx) error) error {
	return w.submit(ctx, &op{what: what, run: fn, plain: true, done: make(chan struct{})})
}

func (w *writer) submit(ctx context.Context, o *op) error {
	if err := w.put(o); err != nil {
		return err
	}
	return w.await(ctx, o)
}

// put places o in the queue, or says at once that there is no room.
func (w *writer) put(o *op) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return fmt.Errorf("%s: the store is closed: %w", o.what, errUnavailable)
	}
	select {
	case w.queue <- o:
		return nil
	default:
		return fmt.Errorf("%s: the write queue is full: %w", o.what, errUnavailable)
	}
}

func (w *writer) await(ctx context.Context, o *op) error {
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		if o.state.CompareAndSwap(opQueued, opAbandoned) {
			o.run = nil // and the body that it holds
			return fmt.Errorf("%s: waited too long: %w", o.what, errUnavailable)
		}
		// Taken: the transaction may be a moment from its COMMIT.
		select {
		case <-o.done:
			return o.err
		default:
			return fmt.Errorf("%s: waited too long, and it may still be stored: %w", o.what, errUnavailable)
		}
	}
}

func (w *writer) loop() {
	defer close(w.gone)
	group := make([]*op, 0, maxGroup)
	for {
		select {
		case o := <-w.queue:
			group = append(group[:0], o)
		case <-w.stop:
			select {
			case o := <-w.queue: // what was accepted is written
				group = append(group[:0], o)
			default:
				return
			}
		}
		// Let the senders that are ready put theirs in: it doubles the group
		// and costs nothing, where a timer would cost 14 % (speed.md).
		runtime.Gosched()
	drain:
		for len(group) < maxGroup {
			select {
			case o := <-w.queue:
				group = append(group, o)
			default:
				break drain
			}
		}
		for rest := group; len(rest) > 0; {
			n, err := w.commit(rest)
			if isFull(err) {
				w.fullAt.Store(int64(At(w.now())))
			}
			rest = rest[n:]
		}
	}
}

// commit runs a first part of ops in one transaction, acknowledges it and
// returns how many ops it took. The error is the one that kept the whole
// transaction from happening; the ops then hold it too.
func (w *writer) commit(ops []*op) (int, error) {
	start := w.now()
	if err := w.tx.begin(At(start)); err != nil {
		err = fmt.Errorf("begin: %w", err)
		w.fail(ops, err)
		return len(ops), err
	}
	taken := ops[:0:0]
	n := 0
	for _, o := range ops {
		n++
		if !o.state.CompareAndSwap(opQueued, opTaken) && o.state.Load() == opAbandoned {
			continue
		}
		taken = append(taken, o)
		o.err = w.runOp(o)
		if o.err == nil {
			if w.now().Sub(start) > maxHold {
				break
			}
			continue
		}
		if spoilt := w.tx.spoilt; spoilt || environmental(o.err) {
			// The transaction cannot be trusted any more.
			err := o.err
			w.rollback()
			if environmental(err) {
				err = fmt.Errorf("%s: %w", o.what, err)
				w.fail(taken, err)
				return n, err
			}
			w.alone(taken)
			return n, nil
		}
	}
	if err := w.tx.commit(); err != nil {
		err = fmt.Errorf("commit: %w", err)
		w.rollback()
		w.fail(taken, err)
		return n, err
	}
	for _, o := range taken {
		close(o.done)
	}
	w.tellQueued()
	return n, nil
}

// tellQueued wakes the effect workers after a commit that had work for them.
func (w *writer) tellQueued() {
	if w.tx.queued && w.queued != nil {
		w.queued()
	}
}

// alone runs each op in a transaction of its own: what one of them left half
// done must not touch its neighbours.
func (w *writer) alone(ops []*op) {
	for _, o := range ops {
		o.err = w.tx.begin(At(w.now()))
		if o.err == nil {
			if o.err = w.runOp(o); o.err == nil {
				if o.err = w.tx.commit(); o.err == nil {
					w.tellQueued()
				}
			}
			if o.err != nil {
				w.rollback()
				if environmental(o.err) {
					o.err = errors.Join(errUnavailable, o.err)
				}
			}
		} else {
			o.err = errors.Join(errUnavailable, o.err)
		}
		close(o.done)
	}
}

// runOp runs o inside the open transaction. A failed op leaves no trace in it,
// or marks it as spoilt.
func (w *writer) runOp(o *op) (err error) {
	t := w.tx
	t.startOp()
	if !o.plain {
		if err := t.savepoint(); err != nil {
			return err
		}
	}
	err = runGuarded(o, t)
	switch {
	case err == nil:
		t.keepCounts()
		if !o.plain {
			err = t.release()
		}
	case o.plain:
		t.spoilt = t.wrote
	case t.wrote:
		if rerr := t.rollbackTo(); rerr != nil {
			t.spoilt = true
			return errors.Join(err, rerr)
		}
	default:
		if rerr := t.release(); rerr != nil {
			t.spoilt = true
			return errors.Join(err, rerr)
		}
	}
	return err
}

// runGuarded turns a panic of one op into its error: the writer serves all.
func runGuarded(o *op, t *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{What: o.what, Value: fmt.Sprintf("%T", p), Stack: debug.Stack()}
			if re, ok := p.(runtime.Error); ok {
				err.(*PanicError).Value = re.Error()
			}
		}
	}()
	return o.run(t)
}

// PanicError is a panic that was contained. Value is a runtime error's text or
// the type of what was thrown, never its content.
type PanicError struct {
	What, Value string
	Stack       []byte
}

func (p *PanicError) Error() string { return "panic in " + p.What + ": " + p.Value }

func (w *writer) fail(ops []*op, err error) {
	for _, o := range ops {
		if o.state.CompareAndSwap(opQueued, opTaken) || o.state.Load() == opTaken {
			o.err = errors.Join(errUnavailable, err)
			close(o.done)
		}
	}
}

func (w *writer) rollback() {
	if err := w.tx.rollback(); err != nil {
		// SQLite has rolled back by itself on some errors (full, I/O).
		w.log.Debug("store: rollback after a failure", "err", err)
	}
}

// environmental says whether err is about the machine (disk, locks) and not
// about the op: then the whole group fails, and none of its rows is to blame.
func environmental(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CORRUPT,
		sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// isFull says whether err is that the disk has no room.
func isFull(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_FULL
}

// Transient says whether err is about the machine and not about the row: a
// locked database, a full disk, a shutdown. Such a failure never counts as an
// attempt (design.md §4).
func Transient(err error) bool {
	p, ok := AsProblem(err)
	return ok && p.Code == CodeUnavailable || environmental(err) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
