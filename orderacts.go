package main

import (
	"github.com/spf13/cobra"

	"paidonce/store"
)

func (a *app) ordersAck() *cobra.Command {
	var f orderFlags
	var note string
	cmd := &cobra.Command{
		Use:   "ack ORDER ATTENTION",
		Short: "Say that you have looked",
		Long: `Says that you have looked at an attention of an order, such as double_payment. It
goes from the order, stays in its timeline, and comes back when something new
causes it.`,
		Example: `  paidonce orders ack A1 double_payment --note "sent the second one back"`,
		Args:    takes("ORDER", "ATTENTION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				o, err := s.AckAttention(cmd.Context(), f.tenant, args[0], args[1], note)
				return a.acted(o, err, "acknowledged")
			})
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return attentionWords[1:], cobra.ShellCompDirectiveNoFileComp // without "any"
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	f.registerTenant(cmd)
	cmd.Flags().StringVar(&note, "note", "", "what you found or did, for whoever looks later: `text`")
	return cmd
}

func (a *app) ordersFulfil() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "fulfil ORDER",
		Short: "Run order.paid by hand",
		Long: `Records order.paid for an order by your word: one that the shop had closed when
its money came, or one that was paid elsewhere. It happens once: an order that
has it already is refused, and so is one whose money went back.`,
		Example: "  paidonce orders fulfil A1",
		Args:    takes("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				o, err := s.FulfilOrder(cmd.Context(), f.tenant, args[0])
				return a.acted(o, err, "fulfilled")
			})
		},
	}
	f.registerTenant(cmd)
	return cmd
}

func (a *app) ordersForget() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "forget ORDER",
		Short: "Erase who bought",
		Long: `Erases the customer and the metadata of an order, and the bodies of its finished
events. There is no way back. Its numbers and its books stay. Bodies of events
that are pending or quarantined stay until those are done: then forget again.
Backups hold what they held.`,
		Example: "  paidonce orders forget A1",
		Args:    takes("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				o, err := s.ForgetOrder(cmd.Context(), f.tenant, args[0])
				return a.acted(o, err, "forgotten")
			})
		},
	}
	f.registerTenant(cmd)
	return cmd
}
