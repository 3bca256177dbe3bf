package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"paidonce/store"
	"paidonce/worker/stripefake"
)

// payUnheard has a buyer pay the order at the fake Stripe; nothing is delivered.
func (d *demo) payUnheard(order string) error {
	return d.world.stripe.Do(func(a *stripefake.Account) error {
		named := map[string]string{"order_id": order}
		session, err := a.OpenSession(stripefake.SessionParams{Pricing: stripefake.Pricing{Subtotal: 1250}, Currency: "eur", Metadata: named, IntentMetadata: named})
		if err == nil {
			_, err = a.PaySession(session.ID, stripefake.Card)
		}
		return err
	})
}

// reconcile has the service ask Stripe, and waits for the report.
func (d *demo) reconcile(ctx context.Context) (store.RunReport, error) {
	var r store.RunReport
	_, err := d.api(ctx, http.MethodPost, "/v1/reconcile", nil, &r)
	for err == nil && r.ID != 0 && !r.Over() {
		_, err = d.api(ctx, http.MethodGet, fmt.Sprintf("/v1/reconcile/%d", r.ID), nil, &r)
	}
	if err == nil && r.State != "done" {
		err = fmt.Errorf("reconciliation %d is %s: %s", r.ID, r.State, r.Error)
	}
	return r, err
}

// demoNeverComes has an order paid of which no event is delivered.
func demoNeverComes(ctx context.Context, d *demo) (string, bool, error) {
	if _, err := d.reconcile(ctx); err != nil { // what the rows before it left undelivered
		return "", false, err
	}
	s, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	if err := d.payUnheard(s.order); err != nil {
		return "", false, err
	}
	r, err := d.reconcile(ctx)
	if err != nil {
		return "", false, err
	}
	again, err := d.reconcile(ctx)
	o, err2 := d.order(ctx, s.order)
	_, err3 := d.effectsDone(ctx, s.order, 1)
	return fmt.Sprintf("%d events found, order %s, order.paid %d×; a second look finds %d", r.EventsNew, o.Status, o.paidTimes(), again.EventsNew),
		r.EventsNew > 0 && !r.Agrees() && again.EventsNew == 0 && o.Status == "paid" && o.paidTimes() == 1, errors.Join(err, err2, err3)
}

// beside runs fn on the service's file, as a command does.
func (d *demo) beside(ctx context.Context, fn func(s *store.Store) error) error {
	s, err := store.Open(ctx, store.Options{Path: filepath.Join(d.dir, defaultDB), Mode: store.Client, Actor: "cli", Unlinked: "watch",
		Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Close())
}

// demoRestore loses the disk: what was paid and given back since the backup is
// in Stripe alone.
func demoRestore(ctx context.Context, d *demo) (string, bool, error) {
	before, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	if err := d.payAtStripe(ctx, before.order); err != nil {
		return "", false, err
	}
	if _, err := d.effectsDone(ctx, before.order, 1); err != nil {
		return "", false, err
	}
	file := filepath.Join(d.dir, "last-night.db")
	if err := d.beside(ctx, func(s *store.Store) error {
		_, err := s.Backup(ctx, file, func(int, int) {})
		return err
	}); err != nil {
		return "", false, err
	}
	since, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	if err := d.payAtStripe(ctx, since.order); err != nil {
		return "", false, err
	}
	refund := func() error {
		_, err := d.api(ctx, http.MethodPost, "/v1/orders/"+before.order+"/refund", map[string]any{"request_id": "since", "amount_minor": 500}, nil)
		return err
	}
	if err := refund(); err != nil {
		return "", false, err
	}
	_, err1 := d.effectsDone(ctx, before.order, 2)
	_, err2 := d.effectsDone(ctx, since.order, 1)
	if err := errors.Join(err1, err2); err != nil {
		return "", false, err
	}

	d.stop()
	if _, err := store.Restore(ctx, store.RestoreOptions{Path: filepath.Join(d.dir, defaultDB), From: file, Env: "sandbox", Now: time.Now}); err != nil {
		return "", false, err
	}
	if err := d.start(ctx, demoChild{}); err != nil {
		return "", false, err
	}
	// The shop registers again what it sold since, and asks for its refund again.
	if _, err := d.api(ctx, http.MethodPost, "/v1/orders", map[string]any{"id": since.order, "total_minor": 1250, "currency": "eur"}, nil); err != nil {
		return "", false, err
	}
	if _, err := d.reconcile(ctx); err != nil {
		return "", false, err
	}
	if err := refund(); err != nil {
		return "", false, err
	}
	calls, _, err := d.world.app.took(ctx, since.order, 1)
	if err != nil {
		return "", false, err
	}
	held := len(calls)
	if err := d.beside(ctx, func(s *store.Store) error {
		_, err := s.Release(ctx)
		return err
	}); err != nil {
		return "", false, err
	}
	if _, err := d.effectsDone(ctx, before.order, 2); err != nil {
		return "", false, err
	}
	calls, keys, err := d.world.app.took(ctx, since.order, 2)
	if err != nil {
		return "", false, err
	}
	a, err1 := d.order(ctx, before.order)
	b, err2 := d.order(ctx, since.order)
	made := len(d.world.stripe.RefundsWith("order_id", before.order))
	return fmt.Sprintf("nothing went out while it was held; the order of since is %s; the app was called %d× under %d key; Stripe made %d refund", b.Status, len(calls), keys, made),
		held == 1 && b.Status == "paid" && a.Status == "partially_refunded" && keys == 1 && made == 1, errors.Join(err1, err2)
}
