package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// fileLock is <db>.lock, held by the one process that serves the file. The
// operating system lets go of it when the process dies, however it dies; the
// text inside only says who holds it.
type fileLock struct {
	path string
	l    *flock.Flock
}

// lockPatience is how long a start waits for the lock.
const lockPatience = 250 * time.Millisecond

func takeLock(db, listen string, now time.Time) (*fileLock, error) {
	path := db + ".lock"
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	// A command that asks Serving holds it for a moment: that is no other serve.
	ctx, cancel := context.WithTimeout(background, lockPatience)
	defer cancel()
	ok, err := l.TryLockContext(ctx, lockPatience/25)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("lock %s (as uid %d): %w", path, os.Getuid(), err)
	}
	if !ok {
		who := "another process"
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			who = strings.TrimSpace(string(b))
		}
		return nil, fmt.Errorf("%s is in use: %s holds %s; stop it first, or use another --db", db, who, path)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	// Only words for a person: where the file cannot be written while it is
	// locked (Windows), the lock itself still holds.
	_ = os.WriteFile(path, fmt.Appendf(nil, "pid %d on %s, listening on %s, since %s\n",
		os.Getpid(), host, listen, now.UTC().Format(time.RFC3339)), 0o600)
	return &fileLock{path: path, l: l}, nil
}

// release lets go. The file stays: removing it would let two processes lock
// two different files of one name.
func (f *fileLock) release() error { return f.l.Close() }

// Serving reports whether a process serves the file at db, by trying its lock
// for a moment. Where that cannot be tried, it says true: who then waits for
// serve waits in vain, and no longer than it meant to.
func Serving(db string) bool {
	l := flock.New(db+".lock", flock.SetFlag(os.O_RDONLY)) // not made if it is not there
	free, err := l.TryRLock()                              // shared: those who ask do not see each other
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if free {
		err = l.Close()
	}
	return !free || err != nil
}

// Serving reports whether a process serves the file of s.
func (s *Store) Serving() bool { return Serving(s.opt.Path) }

// probe finds out, before SQLite does, why the file cannot be used, and says so
// with the path and the user.
func probe(o Options) error {
	say := func(path string, err error) error {
		hint := ""
		switch {
		case errors.Is(err, fs.ErrPermission):
			hint = "; give this user write access to the file and its directory (SQLite keeps -wal and -shm beside it)"
		case errors.Is(err, fs.ErrNotExist):
			hint = "; create the directory first"
		}
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return fmt.Errorf("cannot use the database %s as uid %d: %s: %w%s", o.Path, os.Getuid(), path, err, hint)
	}
	if o.Path == "" || strings.HasPrefix(o.Path, ":memory:") || strings.HasPrefix(o.Path, "file:") {
		return fmt.Errorf("the database must be a plain file path, not %q", o.Path)
	}
	if o.Mode == Client {
		if _, err := os.Stat(o.Path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("no database at %s: start `paidonce serve` once to make it, or name another with --db", o.Path)
			}
			return say(o.Path, err)
		}
	}
	dir := filepath.Dir(o.Path)
	if st, err := os.Stat(dir); err != nil {
		return say(dir, err)
	} else if !st.IsDir() {
		return say(dir, errors.New("is not a directory"))
	}
	f, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return say(o.Path, err)
	}
	if err := f.Close(); err != nil {
		return say(o.Path, err)
	}
	if o.Mode == Client {
		return nil
	}
	t, err := os.CreateTemp(dir, ".paidonce-probe-*")
	if err != nil {
		return say(dir, err)
	}
	return errors.Join(t.Close(), os.Remove(t.Name()))
}
