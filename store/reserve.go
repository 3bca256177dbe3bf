package store

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// A disk that is full takes no webhook, and no word of it either: an alert is a
// row like any other. So the service keeps a file of some room beside the
// database, and lets go of it when an alert cannot be written. From then on the
// room is for alerts alone: webhooks are refused, as before, until there is
// enough for the reserve again.

// reserveBytes is the room for alerts, their effects and what is noted of them.
const reserveBytes = 2 << 20

// reserve is <db>.reserve.
type reserve struct {
	path string

	mu    sync.Mutex
	gone  bool // it was let go of
	tried time.Time
}

// hold makes the file, of real blocks. Where there is no room for it there is
// none, and nothing fails: it is tried again when it matters.
func (r *reserve) hold() error {
	if st, err := os.Stat(r.path); err == nil && st.Size() == reserveBytes {
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, reserveBytes))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(r.path))
	}
	return nil
}

// release lets go of the room, and reports whether there was any.
func (r *reserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.path == "" || r.gone {
		return false
	}
	r.gone = true
	return os.Remove(r.path) == nil
}

// closed reports whether webhooks are to be refused. Once a second it looks
// whether there is room again.
func (r *reserve) closed(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.gone {
		return false
	}
	if since := now.Sub(r.tried); since >= 0 && since < time.Second {
		return true
	}
	r.tried = now
	r.gone = r.hold() != nil
	return r.gone
}

// roomToTake refuses to take anything in while what room there is, is for alerts.
func (s *Store) roomToTake() error {
	if !s.spare.closed(s.opt.Now()) {
		return nil
	}
	s.w.fullAt.Store(int64(At(s.opt.Now())))
	return fmt.Errorf("the disk is full: %w", errUnavailable)
}
