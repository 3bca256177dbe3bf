package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"paidonce/store"
)

func (a *app) effectsCommand() *cobra.Command {
	cmd := asGroup(&cobra.Command{
		Use:   "effects",
		Short: "What goes out: calls, mails, refunds, and what came back",
		Long: `Shows the outbox. One effect is one row with one key and one body, however often
it is tried. serve carries effects out; these commands look, and tell it to try
again or to let go.`,
		Example: `  paidonce effects list --status failed
  paidonce effects show 7
  paidonce effects retry 7`,
	})
	cmd.AddCommand(a.effectsList(), a.effectsShow(), a.effectsRetry(), a.effectsResolve())
	return cmd
}

// effectStatuses are the words for how an effect stands, in the sequence of its
// life.
var effectStatuses = []string{"pending", "sending", "done", "failed", "unknown", "held", "canceled"}

func (a *app) effectsList() *cobra.Command {
	var f store.EffectFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List effects, the newest first",
		Long:  "Lists effects, the newest first. Filters narrow each other.",
		Example: `  paidonce effects list
  paidonce effects list --status failed
  paidonce effects list --kind stripe --order A1
  paidonce effects list --target app --json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(cmd, f.Limit); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				page, err := s.ListEffects(cmd.Context(), f)
				if err != nil {
					return err
				}
				return a.printPage(page, page.NextCursor, func(w *bytes.Buffer) { effectTable(w, page.Items) })
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Status, "status", "", "only those of this `status`, such as failed")
	flags.StringVar(&f.Kind, "kind", "", "only those of this `kind`: http, email, exec or stripe")
	flags.StringVar(&f.Target, "target", "", "only those for this `target`: the name of its [[effect]], or stripe")
	flags.StringVar(&f.Order, "order", "", "only those of this `order`")
	flags.StringVar(&f.Tenant, "tenant", "main", "the order's `tenant`")
	pageFlags(cmd, &f.Limit, &f.Cursor)
	oneOf(cmd, "status", effectStatuses...)
	oneOf(cmd, "kind", store.KindHTTP, store.KindEmail, store.KindExec, store.KindStripe)
	return cmd
}

func (a *app) effectsShow() *cobra.Command {
	var body bool
	cmd := &cobra.Command{
		Use:   "show EFFECT",
		Short: "Show an effect: what was sent, and what came back",
		Long: `Shows an effect with all there is to know: what is sent, with which key, each
attempt and what came back, and what happens next. Long texts are cut; --body
prints what is sent alone, byte for byte, and --json has everything.

What came back is another program's text: it is shown with its control
characters escaped, and is not to be trusted.`,
		Example: `  paidonce effects show 7
  paidonce effects show 7 --json
  paidonce effects show 7 --body > sent.json`,
		Args: takes("EFFECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				d, err := s.FindEffect(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if body && !a.json {
					return a.printBody(d)
				}
				return a.print(d, func(w *bytes.Buffer) { effectDetail(w, d) })
			})
		},
	}
	cmd.Flags().BoolVar(&body, "body", false, "print what is sent alone")
	return cmd
}

// printBody writes what is sent, as it is.
func (a *app) printBody(d store.EffectDetail) error {
	body, err := sentBody(d)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return errors.New(nothingToSend)
	}
	_, err = a.stdout.Write(body)
	return err
}

const nothingToSend = "there is nothing to send: its template failed, its order was forgotten, or it was purged"

// sentBody is what is sent, as it is; empty if there is nothing.
func sentBody(d store.EffectDetail) ([]byte, error) {
	body := []byte(d.Body)
	switch {
	case string(body) == "null":
		return nil, nil
	case d.BodyEncoding == "base64":
		if err := json.Unmarshal(d.Body, &body); err != nil {
			return nil, fmt.Errorf("body of effect %s: %w", d.ID, err)
		}
	}
	return body, nil
}

func (a *app) effectsRetry() *cobra.Command {
	return &cobra.Command{
		Use:   "retry EFFECT",
		Short: "Send an effect again, or let it go",
		Long: `Lets a running serve send an effect again, at once, under the key and the body
that it has. It really sends: a receiver that does not look at the key acts
again. What Stripe has done is never asked for again; what became of a call to
Stripe is looked up first.`,
		Example: "  paidonce effects retry 7",
		Args:    takes("EFFECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				d, err := s.RetryEffect(cmd.Context(), args[0])
				if err := a.actedOnEffect(d, err, "is to be sent"); err != nil {
					return err
				}
				if !s.Serving() {
					a.hint("serve is not running: that happens when it starts")
				}
				return nil
			})
		},
	}
}

func (a *app) effectsResolve() *cobra.Command {
	var outcome, note string
	cmd := &cobra.Command{
		Use:   "resolve EFFECT --outcome done|canceled",
		Short: "Say what became of an effect",
		Long: `Ends an effect by your word: done, for one of which you know that it happened, or
canceled, for one that must not happen any more. Nothing is sent. What stands
behind it in its lane may go then.`,
		Example: `  paidonce effects resolve 7 --outcome done --note "the parcel is on its way"
  paidonce effects resolve 7 --outcome canceled`,
		Args: takes("EFFECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if outcome == "" {
				return usagef(cmd, "--outcome is needed: done or canceled")
			}
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				d, err := s.ResolveEffect(cmd.Context(), args[0], outcome, note)
				return a.actedOnEffect(d, err, "resolved")
			})
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "", "what became of it, one `word`: done or canceled")
	cmd.Flags().StringVar(&note, "note", "", "how you know, for whoever looks later: `text`")
	oneOf(cmd, "outcome", "done", "canceled")
	return cmd
}

// actedOnEffect tells how an effect stands after a person's act.
func (a *app) actedOnEffect(d store.EffectDetail, err error, word string) error {
	if err != nil {
		return err
	}
	return a.print(d, func(w *bytes.Buffer) {
		fmt.Fprintf(w, "effect %s %s: %s\nnext  %s\n", d.ID, word, d.Status, clean(d.Next))
	})
}
