package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
)

// backupBook writes empty files for backups, or fails.
type backupBook struct {
	fail  error
	made  []string
	noted []string
}

func (b *backupBook) Backup(_ context.Context, path string, _ func(int, int)) (store.BackupInfo, error) {
	if b.fail != nil {
		return store.BackupInfo{}, b.fail
	}
	b.made = append(b.made, filepath.Base(path))
	return store.BackupInfo{}, os.WriteFile(path, nil, 0o600)
}

func (b *backupBook) NoteBackup(_ context.Context, failure error) error {
	said := "good"
	if failure != nil {
		said = failure.Error()
	}
	b.noted = append(b.noted, said)
	return nil
}

// TestBackupsComeInTheirTime: one a day, counted from the newest that is there,
// also across a restart; only old ones of ours go.
func TestBackupsComeInTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"paidonce-1.db", "other.db", "paidonce-20000101T000000Z.db.part-1"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b := &backupBook{}
		run := func(d time.Duration) {
			ctx, cancel := context.WithCancel(t.Context())
			w := NewBackups(BackupsConfig{Store: b, Dir: dir, Every: 24 * time.Hour, Keep: 2, Now: time.Now,
				Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx, context.Background()) }()
			time.Sleep(d)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		run(time.Hour) // one at once
		run(time.Hour) // a restart makes none
		if len(b.made) != 1 {
			t.Errorf("made %v after two hours and a restart", b.made)
		}
		run(3*24*time.Hour - time.Hour) // at 24, 48 and 72 hours: the last one is a minute away
		if len(b.made) < 3 || len(b.made) > 4 {
			t.Errorf("made %v in three days", b.made)
		}
		var left []string
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, e.Name())
		}
		for _, name := range append([]string{"paidonce-1.db", "other.db"}, b.made[len(b.made)-2:]...) {
			if !slices.Contains(left, name) {
				t.Errorf("%s is gone; there are %v", name, left)
			}
		}
		if len(left) != 5 {
			t.Errorf("%v are left", left)
		}
		b.fail = errors.New("disk full")
		run(25 * time.Hour)
		if n := len(b.noted); n < 2 || !strings.Contains(b.noted[n-1], "disk full") || b.noted[0] != "good" {
			t.Errorf("noted %v", b.noted)
		}
		b.fail = nil
		run(time.Hour)
		if b.noted[len(b.noted)-1] != "good" {
			t.Errorf("noted %v", b.noted)
		}
	})
}
