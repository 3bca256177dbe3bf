package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Effect is a row of the outbox as the API and the CLI show it (design.md §7).
type Effect struct {
	ID             string `json:"id"`
	Order          string `json:"order,omitempty"`
	Event          string `json:"event,omitempty"` // the event that caused it
	Operation      string `json:"operation"`
	Kind           string `json:"kind"` // http | email | exec | stripe
	Target         string `json:"target"`
	IdempotencyKey string `json:"idempotency_key"`
	Status         string `json:"status"` // pending | sending | done | failed | unknown | canceled | held
	Reason         string `json:"reason,omitempty"`
	Attempts       int64  `json:"attempts"`
	NextAttemptAt  Time   `json:"next_attempt_at,omitzero"`
	LastError      string `json:"last_error,omitempty"`
	ProviderRef    string `json:"provider_ref,omitempty"`
	CreatedAt      Time   `json:"created_at"`
	DoneAt         Time   `json:"done_at,omitzero"`
}

// Settled reports whether e has come to an end, or waits for a person: nothing
// more happens to it by itself.
func (e Effect) Settled() bool {
	return e.Status != "pending" && e.Status != "sending" && (e.Status != "unknown" || e.NextAttemptAt == 0)
}

// EffectAttempt is one call and what came back.
type EffectAttempt struct {
	N              int64  `json:"n"`
	IdempotencyKey string `json:"idempotency_key"`
	LookUp         bool   `json:"look_up,omitempty"` // it asked what had become of an earlier call
	StartedAt      Time   `json:"started_at"`
	FinishedAt     Time   `json:"finished_at,omitzero"`
	Outcome        string `json:"outcome"` // done | again | unknown | absent | refused | under_way | not_recorded
	Status         int    `json:"status,omitempty"`
	Code           string `json:"code,omitempty"`
	Error          string `json:"error,omitempty"`
	ProviderRef    string `json:"provider_ref,omitempty"`
	RequestID      string `json:"request_id,omitempty"`
	Answer         string `json:"answer,omitempty"` // what came back, at most 1 KiB; not to be trusted
}

// EffectAct is what a person did with an effect.
type EffectAct struct {
	At    Time   `json:"at"`
	Actor string `json:"actor"`
	Act   string `json:"act"`
	Note  string `json:"note,omitempty"`
}

// EffectDetail is an effect with all that an operator asks of it: what is sent,
// when, with which key, what came back, and what happens next.
type EffectDetail struct {
	Effect
	OccurredAt   Time            `json:"occurred_at"`
	Body         json.RawMessage `json:"body"` // frozen: a JSON value, or a base64 string with body_encoding
	BodyEncoding string          `json:"body_encoding,omitempty"`
	Result       json.RawMessage `json:"result,omitempty"`
	History      []EffectAttempt `json:"history"`
	Acts         []EffectAct     `json:"acts"`
	BlockedBy    string          `json:"blocked_by,omitempty"` // the effect before it in its lane
	Next         string          `json:"next"`                 // what happens next, in words
}

// EffectFilter selects effects for ListEffects. Empty fields select all.
type EffectFilter struct {
	Status, Kind, Target, Order, Tenant string
	Limit                               int // 1 to 200; 0 is 50
	Cursor                              string
}

const effectColumns = `e.id, coalesce(o.order_id, ''), coalesce(v.event_id, ''), e.operation, e.kind, e.target, e.key, e.generation,
	e.status, e.reason, e.attempts, CASE WHEN e.status IN ('pending', 'unknown') THEN coalesce(e.due_at, 0) ELSE 0 END,
	e.last_error, e.provider_ref, e.created_at, coalesce(e.done_at, 0)`

const effectTables = ` FROM effects e LEFT JOIN orders o ON o.id = e.order_id LEFT JOIN events v ON v.id = e.event `

type effectView struct {
	Effect
	row int64
}

func scanEffect(r *sql.Rows, e *effectView) error {
	var generation int64
	if err := r.Scan(&e.row, &e.Order, &e.Event, &e.Operation, &e.Kind, &e.Target, &e.IdempotencyKey, &generation,
		&e.Status, &e.Reason, &e.Attempts, &e.NextAttemptAt, &e.LastError, &e.ProviderRef, &e.CreatedAt, &e.DoneAt); err != nil {
		return err
	}
	e.ID = strconv.FormatInt(e.row, 10)
	e.IdempotencyKey = generationKey(e.IdempotencyKey, generation)
	return nil
}

