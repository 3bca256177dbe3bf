package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"paidonce/handler"
	"paidonce/store"
	"paidonce/worker"
	"paidonce/worker/send"
	"paidonce/worker/stripeapi"
)

// outbound is how this run reaches the outside world: what an operation
// becomes for each target, and who carries that out.
type outbound struct {
	compose store.Compose
	senders map[string]worker.Sender // by target
	effects *worker.Effects
	now     func() time.Time
	log     *slog.Logger
}

// outbound builds the senders of the configured targets, and that of calls to
// Stripe where there is a key.
func (a *app) outbound(c *config, sec secrets, log *slog.Logger) (*outbound, error) {
	out := &outbound{senders: map[string]worker.Sender{}, now: a.now, log: log}
	var err error
	if out.compose, err = c.compose(); err != nil {
		return nil, err
	}
	agent := "paidonce/" + thisBuild().Version
	for _, e := range sec.effects {
		var s worker.Sender
		switch e.do {
		case store.KindHTTP:
			s, err = send.NewHTTP(send.HTTPConfig{URL: e.url, Secret: e.secret, UserAgent: agent, Now: a.now})
		case store.KindEmail:
			s, err = send.NewEmail(send.EmailConfig{URL: sec.smtpURL})
		case store.KindExec:
			s, err = send.NewExec(send.ExecConfig{Argv: e.command, Dir: c.beside("."), Environ: a.execEnviron()})
		}
		if err != nil {
			return nil, fmt.Errorf("effect %s: %w", e.name, err)
		}
		out.senders[e.name] = s
	}
	if sec.keyKind != "" {
		out.senders[store.StripeTarget], err = stripeapi.New(stripeapi.Config{Key: sec.stripeKey, Base: c.apiBase, Now: a.now, Log: log})
		if err != nil {
			return nil, err
		}
	}
	var testpoint func(string)
	if a.adjust != nil {
		var o store.Options
		a.adjust(&o)
		testpoint = o.Testpoint
	}
	out.effects = worker.NewEffects(worker.EffectsConfig{Senders: out.senders, Log: log, Now: a.now, Testpoint: testpoint})
	return out, nil
}

// targets are the names of all targets, sorted.
func (o *outbound) targets() []string { return slices.Sorted(maps.Keys(o.senders)) }

// parts are what works on effects beside the handler and the inbox's worker.
func (o *outbound) parts(s *store.Store, c *config, h *handler.Handler) []part {
	alerts := worker.NewAlerts(worker.AlertsConfig{Store: s, Rules: c.alertRules(), Rejects: h.RejectsInARow, Log: o.log})
	parts := []part{
		{"effects", func(stop, work context.Context) error { return o.effects.Run(stop, work, s) }},
		{"alerts", alerts.Run},
		{"wal", worker.NewWAL(worker.WALConfig{Store: s, Log: o.log}).Run},
	}
	parts = append(parts, part{"retention", worker.NewRetention(worker.RetentionConfig{
		Begin: s.BeginPurge, Days: c.payloadDays, Now: o.now, Log: o.log}).Run})
	if c.backup.dir != "" {
		parts = append(parts, part{"backup", worker.NewBackups(worker.BackupsConfig{
			Store: s, Dir: c.backup.dir, Every: c.backup.every, Keep: c.backup.keep, Now: o.now, Log: o.log}).Run})
	}
	if c.auditLog != "" {
		parts = append(parts, part{"audit", worker.NewAuditCopy(worker.AuditConfig{Store: s, Path: c.auditLog, Log: o.log}).Run})
	}
	return parts
}

// execEnviron is what programs may see of this process's environment, without
// its secrets.
func (a *app) execEnviron() []string {
	var env []string
	for _, name := range send.ExecEnvNames {
		if value, ok := a.lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
