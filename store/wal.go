package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// WALLimit is where the -wal file is brought back to (design.md §3). SQLite
// checkpoints by itself after every thousand pages; it cannot while somebody
// holds a snapshot, and does not once nobody writes any more.
const WALLimit = 64 << 20

// TendWAL brings the -wal file back under WALLimit if it can be, and returns its
// size in bytes. What is in it is copied to the file first, without the write
// lock; only the cut itself takes that, and gives up at once if somebody else
// has it or still reads from the -wal.
func (s *Store) TendWAL(ctx context.Context) (int64, error) {
	size, err := s.walSize()
	if err != nil || size <= WALLimit {
		return size, err
	}
	pool, err := openPool(s.opt, false)
	if err != nil {
		return size, err
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	if _, err := pool.ExecContext(ctx, "PRAGMA busy_timeout = 20"); err != nil {
		return size, err
	}
	for _, how := range []string{"PASSIVE", "TRUNCATE"} {
		var busy, log, copied int64
		if err := pool.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+how+")").Scan(&busy, &log, &copied); err != nil {
			return size, err
		}
		if log != copied { // a reader is in the way
			break
		}
	}
	return s.walSize()
}

func (s *Store) walSize() (int64, error) {
	st, err := os.Stat(s.opt.Path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