func viewEffect(q querier, id int64) (Effect, error) {
	rows, err := q.query(`SELECT `+effectColumns+effectTables+`WHERE e.id = ?`, id)
	found, err := collect(rows, err, scanEffect)
	if err != nil {
		return Effect{}, fmt.Errorf("effect %d: %w", id, err)
	}
	if len(found) == 0 {
		return Effect{}, noEffect(strconv.FormatInt(id, 10))
	}
	return found[0].Effect, nil
}

func noEffect(id string) *Problem { return problem(CodeNotFound, "no effect %s", id) }

// effectRowOf reads the id that people and the API use.
func effectRowOf(id string) (int64, error) {
	row, err := strconv.ParseInt(id, 10, 64)
	if err != nil || row < 1 || strconv.FormatInt(row, 10) != id {
		return 0, problem(CodeNotFound, "no effect %.40q: `effects list` shows their numbers", id)
	}
	return row, nil
}

// ListEffects returns a page of effects, newest first.
func (s *Store) ListEffects(ctx context.Context, f EffectFilter) (Page[Effect], error) {
	limit, before, err := paging(f.Limit, f.Cursor)
	if err != nil {
		return Page[Effect]{}, err
	}
	where, args := []string{"e.id < ?"}, []any{before}
	for _, c := range []struct{ column, value string }{{"e.kind", f.Kind}, {"e.target", f.Target}, {"e.status", f.Status}} {
		if c.value != "" {
			where, args = append(where, c.column+" = ?"), append(args, c.value)
		}
	}
	if f.Status != "" && f.Status != "done" {
		where = append(where, "e.status <> 'done'") // lets the partial index be used
	}
	page := Page[Effect]{Items: []Effect{}}
	err = s.read(ctx, func(q querier) error {
		if f.Order != "" {
			tenant := f.Tenant
			if tenant == "" {
				tenant = mainTenant
			}
			row, err := findOrderRow(q, tenant, f.Order)
			if err != nil {
				return err
			}
			where, args = append(where, "e.order_id = ?"), append(args, row)
		}
		rows, err := q.query(`SELECT `+effectColumns+effectTables+`WHERE `+strings.Join(where, " AND ")+` ORDER BY e.id DESC LIMIT ?`, append(args, limit+1)...)
		found, err := collect(rows, err, scanEffect)
		if err != nil {
			return fmt.Errorf("list effects: %w", err)
		}
		if len(found) > limit {
			found = found[:limit]
			page.NextCursor = cursor(found[limit-1].row)
		}
		for _, e := range found {
			page.Items = append(page.Items, e.Effect)
		}
		return nil
	})
	return page, err
}

// FindEffect returns an effect with everything, or CodeNotFound.
func (s *Store) FindEffect(ctx context.Context, id string) (EffectDetail, error) {
	row, err := effectRowOf(id)
	if err != nil {
		return EffectDetail{}, err
	}
	var d EffectDetail
	err = s.read(ctx, func(q querier) error {
		d, err = s.effectDetail(q, row)
		return err
	})
	return d, err
}

// AwaitEffect waits until an effect has come to an end or waits for a person,
// or until ctx is done: then it returns the effect as it stands.
func (s *Store) AwaitEffect(ctx context.Context, id string) (EffectDetail, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := 20 * time.Millisecond; ; wait = min(wait*2, 200*time.Millisecond) {
		d, err := s.FindEffect(context.WithoutCancel(ctx), id)
		if err != nil || d.Settled() {
			return d, err
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return d, nil
		case <-timer.C:
		}
	}
}

