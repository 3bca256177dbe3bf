package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// fakeTrail is a trail in memory: where a test has to stop between two steps,
// a thousand times over.
type fakeTrail struct {
	mu     sync.Mutex
	lines  []store.AuditLine
	cursor int64
	lost   error // AuditCopied fails with it: the process died before the commit
	calls  int
}

func (f *fakeTrail) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		seq := f.cursor + int64(len(f.lines)) + 1
		f.lines = append(f.lines, store.AuditLine{Seq: seq, At: store.Time(1796115600000 + seq), Kind: "act", Operation: "ack",
			Order: "ORD-" + fmt.Sprint(seq), Detail: `a "quote", a \ and a line` + "\n" + `{"seq":1}`, Actor: "api"})
	}
}

func (f *fakeTrail) AuditCursor(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.cursor, nil
}

func (f *fakeTrail) AuditAfter(_ context.Context, seq int64, limit int) ([]store.AuditLine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var some []store.AuditLine
	for _, l := range f.lines {
		if l.Seq > seq && len(some) < limit {
			some = append(some, l)
		}
	}
	return some, nil
}

func (f *fakeTrail) AuditCopied(_ context.Context, seq int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil {
		return f.lost
	}
	f.cursor = seq
	f.lines = slices.DeleteFunc(f.lines, func(l store.AuditLine) bool { return l.Seq <= seq })
	return nil
}

// copyAll makes passes until there is nothing more, as a start does.
func copyAll(t *testing.T, s AuditStore, path string) {
	t.Helper()
	a := NewAuditCopy(AuditConfig{Store: s, Path: path, Log: quiet})
	for more := true; more; {
		var err error
		if more, err = a.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantLines checks that the file holds exactly the lines from to to.
func wantLines(t *testing.T, path string, from, to int64) {
	t.Helper()
	text := string(readFile(t, path))
	if !strings.HasSuffix(text, "\n") {
		t.Errorf("the file ends in the middle of a line: %q", text)
	}
	next := from
	for line := range strings.Lines(text) {
		var l store.AuditLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if l.Seq != next {
			t.Fatalf("seq %d; want %d in\n%s", l.Seq, next, text)
		}
		next++
	}
	if next != to+1 {
		t.Errorf("the last line is %d; want %d", next-1, to)
	}
}

// TestACopyThatWasCutOffAnywhereIsMended stops the copy before its cursor is
// kept, with the file written up to every length that there is.
func TestACopyThatWasCutOffAnywhereIsMended(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	f := &fakeTrail{}
	f.add(3)
	copyAll(t, f, whole)
	want := readFile(t, whole)
	first := bytes.IndexByte(want, '\n') + 1
	for _, tt := range []struct {
		name   string
		cursor int64 // kept before
		from   int   // the least that is in the file then
		tail   string
	}{
		{"from the very first line", 0, 0, ""},
		{"after a line whose cursor was kept", 1, first, ""},
		{"zeros where the rest would be", 0, 0, strings.Repeat("\x00", 100)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for size := tt.from; size <= len(want); size++ {
				if testing.Short() && size%7 != 0 && size != len(want) {
					continue
				}
				path := filepath.Join(t.TempDir(), "trail")
				if err := os.WriteFile(path, append(slices.Clone(want[:size]), tt.tail...), 0o600); err != nil {
					t.Fatal(err)
				}
				f := &fakeTrail{}
				f.add(3)
				f.cursor, f.lines = tt.cursor, f.lines[tt.cursor:]
				copyAll(t, f, path)
				if got := readFile(t, path); !bytes.Equal(got, want) {
					t.Fatalf("cut at %d, the file is\n%s\nwant\n%s", size, got, want)
				}
				if f.cursor != 3 || len(f.lines) != 0 {
					t.Fatalf("cut at %d, the cursor is %d and %d lines are left", size, f.cursor, len(f.lines))
				}
			}
		})
	}
}

func TestACursorThatIsNotKeptCostsNoLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trail")
	f := &fakeTrail{lost: errors.New("the database is locked")}
	a := NewAuditCopy(AuditConfig{Store: f, Path: path, Log: quiet})
	for range 3 {
		f.add(2)
		if _, err := a.pass(t.Context()); err == nil {
			t.Fatal("no error")
		}
	}
	f.lost = nil
	copyAll(t, f, path)
	wantLines(t, path, 1, 6)
}

func TestAFullBatchMeansThatThereIsMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trail")
	f := &fakeTrail{}
	f.add(2*auditBatch + 1)
	a := NewAuditCopy(AuditConfig{Store: f, Path: path, Log: quiet})
	for i, want := range []bool{true, true, false} {
		if more, err := a.pass(t.Context()); more != want || err != nil {
			t.Errorf("pass %d: more %v, %v; want %v", i, more, err, want)
		}
	}
	wantLines(t, path, 1, 2*auditBatch+1)
}

