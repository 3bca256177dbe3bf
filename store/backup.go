package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// BackupInfo is what a backup holds.
type BackupInfo struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	Events   int64  `json:"events"`
	BackupAt Time   `json:"backup_at"`
}

const (
	// backupStep is how many pages (4 KiB each) are copied before accepts have
	// their turn at the disk.
	backupStep = 256
	// backupSync is after how many pages the copy is fsynced: all of it at the
	// end would hold up the fsync of every accept for seconds.
	backupSync = 16 * backupStep
	// maxBackupPause bounds the rest after a step, which is as long as the step.
	maxBackupPause = 50 * time.Millisecond
)

// Meta keys of a copy's life. A file that is held sends nothing.
const (
	metaHeld       = "held"
	metaBackupAt   = "backup_at"
	metaRestoredAt = "restored_at"
)

// Backup writes a copy of the file to path while others read and write: the
// state of one moment, with every event that was acknowledged before it began.
// The copy is written beside path, marked as held, checked whole, fsynced, and
// only then takes the name, mode 0600: a file at path is either the old one or
// a good copy. tell is told how many pages of how many are copied.
//
// The snapshot is held while it is copied, so that the -wal file grows by what
// is written meanwhile, and shrinks again after it. SQLite's backup interface on
// a connection that writes would need none, but starts over whenever another
// process writes.
func (s *Store) Backup(ctx context.Context, path string, tell func(done, total int)) (_ BackupInfo, err error) {
	if err := s.refuseOwn(path); err != nil {
		return BackupInfo{}, err
	}
	part, err := newPart(path)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("backup to %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("backup to %s: %w", path, err)
			_ = os.Remove(part) // what it was for has failed already
			_ = os.Remove(part + "-journal")
		}
	}()
	at := At(s.opt.Now())
	if err := s.copyPages(ctx, part, tell); err != nil {
		return BackupInfo{}, err
	}
	info := BackupInfo{Path: path, BackupAt: at}
	err = inCopy(ctx, part, func(db *sql.DB) error {
		if err := setMeta(ctx, db, metaHeld, "1"); err != nil {
			return err
		}
		if err := setMeta(ctx, db, metaBackupAt, strconv.FormatInt(int64(at), 10)); err != nil {
			return err
		}
		if err := checkCopy(ctx, db); err != nil {
			return err
		}
		return db.QueryRowContext(ctx, `SELECT count(*) FROM events`).Scan(&info.Events)
	})
	if err != nil {
		return BackupInfo{}, err
	}
	if info.Bytes, err = place(part, path); err != nil {
		return BackupInfo{}, err
	}
	return info, nil
}

// refuseOwn refuses to write over what the service itself uses.
func (s *Store) refuseOwn(path string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("backup to %s: %w; create the directory first", path, err)
	}
	target := filepath.Join(dir, filepath.Base(path))
	for _, end := range []string{"", "-wal", "-shm", "-journal", ".lock", ".token", ".reserve"} {
		own := s.opt.Path + end
		ownDir, err := filepath.EvalSymlinks(filepath.Dir(own))
		if err != nil {
			return err
		}
		same := filepath.Join(ownDir, filepath.Base(own)) == target
		a, errA := os.Stat(own)
		b, errB := os.Stat(path)
		if same || errA == nil && errB == nil && os.SameFile(a, b) {
			return fmt.Errorf("backup to %s: that is the service's own %s; name another file", path, filepath.Base(own))
		}
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("backup to %s: it is not a file; name one", path)
	}
	return nil
}

// newPart makes an empty file beside path, which only this user can read.
func newPart(path string) (string, error) {
	part := fmt.Sprintf("%s.part-%08x", path, rand.Uint32())
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return "", err
	}
	return part, f.Close()
}

// copyPages copies one snapshot of the file into part.
func (s *Store) copyPages(ctx context.Context, part string, tell func(done, total int)) error {
	pool, err := openPool(s.opt, true)
	if err != nil {
		return err
	}
	defer pool.Close()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// The snapshot begins with the first read in the transaction.
	if _, err := conn.ExecContext(ctx, "BEGIN DEFERRED"); err != nil {
		return err
	}
	defer func() { _, _ = conn.ExecContext(background, "ROLLBACK") }() // it only read
	if err := conn.QueryRowContext(ctx, `SELECT count(*) FROM meta`).Scan(new(int)); err != nil {
		return err
	}
	synced, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer synced.Close()
	return conn.Raw(func(c any) (err error) {
		source, ok := c.(interface {
			NewBackup(string) (*sqlite.Backup, error)
		})
		if !ok {
			return errors.New("the driver makes no backups")
		}
		// No journal and no fsync of SQLite's: a copy that breaks off is thrown away.
		b, err := source.NewBackup(fileURL(part, "_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Finish()) }()
		for n := 1; ; n++ {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			began := s.opt.Now()
			more, err := b.Step(backupStep)
			if err != nil {
				return err
			}
			if n%(backupSync/backupStep) == 0 {
				if err := synced.Sync(); err != nil {
					return err
				}
			}
			tell(b.PageCount()-b.Remaining(), b.PageCount())
			if !more {
				return nil
			}
			rest := time.NewTimer(min(s.opt.Now().Sub(began), maxBackupPause))
			select {
			case <-rest.C:
			case <-ctx.Done():
				rest.Stop()
			}
		}
	})
}

// fileURL is path as SQLite opens it.
func fileURL(path, query string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	p := filepath.ToSlash(abs)
	if runtime.GOOS == "windows" {
		p = "/" + p
	}
	return "file://" + (&url.URL{Path: p}).EscapedPath() + "?" + query
}

// inCopy opens a copy alone, without a -wal, and closes it.
func inCopy(ctx context.Context, path string, fn func(db *sql.DB) error) (err error) {
	db, err := sql.Open("sqlite", fileURL(path, "_pragma=journal_mode(DELETE)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.PingContext(ctx); err != nil {
		return err
	}
	return fn(db)
}

func setMeta(ctx context.Context, db *sql.DB, key, value string) error {
	_, err := db.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}

// checkCopy reads all of a copy and says what is wrong with it.
func checkCopy(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `PRAGMA integrity_check(5)`)
	lines, err := collect(rows, err, func(r *sql.Rows, line *string) error { return r.Scan(line) })
	if err != nil {
		return fmt.Errorf("the copy cannot be read: %w", err)
	}
	if !slices.Equal(lines, []string{"ok"}) {
		return fmt.Errorf("the copy is damaged: %s", cut(strings.Join(lines, "; ")))
	}
	return nil
}

// place makes part the file at path, so that a crash leaves the old one or the
// new one, and returns its size.
func place(part, path string) (int64, error) {
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	st, err := f.Stat()
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return 0, err
	}
	if err := os.Rename(part, path); err != nil {
		return 0, err
	}
	return st.Size(), syncDir(filepath.Dir(path))
}

// syncDir makes renames in dir durable. Windows has no such call, and needs
// none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
