package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"paidonce/store"
)

// AuditStore is what the audit copy needs of the store.
type AuditStore interface {
	AuditCursor(ctx context.Context) (int64, error)
	AuditAfter(ctx context.Context, seq int64, limit int) ([]store.AuditLine, error)
	AuditCopied(ctx context.Context, seq int64) error
}

const (
	// auditBatch is how many lines one copy writes under one fsync.
	auditBatch = 500
	// auditTail is how much of the file's end is looked at; no line is as long.
	auditTail = 64 << 10
)

// AuditConfig is what main decides for the audit copy.
type AuditConfig struct {
	Store AuditStore
	Path  string // of the file, AUDIT_LOG_PATH; never empty
	Log   *slog.Logger
	Every time.Duration // between two looks; 0 is one second
}

// AuditCopy copies the audit trail out of the database into a file of one JSON
// object a line (NDJSON), for whoever keeps or watches such files.
//
// The lines stand in the database, committed with what they tell of, until they
// are in the file: they are appended, fsynced, and only then is the cursor
// moved past them and are they deleted. After a crash in between, the file's
// last line says how far it had come; half a line is cut off, and written again
// in full. So every line is there once, and in sequence: "seq" goes up by one.
//
// A file that was taken away, or emptied, is begun anew. One that does not look
// like a trail is not touched. A disk that is full, or a path that cannot be
// written, holds up nothing but the copy.
type AuditCopy struct{ cfg AuditConfig }

// NewAuditCopy returns an AuditCopy that has not begun.
func NewAuditCopy(cfg AuditConfig) *AuditCopy {
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	return &AuditCopy{cfg: cfg}
}

// Run copies until stop is done, then what is there at that moment, and returns
// nil. What is written down later is copied by the next start. An error never
// ends it.
func (a *AuditCopy) Run(stop, work context.Context) error {
	pass := func(failures int) (more bool, err error) {
		more, err = a.pass(work)
		if err != nil && work.Err() == nil {
			a.cfg.Log.WarnContext(work, "worker: audit trail not copied, it waits in the database", "err", err, "failures", failures+1)
		}
		return more, err
	}
	if err := every(stop, work, a.cfg.Every, pass); err != nil {
		return err
	}
	for more := true; more && work.Err() == nil; {
		var err error
		if more, err = pass(0); err != nil {
			break // the next start goes on here
		}
	}
	return context.Cause(work)
}

// pass copies one batch, and reports whether there may be more.
func (a *AuditCopy) pass(ctx context.Context) (more bool, err error) {
	cursor, err := a.cfg.Store.AuditCursor(ctx)
	if err != nil {
		return false, err
	}
	lines, err := a.cfg.Store.AuditAfter(ctx, cursor, auditBatch)
	if err != nil || len(lines) == 0 {
		return false, err
	}
	// Opened anew each time, so that one that was rotated away is let go of.
	f, err := openAudit(a.cfg.Path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	last, err := mendAudit(f, a.cfg.Path)
	if err != nil {
		return false, err
	}
	if last.Seq > cursor {
		there, err := a.holds(ctx, last)
		if err != nil {
			return false, err
		}
		if there { // it was written, but perhaps not to the disk, and its cursor was not
			if err := f.Sync(); err != nil {
				return false, fmt.Errorf("sync the audit file: %w", err)
			}
			return true, a.cfg.Store.AuditCopied(ctx, last.Seq)
		}
		a.cfg.Log.WarnContext(ctx, "worker: the audit file ends with a line that this database does not have; going on after it", "seq", last.Seq)
	}
	var text bytes.Buffer
	for _, l := range lines {
		b, err := json.Marshal(l)
		if err != nil {
			return false, fmt.Errorf("audit line %d: %w", l.Seq, err)
		}
		text.Write(append(b, '\n'))
	}
	if _, err := f.Write(text.Bytes()); err != nil {
		return false, fmt.Errorf("write the audit file: %w", err) // the next pass mends what there is of it
	}
	if err := f.Sync(); err != nil {
		return false, fmt.Errorf("sync the audit file: %w", err)
	}
	return len(lines) == auditBatch, a.cfg.Store.AuditCopied(ctx, lines[len(lines)-1].Seq)
}

// holds reports whether a line of the file is the database's own. After a
// restore the same number may stand for something else.
func (a *AuditCopy) holds(ctx context.Context, l store.AuditLine) (bool, error) {
	found, err := a.cfg.Store.AuditAfter(ctx, l.Seq-1, 1)
	return err == nil && len(found) == 1 && found[0] == l, err
}

// openAudit opens the file for appending, and makes it if it is not there:
// readable by its owner alone.
func openAudit(path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeAudit(path)
	case err != nil:
		return nil, fmt.Errorf("open the audit file: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open the audit file: %s is not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open the audit file: %w", err)
	}
	return f, nil
}

func makeAudit(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the audit file: %w", err)
	}
	// Its name must survive the machine's death as well as its lines do. Where
	// a directory cannot be synced (Windows), the file system sees to that.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return f, nil
}

// mendAudit returns the file's last whole line, after it has cut off a torn
// one. The zero line is an empty file. What is no trail is an error, and stays
// as it is.
func mendAudit(f *os.File, path string) (last store.AuditLine, err error) {
	info, err := f.Stat()
	if err != nil {
		return last, fmt.Errorf("read the audit file: %w", err)
	}
	size := info.Size()
	from := max(0, size-auditTail)
	tail := make([]byte, size-from)
	if _, err := f.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return last, fmt.Errorf("read the audit file: %w", err)
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	torn := tail[end:]
	if end == 0 && from > 0 || !couldBeTorn(torn) {
		return last, notATrail(path)
	}
	if end > 0 {
		begin := bytes.LastIndexByte(tail[:end-1], '\n') + 1
		if json.Unmarshal(tail[begin:end], &last) != nil || last.Seq < 1 {
			return store.AuditLine{}, notATrail(path)
		}
	}
	if len(torn) > 0 {
		whole := from + int64(end)
		err := f.Truncate(whole)
		if err != nil { // Windows does not cut a file that is open for appending
			err = os.Truncate(path, whole)
		}
		if err != nil {
			return last, fmt.Errorf("mend the audit file: %w", err)
		}
	}
	return last, nil
}

// couldBeTorn reports whether what follows the last newline may be the
// beginning of a line that was being written when the machine stopped: of ours,
// or of nothing but the zeros that a file system leaves.
func couldBeTorn(piece []byte) bool {
	const begin = `{"seq":`
	piece = bytes.TrimRight(piece, "\x00")
	n := min(len(piece), len(begin))
	return string(piece[:n]) == begin[:n]
}

func notATrail(path string) error {
	return fmt.Errorf("%s does not end like an audit trail: it is left alone; name another file in AUDIT_LOG_PATH, or move this one away", path)
}
