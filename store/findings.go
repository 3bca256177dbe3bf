package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Finding is something wrong around the service that no other table tells of.
type Finding struct {
	Thing string // what it is about: an endpoint's id, a directory
	Text  string // in our own words
}

// Find replaces all that was found under the name of an alert: nothing ends it.
// What was there before keeps its time.
func (s *Store) Find(ctx context.Context, name string, found []Finding) error {
	var known map[string]string
	err := s.read(ctx, func(q querier) error {
		var err error
		known, err = findingsOf(q, name)
		return err
	})
	if err != nil {
		return err
	}
	same := len(known) == len(found)
	for _, f := range found {
		same = same && known[f.Thing] == cut(f.Text)
	}
	if same {
		return nil // a look that finds nothing new costs no fsync
	}
	return s.w.write(ctx, "note what was found", func(t *Tx) error {
		for _, f := range found {
			if _, err := t.exec(`INSERT INTO findings (name, thing, text, at) VALUES (?, ?, ?, ?)
				ON CONFLICT (name, thing) DO UPDATE SET text = excluded.text`, name, f.Thing, cut(f.Text), t.now); err != nil {
				return err
			}
			delete(known, f.Thing)
		}
		for thing := range known {
			if _, err := t.exec(`DELETE FROM findings WHERE name = ? AND thing = ?`, name, thing); err != nil {
				return err
			}
		}
		return nil
	})
}

func findingsOf(q querier, name string) (map[string]string, error) {
	known := map[string]string{}
	rows, err := q.query(`SELECT thing, text FROM findings WHERE name = ?`, name)
	_, err = collect(rows, err, func(r *sql.Rows, _ *struct{}) error {
		var thing, text string
		err := r.Scan(&thing, &text)
		known[thing] = text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what was found: %w", err)
	}
	return known, nil
}

// findFindings is a condition's find for what [Store.Find] keeps.
func findFindings(name string) func(*Store, querier, Time, AlertRules) (finding, error) {
	return func(_ *Store, q querier, _ Time, _ AlertRules) (finding, error) {
		var f finding
		rows, err := q.query(`SELECT thing, text, at FROM findings WHERE name = ? ORDER BY at DESC, thing LIMIT ?`, name, alertWindow)
		f.things, err = collect(rows, err, func(r *sql.Rows, t *thing) error { return r.Scan(&t.mark, &t.detail, &t.at) })
		f.count = int64(len(f.things))
		return f, err
	}
}

func findingItems(_ *Store, _ querier, things []thing) ([]AlertItem, error) {
	var items []AlertItem
	for _, th := range things {
		items = append(items, AlertItem{At: th.at, Text: plain(th.mark + ": " + th.detail)})
	}
	return items, nil
}

// NoteBackup keeps what came of a scheduled backup for the alert.
func (s *Store) NoteBackup(ctx context.Context, failure error) error {
	if failure == nil {
		return s.Find(ctx, AlertBackup, nil)
	}
	return s.Find(ctx, AlertBackup, []Finding{{Thing: "backup", Text: errorText(failure)}})
}
