package worker

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"paidonce/store"
)

// BackupStore is what the scheduled backups need of the store.
type BackupStore interface {
	Backup(ctx context.Context, path string, tell func(done, total int)) (store.BackupInfo, error)
	// NoteBackup keeps what came of one for the alert: nil is good.
	NoteBackup(ctx context.Context, failure error) error
}

// BackupsConfig is what main decides for them: [backup] of the TOML file.
type BackupsConfig struct {
	Store BackupStore
	Dir   string
	Every time.Duration
	Keep  int // how many stay
	Now   func() time.Time
	Log   *slog.Logger
	Poll  time.Duration // between two looks at the clock; 0 is 30 seconds
}

// Backups makes a backup every Every, counted from the newest one that is there,
// so that a restart neither skips one nor makes one more. Old ones beyond Keep
// go, once a new one is good; files of other names are never touched.
type Backups struct{ cfg BackupsConfig }

// NewBackups returns Backups that have not begun.
func NewBackups(cfg BackupsConfig) *Backups {
	if cfg.Poll == 0 {
		cfg.Poll = 30 * time.Second
	}
	return &Backups{cfg: cfg}
}

const backupLayout = "20060102T150405Z"

var backupName = regexp.MustCompile(`^paidonce-(\d{8}T\d{6}Z)\.db$`)

// Run makes backups until stop or work is done; one in hand is thrown away then.
func (b *Backups) Run(stop, work context.Context) error {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	defer context.AfterFunc(stop, cancel)()
	var retry time.Time
	err := every(stop, work, b.cfg.Poll, func(int) (bool, error) {
		now := b.cfg.Now()
		made, err := b.list()
		if err == nil && len(made) > 0 {
			if next := made[len(made)-1].at.Add(b.cfg.Every); now.Before(next) && next.Sub(now) <= b.cfg.Every {
				return false, nil
			}
		}
		if now.Before(retry) {
			return false, nil
		}
		if err == nil {
			err = b.make(ctx, now)
		}
		if ctx.Err() != nil {
			return false, nil
		}
		if err != nil {
			retry = now.Add(min(b.cfg.Every, 10*time.Minute))
			b.cfg.Log.ErrorContext(ctx, "worker: backup failed", "err", err, "next", retry)
		}
		if noted := b.cfg.Store.NoteBackup(ctx, err); noted != nil {
			b.cfg.Log.WarnContext(ctx, "worker: outcome of the backup not noted", "err", noted)
		}
		return false, nil
	})
	return err
}

func (b *Backups) make(ctx context.Context, now time.Time) error {
	name := "paidonce-" + now.UTC().Format(backupLayout) + ".db"
	info, err := b.cfg.Store.Backup(ctx, filepath.Join(b.cfg.Dir, name), func(int, int) {})
	if err != nil {
		return err
	}
	b.cfg.Log.InfoContext(ctx, "worker: backup made", "file", name, "bytes", info.Bytes, "events", info.Events)
	made, err := b.list()
	if err != nil {
		return err
	}
	for len(made) > b.cfg.Keep {
		if err := os.Remove(filepath.Join(b.cfg.Dir, made[0].name)); err != nil {
			return fmt.Errorf("remove an old backup: %w", err)
		}
		made = made[1:]
	}
	return nil
}

type madeBackup struct {
	name string
	at   time.Time
}

// list returns the backups that are there, the oldest first.
func (b *Backups) list() ([]madeBackup, error) {
	entries, err := os.ReadDir(b.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("read the directory of backups: %w; create it, for this user to write to", err)
	}
	var made []madeBackup
	for _, e := range entries {
		m := backupName.FindStringSubmatch(e.Name())
		if m == nil || e.Type()&fs.ModeType != 0 {
			continue
		}
		if at, err := time.Parse(backupLayout, m[1]); err == nil {
			made = append(made, madeBackup{e.Name(), at})
		}
	}
	slices.SortFunc(made, func(x, y madeBackup) int { return x.at.Compare(y.at) })
	return made, nil
}
