package store

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryConnectionHasItsPragmas(t *testing.T) {
	s := openTest(t)
	// What P1 rests on is said here once more, so that the table above the
	// code cannot change alone: 2 is FULL, an fsync at every COMMIT.
	for name, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "5000"} {
		if i := slices.IndexFunc(pragmas, func(p struct{ name, set, want string }) bool { return p.name == name && p.want == want }); i < 0 {
			t.Errorf("PRAGMA %s is not %s any more", name, want)
		}
	}
	for i := range 4 { // as many as the read pool may have, at once
		conn, err := s.reads.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, p := range append(pragmas, struct{ name, set, want string }{"query_only", "", "1"}) {
			var got string
			if err := conn.QueryRowContext(t.Context(), "PRAGMA "+p.name).Scan(&got); err != nil || got != p.want {
				t.Errorf("reader %d: PRAGMA %s = %q, %v, want %q", i, p.name, got, err, p.want)
			}
		}
		if _, err := conn.ExecContext(t.Context(), `DELETE FROM events`); err == nil {
			t.Error("a reader may write")
		}
	}
	err := s.w.write(t.Context(), "look", func(tx *Tx) error {
		for _, p := range pragmas {
			var got string
			if _, err := one(tx, "PRAGMA "+p.name, nil, &got); err != nil || got != p.want {
				t.Errorf("writer: PRAGMA %s = %q, %v, want %q", p.name, got, err, p.want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPragmaThatDoesNotTakeIsRefused(t *testing.T) {
	s := openTest(t)
	bad := &connector{dsn: "file://" + s.opt.Path, path: s.opt.Path, want: [][2]string{{"synchronous", "3"}}}
	pool := sql.OpenDB(bad)
	defer pool.Close()
	if err := pool.PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), `PRAGMA synchronous is "2", not "3"`) {
		t.Errorf("ping = %v, want the pragma that is wrong", err)
	}
}

func reopen(t *testing.T, o Options, change func(*Options)) error {
	t.Helper()
	if change != nil {
		change(&o)
	}
	s, err := Open(t.Context(), o)
	if err == nil {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	return err
}

func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		break_ func(t *testing.T, db *sql.DB)
		change func(*Options)
		want   []string
	}{
		{"nothing, when nothing changed", nil, nil, nil},
		{"a file from a newer paidonce", func(t *testing.T, db *sql.DB) {
			run(t, db, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99990101, 1)`)
		}, nil, []string{"schema version 99990101", "install the newer paidonce"}},
		{"a file of the other mode", nil, func(o *Options) { o.Env = "live" }, []string{"INTEGRATION_ENV=sandbox", "this is live"}},
		{"a source under another scope", nil, func(o *Options) { o.Scopes = map[string]string{"stripe": "stripe:acct_1:test"} },
			[]string{`"stripe" was stripe:self:test`, "stripe:acct_1:test now"}},
		{"another program's file", func(t *testing.T, db *sql.DB) { run(t, db, `PRAGMA application_id = 7`) }, nil,
			[]string{"another program"}},
		{"no database at all", nil, func(o *Options) {
			o.Path += ".txt"
			if err := os.WriteFile(o.Path, []byte("a shopping list"), 0o600); err != nil {
				panic(err)
			}
		}, []string{"not a SQLite database", "--db"}},
		{"a directory", nil, func(o *Options) { o.Path = filepath.Dir(o.Path) }, []string{"is a directory"}},
		{"a place that is not there", nil, func(o *Options) { o.Path = filepath.Join(filepath.Dir(o.Path), "no", "x.db") },
			[]string{"no such file", "create the directory"}},
		{"a database in memory", nil, func(o *Options) { o.Path = ":memory:" }, []string{"plain file path"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openTest(t)
			o := crash(t, s)
			if tt.break_ != nil {
				db, err := openPool(o, false)
				if err != nil {
					t.Fatal(err)
				}
				tt.break_(t, db)
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			err := reopen(t, o, tt.change)
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("Open = %v, want an error with %q", err, tt.want)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("Open = %v, want it to say %q", err, w)
				}
			}
		})
	}
}

func run(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func TestANewerFileIsErrTooNew(t *testing.T) {
	s := openTest(t)
	o := crash(t, s)
	db, err := openPool(o, false)
	if err != nil {
		t.Fatal(err)
	}
	run(t, db, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99990101, 1)`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := reopen(t, o, nil); !errors.Is(err, ErrTooNew) {
		t.Errorf("serve: %v, want ErrTooNew", err)
	}
	if err := reopen(t, o, func(o *Options) { o.Mode = Client }); !errors.Is(err, ErrTooNew) {
		t.Errorf("client: %v, want ErrTooNew", err)
	}
}

func TestASecondServeIsToldWhoHoldsTheFile(t *testing.T) {
	s := openTest(t, func(o *Options) { o.Listen = "127.0.0.1:8080" })
	err := reopen(t, s.opt, nil)
	for _, want := range []string{s.opt.Path + " is in use", "pid ", "127.0.0.1:8080", ".lock"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("second serve: %v, want it to say %q", err, want)
		}
	}
	if err := reopen(t, s.opt, func(o *Options) { o.Mode = Client }); err != nil {
		t.Errorf("a client beside serve: %v", err)
	}
}

func TestAClientNeitherMakesNorMigratesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.db")
	s := openTest(t)
	o := s.opt
	o.Mode, o.Path = Client, path
	if err := reopen(t, o, nil); err == nil || !strings.Contains(err.Error(), "start `paidonce serve` once") {
		t.Errorf("client without a file: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the client made the file: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reopen(t, o, nil); err == nil || !strings.Contains(err.Error(), "schema version 0") {
		t.Errorf("client with an empty file: %v", err)
	}
}

func TestAfterACleanEndNoWALIsLeft(t *testing.T) {
	s := openTest(t)
	mustAdd(t, s, "evt_1")
	count(t, s, `SELECT count(*) FROM events`) // so that a reader is open
	o := crash(t, s)
	if _, err := os.Stat(o.Path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("-wal after Close: %v, want it to be gone", err)
	}
}

func TestAMigrationThatFailsLeavesTheFileAsItWas(t *testing.T) {
	s := openTest(t)
	o := s.opt
	o.Path = filepath.Join(t.TempDir(), "old.db")
	db, err := openPool(o, false)
	if err != nil {
		t.Fatal(err)
	}
	run(t, db, `PRAGMA application_id = 1885432164`)
	run(t, db, `CREATE TABLE orders (x)`) // in the way
	for range 2 {
		if err := reopen(t, o, nil); err == nil || !strings.Contains(err.Error(), "migrate "+o.Path) {
			t.Fatalf("Open = %v, want the migration to fail", err)
		}
		var n int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM sqlite_master WHERE name = 'events'`).Scan(&n); err != nil || n != 0 {
			t.Fatalf("half a schema: %d, %v", n, err)
		}
	}
	run(t, db, `DROP TABLE orders`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := reopen(t, o, nil); err != nil {
		t.Errorf("Open once the way is free: %v", err)
	}
}
