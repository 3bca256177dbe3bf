package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// RestoreOptions are what main decides for a restore.
type RestoreOptions struct {
	Path string // of the database to be
	From string // the backup: one of ours, or any whole copy of a database of ours
	Env  string // "sandbox" or "live"
	Now  func() time.Time
	// Testpoint is called between the steps, so that a test can end the process
	// there.
	Testpoint func(point string)
}

// RestoreInfo is what a restore did.
type RestoreInfo struct {
	From       string `json:"from"`
	BackupAt   Time   `json:"backup_at"` // 0: the copy does not say
	RestoredAt Time   `json:"restored_at"`
	Events     int64  `json:"events"`
	LastEvent  Time   `json:"last_event_at"`   // received
	Held       int64  `json:"held"`            // effects that had no end in the backup
	Aside      string `json:"aside,omitempty"` // what was there before
}

// Restore puts a backup in the place of the database. It refuses while somebody
// serves that. What was there is put aside under another name; the backup
// itself stays. From then on every effect is held, until [Store.Release]: what
// had no end in the backup may have happened since.
//
// A crash at any point leaves the old database or the new one under the name,
// whole, and never one beside the other's -wal.
func Restore(ctx context.Context, o RestoreOptions) (_ RestoreInfo, err error) {
	if o.Testpoint == nil {
		o.Testpoint = func(string) {}
	}
	if a, errA := os.Stat(o.Path); errA == nil {
		if b, errB := os.Stat(o.From); errB == nil && os.SameFile(a, b) {
			return RestoreInfo{}, fmt.Errorf("%s is the database itself; name a backup", o.From)
		}
	}
	if err := probe(Options{Path: o.Path, Mode: Serve}); err != nil {
		return RestoreInfo{}, err
	}
	lock, err := takeLock(o.Path, "nothing: it restores a backup", o.Now())
	if err != nil {
		return RestoreInfo{}, err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	part, err := newPart(o.Path)
	if err != nil {
		return RestoreInfo{}, fmt.Errorf("restore %s: %w", o.From, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore %s: %w", o.From, err)
			_ = os.Remove(part) // nothing of the old database has changed
		}
	}()
	if err := copyFile(o.From, part); err != nil {
		return RestoreInfo{}, err
	}
	o.Testpoint("restore:copied")
	info := RestoreInfo{From: o.From, RestoredAt: At(o.Now())}
	if err := inCopy(ctx, part, func(db *sql.DB) error { return prepareRestored(ctx, db, o.Env, &info) }); err != nil {
		return RestoreInfo{}, err
	}
	o.Testpoint("restore:prepared")
	if info.Aside, err = putAside(ctx, o, info.RestoredAt); err != nil {
		return RestoreInfo{}, err
	}
	o.Testpoint("restore:aside")
	if _, err := place(part, o.Path); err != nil {
		return RestoreInfo{}, err
	}
	return info, nil
}

// copyFile copies a backup. A -wal beside it means that it is a copy of a
// database in use, and not whole without it.
func copyFile(from, to string) (err error) {
	if st, err := os.Stat(from + "-wal"); err == nil && st.Size() > 0 {
		return errors.New("there is a -wal file beside it: it is no backup but a database in use, or a copy of one; make a backup of it with `paidonce backup`, or open it once with sqlite3 to put the two together")
	}
	in, err := os.Open(from)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// prepareRestored checks that the copy is a database of ours that this program
// can open, for this environment, and holds its effects.
func prepareRestored(ctx context.Context, db *sql.DB, env string, info *RestoreInfo) error {
	s := &Store{opt: Options{Path: info.From}, wdb: db}
	have, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	want, err := newestMigration()
	switch {
	case err != nil:
		return err
	case have == 0:
		return errors.New("it is not a database of paidonce")
	case have > want:
		return fmt.Errorf("it has schema version %d and this program knows %d: %w; install the newer paidonce again", have, want, ErrTooNew)
	}
	if err := checkCopy(ctx, db); err != nil {
		return err
	}
	meta := func(key string) (string, error) {
		var v string
		err := db.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, key).Scan(&v)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return v, err
	}
	was, err := meta("integration_env")
	if err != nil {
		return err
	}
	if was != "" && env != "" && was != env {
		return fmt.Errorf("it belongs to INTEGRATION_ENV=%s and this is %s: test and live money never share a file", was, env)
	}
	at, err := meta(metaBackupAt)
	if err != nil {
		return err
	}
	if at != "" {
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return fmt.Errorf("its %s is no time", metaBackupAt)
		}
		info.BackupAt = Time(n)
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*), coalesce(max(received_at), 0) FROM events`).Scan(&info.Events, &info.LastEvent); err != nil {
		return err
	}
	if err := setMeta(ctx, db, metaHeld, "1"); err != nil {
		return err
	}
	if err := setMeta(ctx, db, metaRestoredAt, strconv.FormatInt(int64(info.RestoredAt), 10)); err != nil {
		return err
	}
	if have < effectsSince {
		return nil
	}
	res, err := db.ExecContext(ctx, `
		UPDATE effects SET status = 'held', reason = ?, due_at = NULL, lease = lease + 1
		WHERE status IN ('pending', 'sending', 'unknown')`, reasonRestored)
	if err != nil {
		return err
	}
	info.Held, err = res.RowsAffected()
	return err
}

// effectsSince is the schema version from which on there are effects.
const effectsSince = 3

// putAside gives what is there a second name, together with a -wal that could
// not be put into it. The database itself keeps its first name until the new
// one takes it.
func putAside(ctx context.Context, o RestoreOptions, now Time) (string, error) {
	st, err := os.Stat(o.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() == 0 {
		return "", removeStale(o.Path)
	}
	if err != nil {
		return "", err
	}
	// A clean end puts the -wal into the file. It may be too damaged for that:
	// then all of it is put aside as it is.
	_ = inCopyOfWAL(ctx, o.Path)
	aside := o.Path + ".before-restore-" + now.Std().Format("20060102T150405Z")
	if _, err := os.Stat(aside); err == nil {
		return "", fmt.Errorf("%s is there already: move it away first", aside)
	}
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Rename(o.Path+end, aside+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	o.Testpoint("restore:wal-aside")
	if err := os.Link(o.Path, aside); err != nil {
		// A file system without links: a copy has the same worth.
		if f, err := os.OpenFile(aside, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return "", err
		} else if err := f.Close(); err != nil {
			return "", err
		}
		if err := copyFile(o.Path, aside); err != nil {
			return "", err
		}
	}
	return aside, nil
}

// removeStale takes away a -wal and a -shm that belong to no database: beside
// the new one they would be taken for its own.
func removeStale(path string) error {
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+end, path+end+".stale"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// inCopyOfWAL opens a database in WAL mode and closes it, by which its -wal is
// put into it.
func inCopyOfWAL(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", fileURL(path, "_pragma=busy_timeout(5000)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return errors.Join(err, db.Close())
}