func (s *Store) effectDetail(q querier, row int64) (EffectDetail, error) {
	e, err := viewEffect(q, row)
	if err != nil {
		return EffectDetail{}, err
	}
	d := EffectDetail{Effect: e, History: []EffectAttempt{}, Acts: []EffectAct{}}
	var body []byte
	var result, subject string
	if _, err := one(q, `SELECT body, result, subject, occurred_at FROM effects WHERE id = ?`, []any{row}, &body, &result, &subject, &d.OccurredAt); err != nil {
		return EffectDetail{}, err
	}
	d.setBody(body)
	if result != "" {
		d.Result = json.RawMessage(result)
	}
	rows, err := q.query(`SELECT n, key, look_up, started_at, coalesce(finished_at, 0), outcome, status, code, error, ref, request_id, coalesce(answer, '')
		FROM effect_attempts WHERE effect = ? ORDER BY n`, row)
	if d.History, err = collect(rows, err, func(r *sql.Rows, a *EffectAttempt) error {
		var answer []byte
		err := r.Scan(&a.N, &a.IdempotencyKey, &a.LookUp, &a.StartedAt, &a.FinishedAt, &a.Outcome, &a.Status, &a.Code, &a.Error, &a.ProviderRef, &a.RequestID, &answer)
		a.Answer = strings.ToValidUTF8(string(answer), "\uFFFD")
		if a.Outcome == "" {
			a.Outcome = "not_recorded"
		}
		return err
	}); err != nil {
		return EffectDetail{}, fmt.Errorf("attempts of effect %d: %w", row, err)
	}
	if n := len(d.History); n > 0 && d.Status == "sending" {
		d.History[n-1].Outcome = "under_way"
	}
	if d.History == nil {
		d.History = []EffectAttempt{}
	}
	rows, err = q.query(`SELECT at, actor, act, note FROM acts WHERE effect = ? ORDER BY id`, row)
	acts, err := collect(rows, err, func(r *sql.Rows, a *EffectAct) error { return r.Scan(&a.At, &a.Actor, &a.Act, &a.Note) })
	if err != nil {
		return EffectDetail{}, fmt.Errorf("acts on effect %d: %w", row, err)
	}
	d.Acts = append(d.Acts, acts...)
	var before int64
	if ok, err := one(q, `SELECT id FROM effects INDEXED BY effects_lane WHERE subject = ? AND target = ?
		AND status IN ('pending', 'sending', 'unknown', 'held') AND id < ? ORDER BY id LIMIT 1`, []any{subject, d.Target, row}, &before); err != nil {
		return EffectDetail{}, err
	} else if ok && !d.Settled() {
		d.BlockedBy = strconv.FormatInt(before, 10)
	}
	full, _, err := loadEffect(q, row)
	if err != nil {
		return EffectDetail{}, err
	}
	targets, err := knownTargets(q)
	if err != nil {
		return EffectDetail{}, err
	}
	d.Next = d.next(full.effectState, targets == nil || slices.Contains(targets, d.Target))
	return d, nil
}

func (d *EffectDetail) setBody(body []byte) {
	switch {
	case len(body) == 0:
		d.Body = json.RawMessage("null")
	case json.Valid(body) && utf8.Valid(body):
		d.Body = body
	default:
		d.Body, d.BodyEncoding = json.RawMessage(`"`+base64.StdEncoding.EncodeToString(body)+`"`), "base64"
	}
}

// next tells what happens next.
func (d *EffectDetail) next(e effectState, targetKnown bool) string {
	act := func(verb string) string { return "`paidonce effects " + verb + " " + d.ID + "`" }
	giveUp := ""
	if e.planFrom != 0 {
		giveUp = "; given up at " + (e.planFrom + Time(planLength.Milliseconds())).String()
	}
	switch {
	case d.Status == "done":
		return "nothing, it is done"
	case d.Status == "canceled" && e.reason == reasonNoLonger:
		return "nothing, unless the order is paid again: then it goes out under the same key"
	case d.Status == "canceled":
		return "nothing, it is canceled"
	case d.Status == "failed":
		return "nothing by itself: " + act("retry") + " tries again, " + act("resolve") + " puts it aside"
	case d.Status == "held", d.Status == "unknown" && d.NextAttemptAt == 0:
		return "it waits for a person: " + act("retry") + " lets it go, " + act("resolve") + " says what became of it"
	case d.Status == "sending":
		return "it is being sent; if no answer is written down by " + e.dueAt.String() + " its outcome is unknown"
	case !targetKnown && d.Target == StripeTarget:
		return "it waits for a key: serve has no STRIPE_API_KEY"
	case !targetKnown:
		return "it waits for a target named " + d.Target + ": no [[effect]] of the configuration has that name"
	case d.BlockedBy != "":
		return "it waits for effect " + d.BlockedBy + ", which is before it in its lane"
	case d.Status == "unknown" && e.lookUp:
		return "at " + d.NextAttemptAt.String() + " Stripe is asked whether the call came to something"
	case d.Status == "unknown" && d.Kind == KindEmail:
		return "at " + d.NextAttemptAt.String() + " the same mail is sent once more, under the same Message-ID"
	case d.Status == "unknown":
		return "at " + d.NextAttemptAt.String() + " the same is sent again, under the same key"
	case d.Attempts == 0:
		return "it is sent at once"
	}
	return fmt.Sprintf("attempt %d at %s, with the same key and body%s", d.Attempts+1, d.NextAttemptAt, giveUp)
}

// knownTargets are the targets that the last serve was configured with; nil if
// none ever said.
func knownTargets(q querier) ([]string, error) {
	var text string
	ok, err := one(q, `SELECT value FROM meta WHERE key = 'targets'`, nil, &text)
	if err != nil || !ok {
		return nil, err
	}
	targets := []string{}
	if err := json.Unmarshal([]byte(text), &targets); err != nil {
		return nil, fmt.Errorf("remembered targets: %w", err)
	}
	return targets, nil
}
