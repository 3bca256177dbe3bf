package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"paidonce/store"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the database to a file, while serve goes on",
		Long: `Writes a copy of the database to FILE: one moment of it, with everything that was
acknowledged before. Serve goes on meanwhile. The copy is checked whole before
it takes the name, so that FILE is the old one or a good one; only you can read
it, as it holds your customers' data. It opens alone, and it sends nothing: what
is restored from it is held until you say so.`,
		Example: `  paidonce backup /var/backups/paidonce-$(date +%F).db
  paidonce backup backup.db --db /var/lib/paidonce/shop.db`,
		Args:              takes("FILE"),
		ValidArgsFunction: filesToComplete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				tell, end := a.pagesCopied()
				info, err := s.Backup(cmd.Context(), args[0], tell)
				end()
				if err != nil {
					return err
				}
				return a.print(info, func(w *bytes.Buffer) {
					fmt.Fprintf(w, "%s: %s, %s, checked\n", clean(info.Path), size(info.Bytes), counted(info.Events, "event"))
				})
			})
		},
	}
}

func filesToComplete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// pagesCopied tells how much is copied: a line that changes on a terminal, a
// plain line at each quarter elsewhere.
func (a *app) pagesCopied() (tell func(done, total int), end func()) {
	t := a.tellProgress()
	quarter := -1
	return func(done, total int) {
		if a.json || total == 0 {
			return
		}
		percent := done * 100 / total
		text := fmt.Sprintf("copied %d %%", percent)
		switch {
		case t.terminal:
			fmt.Fprintf(a.stderr, "\r\x1b[K%s", text)
			t.wrote = true
		case percent/25 > quarter:
			quarter = percent / 25
			fmt.Fprintln(a.stderr, text)
		}
	}, t.end
}

// counted is "1 event" or "2 events".
func counted(n int64, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

// size is a number of bytes for a person.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
}

func (a *app) restoreCommand() *cobra.Command {
	var release bool
	cmd := &cobra.Command{
		Use:   "restore FILE | --release",
		Short: "Put a backup in the place of the database",
		Long: `Puts a backup in the place of the database. Serve must not run. What was there is
put aside under another name; FILE stays as it is, and may be any whole copy of
the database.

From then on nothing goes out: a mail that was pending in the backup may have
been sent since. Start serve; with a Stripe key it brings in what happened after
the backup. When the orders look right, let go with --release: calls to your own
app go out under their old keys, refunds and checkouts are looked up at Stripe
first, and mails and programs that may have run already are listed for you.

What no backup brings back: orders registered since, and events of senders that
cannot be asked again. Register those orders again; their payments then find
them.`,
		Example: `  paidonce restore /var/backups/paidonce-2026-12-04.db
  paidonce restore --release`,
		Args: func(cmd *cobra.Command, args []string) error {
			if release {
				return takes()(cmd, args)
			}
			return takes("FILE")(cmd, args)
		},
		ValidArgsFunction: filesToComplete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if release {
				return a.release(cmd)
			}
			c, err := a.config(overrides{})
			if err != nil {
				return err
			}
			a.hint("checking %s and putting it in place", clean(args[0]))
			info, err := store.Restore(cmd.Context(), store.RestoreOptions{Path: c.db, From: args[0], Env: c.env(), Now: a.now})
			if err != nil {
				return err
			}
			return a.print(info, func(w *bytes.Buffer) { restoredLines(w, info) })
		},
	}
	cmd.Flags().BoolVar(&release, "release", false, "let go of the effects that a restore holds")
	return cmd
}

func restoredLines(w *bytes.Buffer, info store.RestoreInfo) {
	at := "a copy that does not say when it was made"
	if info.BackupAt != 0 {
		at = clock(info.BackupAt)
	}
	pairs(w, "restored from", clean(info.From), "backup of", at, "events", fmt.Sprint(info.Events),
		"last event", clock(info.LastEvent), "effects held", fmt.Sprint(info.Held), "was there before", clean(info.Aside))
	from := info.BackupAt
	if from == 0 {
		from = info.LastEvent
	}
	fmt.Fprintf(w, `
Next:
  1. Start serve. With a Stripe key it brings in what happened since; see paidonce reconcile.
  2. Register again the orders that your shop took since %s: no backup has them.
     Events since then of senders other than Stripe have to be sent again by those.
  3. Look at paidonce effects list --status held, then let go: paidonce restore --release
`, clock(from))
	if from != 0 && info.RestoredAt.Std().Sub(from.Std()) > store.EventLife {
		fmt.Fprintln(w, "\nThe backup is older than 30 days: Stripe lists no older events. Payments of before are found only by the orders that name them.")
	}
}

// release lets the effects go that a restore holds.
func (a *app) release(cmd *cobra.Command) error {
	return a.withStore(cmd.Context(), func(s *store.Store) error {
		r, err := s.Release(cmd.Context())
		if err != nil {
			return err
		}
		if err := a.print(r, func(w *bytes.Buffer) {
			pairs(w, "calls to the shop's app", fmt.Sprint(r.HTTP), "looked up at Stripe", fmt.Sprint(r.Stripe),
				"mails and programs of since", fmt.Sprint(r.New), "left to you", fmt.Sprint(r.Left))
			if len(r.Items) > 0 {
				fmt.Fprintf(w, "\nThese may have happened before the restore. Find out, then `paidonce effects retry` or `paidonce effects resolve --outcome done`:\n")
				effectTable(w, r.Items)
			}
		}); err != nil {
			return err
		}
		if !s.Serving() {
			a.hint("serve is not running: they go out when it starts")
		}
		return nil
	})
}

// backupConfig is [backup] of the TOML file.
type backupConfig struct {
	dir   string // "" is off
	every time.Duration
	keep  int
}

// fileBackup is [backup] as written.
type fileBackup struct {
	Dir   *string `toml:"dir"`
	Every *string `toml:"every"`
	Keep  *int64  `toml:"keep"`
}

const (
	backupEvery    = 24 * time.Hour
	backupKeep     = 7
	backupEveryMin = time.Minute
)

// backup takes over [backup].
func (f *fileChecker) backup(c *config, b fileBackup) {
	if v := b.Dir; v != nil && *v != "" {
		c.backup.dir = c.beside(*v)
	}
	if v := b.Every; v != nil {
		d, err := time.ParseDuration(*v)
		if err != nil || d < backupEveryMin {
			f.wrong("backup.every", `every must be a duration of at least a minute, such as "24h"`)
		}
		c.backup.every = d
	}
	if v := b.Keep; v != nil {
		if *v < 1 || *v > 10_000 {
			f.wrong("backup.keep", "keep must be from 1 to 10000: how many backups stay")
		}
		c.backup.keep = int(*v)
	}
}
