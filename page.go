package main

import (
	"bytes"

	"github.com/spf13/cobra"
)

// pageFlags adds the flags of a list.
func pageFlags(cmd *cobra.Command, limit *int, cursor *string) {
	cmd.Flags().IntVar(limit, "limit", 50, "at most so many, up to 200")
	cmd.Flags().StringVar(cursor, "cursor", "", "go on from this `cursor`, which the page before told")
}

func checkLimit(cmd *cobra.Command, limit int) error {
	if limit < 1 || limit > 200 {
		return usagef(cmd, "--limit must be from 1 to 200")
	}
	return nil
}

// printPage prints a page of a list and says how to get the next.
func (a *app) printPage(page any, next string, text func(w *bytes.Buffer)) error {
	if err := a.print(page, text); err != nil {
		return err
	}
	if next != "" {
		a.hint("there are more: --cursor %s", clean(next))
	}
	return nil
}
