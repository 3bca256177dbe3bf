package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"paidonce/schema"
)

// applicationID marks a file as ours ("paid" in ASCII), so that another
// program's database is never migrated by mistake.
const applicationID = 0x70616964

// guard brings the file to this program's schema, or refuses it before a byte
// of it has changed. goose's own Up is silent on a file from the future.
func (s *Store) guard(ctx context.Context) error {
	have, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	want, err := newestMigration()
	if err != nil {
		return err
	}
	switch {
	case have > want:
		return fmt.Errorf("%s has schema version %d and this program knows %d: %w; install the newer paidonce again, or restore a backup made by this one",
			s.opt.Path, have, want, ErrTooNew)
	case have == want:
		return nil
	case s.opt.Mode == Client:
		return fmt.Errorf("%s has schema version %d and this program needs %d: start `paidonce serve` once to migrate it", s.opt.Path, have, want)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, s.wdb, schema.FS, goose.WithSlog(s.log), goose.WithVerbose(false))
	if err != nil {
		return fmt.Errorf("migrate %s: %w", s.opt.Path, err)
	}
	if have == 0 {
		// Before there is a table: later only a VACUUM could. Free space then goes
		// back to the disk in small steps (Purge).
		if _, err := s.wdb.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM"); err != nil {
			return fmt.Errorf("migrate %s: %w", s.opt.Path, err)
		}
		if _, err := s.wdb.ExecContext(ctx, "PRAGMA application_id = "+strconv.Itoa(applicationID)); err != nil {
			return fmt.Errorf("migrate %s: %w", s.opt.Path, err)
		}
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate %s from version %d: %w", s.opt.Path, have, err)
	}
	return nil
}

// schemaVersion is the newest migration that the file has; 0 is a new file.
func (s *Store) schemaVersion(ctx context.Context) (int64, error) {
	refuse := func(err error) error {
		var se *sqlite.Error
		if errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_NOTADB {
			return fmt.Errorf("%s is not a SQLite database, or it is damaged: name another file with --db, or restore a backup", s.opt.Path)
		}
		return fmt.Errorf("read %s: %w", s.opt.Path, err)
	}
	var appID, tables, versions int64
	err := s.wdb.QueryRowContext(ctx, `
		SELECT (SELECT application_id FROM pragma_application_id),
			(SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'),
			(SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version')`).Scan(&appID, &tables, &versions)
	if err != nil {
		return 0, refuse(err)
	}
	if tables > 0 && appID != applicationID {
		return 0, fmt.Errorf("%s is a database of another program: name another file with --db", s.opt.Path)
	}
	if versions == 0 {
		return 0, nil
	}
	var v int64
	if err := s.wdb.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied = 1`).Scan(&v); err != nil {
		return 0, refuse(err)
	}
	return v, nil
}

func newestMigration() (int64, error) {
	names, err := fs.Glob(schema.FS, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, errors.Join(errors.New("no migrations are embedded"), err)
	}
	digits, _, _ := strings.Cut(slices.Max(names), "_")
	return strconv.ParseInt(digits, 10, 64)
}

// remember ties the file to its environment and to the scope of each source:
// the same money would be new again under another scope, and would count twice.
func (s *Store) remember(ctx context.Context) error {
	return s.w.write(ctx, "remember the environment", func(t *Tx) error {
		if _, err := t.exec(`INSERT INTO meta (key, value) VALUES ('installed_at', ?) ON CONFLICT (key) DO NOTHING`,
			strconv.FormatInt(int64(t.now), 10)); err != nil {
			return err
		}
		var installed string
		if _, err := one(t, `SELECT value FROM meta WHERE key = 'installed_at'`, nil, &installed); err != nil {
			return err
		}
		at, err := strconv.ParseInt(installed, 10, 64)
		if err != nil {
			return fmt.Errorf("%s does not say when it was made: %w", s.opt.Path, err)
		}
		s.installed = Time(at)
		// What commands beside this process go by.
		for key, value := range map[string]string{"stripe_key": s.opt.StripeKey, "targets": jsonText(append([]string{}, s.opt.Targets...))} {
			if _, err := t.exec(`INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value); err != nil {
				return err
			}
		}
		if s.opt.Env != "" {
			had, err := keepMeta(t, "integration_env", s.opt.Env)
			if err != nil {
				return err
			}
			if had != s.opt.Env {
				return fmt.Errorf("%s belongs to INTEGRATION_ENV=%s and this is %s: test and live money never share a file; set INTEGRATION_ENV=%s or name another file with --db",
					s.opt.Path, had, s.opt.Env, had)
			}
		}
		for name, scope := range s.opt.Scopes {
			had, err := keepMeta(t, "scope:"+name, scope)
			if err != nil {
				return err
			}
			if had != scope {
				return fmt.Errorf("source %q was %s in %s and is %s now: the same events would count again; give the new account a source of another name, or name another file with --db",
					name, had, s.opt.Path, scope)
			}
		}
		return nil
	})
}

// keepMeta writes value under key unless there is one, and returns what stands.
func keepMeta(t *Tx, key, value string) (string, error) {
	if _, err := t.exec(`INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING`, key, value); err != nil {
		return "", err
	}
	_, err := one(t, `SELECT value FROM meta WHERE key = ?`, []any{key}, &value)
	return value, err
}
