package store

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
)

// TestTheWALIsSmallAgainWhenAReaderLeaves: while another program holds a
// snapshot the -wal grows, and nothing waits for that; once it has gone one look
// brings it back, without another write.
func TestTheWALIsSmallAgainWhenAReaderLeaves(t *testing.T) {
	if testing.Short() {
		t.Skip("writes more than 64 MiB")
	}
	s := openTest(t)
	mustAdd(t, s, "evt_0")
	foreign, err := sql.Open("sqlite", fileURL(s.opt.Path, "_pragma=busy_timeout(5000)"))
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	tx, err := foreign.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(`SELECT count(*) FROM events`).Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	big := newEvent("")
	big.Body = make([]byte, 1<<20)
	for i := 0; ; i++ {
		if size, err := s.walSize(); err != nil || i > 200 {
			t.Fatalf("the -wal does not grow beyond %d: %v", size, err)
		} else if size > WALLimit+WALLimit/4 {
			break
		}
		big.ID = fmt.Sprintf("evt_big%d", i)
		if _, err := s.AddEvent(t.Context(), big); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := s.TendWAL(t.Context()); err != nil || size <= WALLimit {
		t.Errorf("while the snapshot is held: %d, %v", size, err)
	}
	mustAdd(t, s, "evt_meanwhile") // the look leaves no lock behind
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if size, err := s.TendWAL(context.Background()); err != nil || size > WALLimit {
		t.Errorf("after it has gone: %d, %v", size, err)
	}
	mustAdd(t, s, "evt_after")
}
