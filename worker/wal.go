package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"paidonce/store"
)

// WALStore is what the watch over the -wal file needs of the store.
type WALStore interface {
	TendWAL(ctx context.Context) (bytes int64, err error)
	Find(ctx context.Context, name string, found []store.Finding) error
}

// WALConfig is what main decides for it.
type WALConfig struct {
	Store WALStore
	Log   *slog.Logger
	Every time.Duration // between two looks; 0 is two seconds
}

// WAL keeps the -wal file small, and says so when it cannot: while another
// program holds a snapshot, it grows with every write.
type WAL struct{ cfg WALConfig }

// NewWAL returns a WAL that has not begun.
func NewWAL(cfg WALConfig) *WAL {
	if cfg.Every == 0 {
		cfg.Every = 2 * time.Second
	}
	return &WAL{cfg: cfg}
}

// walPatience is how many looks in a row must find it large: one may fall
// between a burst of writes and SQLite's own checkpoint.
const walPatience = 3

// Run looks again and again until stop or work is done.
func (w *WAL) Run(stop, work context.Context) error {
	large := 0
	return every(stop, work, w.cfg.Every, func(failures int) (bool, error) {
		size, err := w.cfg.Store.TendWAL(work)
		if err != nil && work.Err() == nil {
			w.cfg.Log.WarnContext(work, "worker: -wal not looked after", "err", err, "failures", failures+1)
			return false, err
		}
		var found []store.Finding
		if size <= store.WALLimit {
			large = 0
		} else if large++; large >= walPatience {
			// In powers of two, so that its growth is not news each time.
			n := int64(store.WALLimit)
			for n*2 <= size {
				n *= 2
			}
			found = []store.Finding{{Thing: "-wal", Text: fmt.Sprintf("it has grown beyond %d MiB: another program holds a snapshot", n>>20)}}
		}
		return false, w.cfg.Store.Find(work, store.AlertWAL, found)
	})
}