// TestTheTrailIsCopiedFromTheRealStore goes through several batches and a start.
func TestTheTrailIsCopiedFromTheRealStore(t *testing.T) {
	s, _ := storetest.Open(t, func(o *store.Options) { o.Audit = true })
	path := filepath.Join(t.TempDir(), "trail")
	n := int64(2*auditBatch + 3)
	if testing.Short() {
		n = 20
	}
	write := func(n int64) {
		for i := range n {
			if _, err := s.SetStock(t.Context(), "", "mug", i); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(n)
	copyAll(t, s, path)
	wantLines(t, path, 1, n)
	left, err := s.AuditAfter(t.Context(), 0, 10)
	if err != nil || len(left) != 0 {
		t.Errorf("%d lines are left in the database, %v; want none", len(left), err)
	}
	write(2)
	copyAll(t, s, path)
	wantLines(t, path, 1, n+2)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestAFileThatWasTakenAwayIsBegunAnew(t *testing.T) {
	for _, tt := range []struct {
		name string
		take func(t *testing.T, path string)
		from int64
	}{
		{"renamed", func(t *testing.T, path string) {
			if err := os.Rename(path, path+".1"); err != nil {
				t.Fatal(err)
			}
		}, 4},
		{"emptied", func(t *testing.T, path string) {
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		}, 4},
		{"cut to its first lines", func(t *testing.T, path string) {
			b := readFile(t, path)
			if err := os.WriteFile(path, b[:bytes.IndexByte(b, '\n')+1], 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trail")
			f := &fakeTrail{}
			f.add(3)
			copyAll(t, f, path)
			tt.take(t, path)
			copyAll(t, f, path) // nothing to write: nothing is made
			f.add(2)
			copyAll(t, f, path)
			if tt.from == 4 {
				wantLines(t, path, 4, 5)
				return
			}
			var seqs []int64
			for line := range strings.Lines(string(readFile(t, path))) {
				var l store.AuditLine
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatal(err)
				}
				seqs = append(seqs, l.Seq)
			}
			if !slices.Equal(seqs, []int64{1, 4, 5}) {
				t.Errorf("lines %v; want what was left, and then the new ones", seqs)
			}
		})
	}
}

// TestAfterARestoreNoLineIsMissing: the file ends with a number that stands for
// something else in the restored database, or for nothing yet.
func TestAfterARestoreNoLineIsMissing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines int // in the file, of the life that was lost
	}{
		{"a number that the database gives to something else", 3},
		{"a number that it has not come to", 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trail")
			other := &fakeTrail{}
			other.add(tt.lines)
			for i := range other.lines {
				other.lines[i].Operation = "forget"
			}
			copyAll(t, other, path)
			f := &fakeTrail{}
			f.add(4)
			copyAll(t, f, path)
			if got := strings.Count(string(readFile(t, path)), `"operation":"ack"`); got != 4 {
				t.Errorf("%d of the 4 lines were copied", got)
			}
		})
	}
}

func TestWhatIsNoTrailIsLeftAlone(t *testing.T) {
	for _, tt := range []struct {
		name, content string
	}{
		{"a database", "SQLite format 3\x00\x10\x00\x01\x01"},
		{"somebody's notes", "buy milk\n"},
		{"notes without an end", "buy milk"},
		{"JSON of another kind", `{"seq":0}` + "\n"},
		{"one line that has no end", `{"seq":1` + strings.Repeat("x", auditTail)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trail")
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			f := &fakeTrail{}
			f.add(1)
			_, err := NewAuditCopy(AuditConfig{Store: f, Path: path, Log: quiet}).pass(t.Context())
			if err == nil || !strings.Contains(err.Error(), "left alone") {
				t.Errorf("err %v", err)
			}
			if got := readFile(t, path); string(got) != tt.content || f.cursor != 0 {
				t.Errorf("the file was changed, or the cursor moved to %d", f.cursor)
			}
		})
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	f := &fakeTrail{}
	f.add(1)
	if _, err := NewAuditCopy(AuditConfig{Store: f, Path: dir, Log: quiet}).pass(t.Context()); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a directory: %v", err)
	}
}

func TestAPathThatCannotBeWrittenHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		path := filepath.Join(dir, "trail")
		var out bytes.Buffer
		f := &fakeTrail{}
		f.add(2)
		a := NewAuditCopy(AuditConfig{Store: f, Path: path, Log: slog.New(slog.NewTextHandler(&out, nil))})
		stop, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(stop, t.Context()) }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		lines := strings.Count(out.String(), `level=WARN msg="worker: audit trail not copied, it waits in the database"`)
		if lines < 10 || lines > 20 {
			t.Errorf("%d lines in ten minutes; want one a minute in the end:\n%s", lines, out.String())
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		wantLines(t, path, 1, 2)
		f.add(1)
		time.Sleep(time.Second) // and it is as quick as before
		synctest.Wait()
		wantLines(t, path, 1, 3)
		f.add(2)
		cancel() // what is there at the stop is copied too
		if err := <-ended; err != nil {
			t.Errorf("Run = %v; want nil after a stop", err)
		}
		wantLines(t, path, 1, 5)
	})
}

func TestAFileWithoutNewsIsNotTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trail")
	f := &fakeTrail{}
	copyAll(t, f, path)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("made without a line: %v", err)
	}
}
