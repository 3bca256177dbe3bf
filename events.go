package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"paidonce/store"
)

func (a *app) eventsCommand() *cobra.Command {
	cmd := asGroup(&cobra.Command{
		Use:   "events",
		Short: "What the senders told us, and what came of it",
		Long: `Shows the inbox. One event is one row, however often it came; its verdict says
what came of it.`,
		Example: `  paidonce events list --status quarantined
  paidonce events show evt_1Abc
  paidonce events requeue evt_1Abc`,
	})
	cmd.AddCommand(a.eventsList(), a.eventsShow(), a.eventsExplain(), a.eventsRequeue(), a.eventsDismiss())
	return cmd
}

func (a *app) eventsList() *cobra.Command {
	var f store.EventFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List events, the newest first",
		Long:  "Lists events, the newest received first. Filters narrow each other.",
		Example: `  paidonce events list
  paidonce events list --status quarantined
  paidonce events list --verdict unlinked --json
  paidonce events list --order A1`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(cmd, f.Limit); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				page, err := s.ListEvents(cmd.Context(), f)
				if err != nil {
					return err
				}
				return a.printPage(page, page.NextCursor, func(w *bytes.Buffer) { eventTable(w, page.Items) })
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Status, "status", "", "only those of this `status`: pending, done or quarantined")
	flags.StringVar(&f.Verdict, "verdict", "", "only those of this `verdict`, such as unlinked")
	flags.StringVar(&f.Type, "type", "", "only those of this `type`, such as payment_intent.succeeded")
	flags.StringVar(&f.Order, "order", "", "only those of this `order`")
	flags.StringVar(&f.Tenant, "tenant", "main", "the order's `tenant`")
	flags.StringVar(&f.Source, "source", "", "only those that came in by this `source`")
	pageFlags(cmd, &f.Limit, &f.Cursor)
	oneOf(cmd, "status", "pending", "done", "quarantined")
	oneOf(cmd, "verdict", verdicts...)
	return cmd
}

// verdicts are the words for what came of an event, as the API has them.
var verdicts = []string{"new", "retrying", "applied", "duplicate", "stale", "unlinked", "ignored", "routed",
	"amount_mismatch", "currency_mismatch", "order_conflict", "contradiction", "malformed", "too_many_attempts"}

func eventTable(w *bytes.Buffer, events []store.Event) {
	// The verdict says the status too: each belongs to one.
	t := table{header: []string{"RECEIVED", "EVENT", "VERDICT", "TYPE", "ORDER"}}
	for _, e := range events {
		t.add(clock(e.ReceivedAt), e.ID, e.Verdict, e.Type, e.Order)
	}
	t.write(w, "")
}

func (a *app) eventsShow() *cobra.Command {
	var scope string
	var payload bool
	cmd := &cobra.Command{
		Use:   "show EVENT",
		Short: "Show an event and what came of it",
		Long: `Shows an event. With --payload it prints the body alone, byte for byte as it
came; --json has it inside.`,
		Example: `  paidonce events show evt_1Abc
  paidonce events show evt_1Abc --payload > event.json
  paidonce events show evt_1Abc --scope stripe:self:test`,
		Args: takes("EVENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				e, err := s.FindEvent(cmd.Context(), scope, args[0])
				if err != nil {
					return err
				}
				if payload && !a.json {
					return a.printPayload(e)
				}
				return a.print(e, func(w *bytes.Buffer) { eventLines(w, e) })
			})
		},
	}
	scopeFlag(cmd, &scope)
	cmd.Flags().BoolVar(&payload, "payload", false, "print the body alone")
	return cmd
}

func scopeFlag(cmd *cobra.Command, scope *string) {
	cmd.Flags().StringVar(scope, "scope", "", "the `scope` of the id, such as stripe:self:test, where several have it")
}

// printPayload writes the body as it came.
func (a *app) printPayload(e store.Event) error {
	body := []byte(e.Payload)
	switch {
	case len(body) == 0:
		return errors.New("the payload was purged")
	case e.PayloadEncoding == "base64":
		if err := json.Unmarshal(e.Payload, &body); err != nil {
			return fmt.Errorf("payload of %s: %w", e.ID, err)
		}
	}
	_, err := a.stdout.Write(body)
	return err
}

// eventLines tells all of an event but its body.
func eventLines(w *bytes.Buffer, e store.Event) {
	stored := fmt.Sprintf("%d bytes, see --payload", len(e.Payload))
	if len(e.Payload) == 0 {
		stored = "purged"
	}
	pairs(w,
		"event", e.ID,
		"scope", e.Scope,
		"type", e.Type,
		"status", e.Status,
		"verdict", e.Verdict,
		"reason", e.Reason,
		"order", e.Order,
		"last error", e.LastError,
		"attempts", count(e.Attempts),
		"deliveries", count(e.Deliveries),
		"next attempt", clock(e.NextAttemptAt),
		"source", e.Source,
		"via", e.Via,
		"api version", e.APIVersion,
		"occurred", clock(e.OccurredAt),
		"received", clock(e.ReceivedAt),
		"done", clock(e.DoneAt),
		"payload", stored,
	)
}

func (a *app) eventsRequeue() *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use:   "requeue EVENT",
		Short: "Run an event again",
		Long: `Runs an event again under today's rules, whatever came of it before. A running
serve takes it within a second; without one it waits for the next.`,
		Example: "  paidonce events requeue evt_1Abc",
		Args:    takes("EVENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				e, err := s.RequeueEvent(cmd.Context(), scope, args[0])
				return a.actedOnEvent(e, err, "is to run again")
			})
		},
	}
	scopeFlag(cmd, &scope)
	return cmd
}

func (a *app) eventsDismiss() *cobra.Command {
	var scope, note string
	cmd := &cobra.Command{
		Use:   "dismiss EVENT",
		Short: "Set an unlinked or quarantined event aside",
		Long: `Sets an event aside that no order wants or that cannot be done. What it told
stays known, and its money stays in suspense.`,
		Example: `  paidonce events dismiss evt_1Abc --note "paid for another shop"`,
		Args:    takes("EVENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				e, err := s.DismissEvent(cmd.Context(), scope, args[0], note)
				return a.actedOnEvent(e, err, "dismissed")
			})
		},
	}
	scopeFlag(cmd, &scope)
	cmd.Flags().StringVar(&note, "note", "", "why, for whoever looks later: `text`")
	return cmd
}

// actedOnEvent tells how an event stands after a person's act.
func (a *app) actedOnEvent(e store.Event, err error, word string) error {
	if err != nil {
		return err
	}
	return a.print(e, func(w *bytes.Buffer) {
		fmt.Fprintf(w, "%s %s: %s, %s\n", clean(e.ID), word, e.Status, e.Verdict)
	})
}
