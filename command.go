package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"paidonce/store"
)

// app is one run of the program: the world it runs in and the flags that
// every command has.
type app struct {
	process
	dbFlag, configFlag string
	json, verbose      bool
	// adjust changes what the store is opened with, and opened is told of it.
	// Only a demo's child has them.
	adjust func(*store.Options)
	opened func(*store.Store)
}

// root puts the commands together. It leaves telling errors to report.
func (a *app) root(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "paidonce COMMAND",
		Short: "Makes each payment count exactly once",
		Long: `Paidonce takes a small shop's payment webhooks and makes each payment count
exactly once: one program over one SQLite file.

Settings come from flags, the environment, a file .env and a TOML file, in this
order; .env.example and paidonce.example.toml list them.`,
		Example: `  STRIPE_WEBHOOK_SECRET=whsec_... paidonce serve
  paidonce orders add --id A1 --total 12.50 --currency eur
  paidonce send payment_intent.succeeded --order A1
  paidonce orders show A1`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	asGroup(root)
	flags := root.PersistentFlags()
	flags.StringVar(&a.dbFlag, "db", "", "the database `file` (default PAIDONCE_DB, else "+defaultDB+")")
	flags.StringVar(&a.configFlag, "config", "", "the TOML `file` (default PAIDONCE_CONFIG, else "+defaultFile+" if there is one)")
	flags.BoolVar(&a.json, "json", false, "print JSON, in the shapes of the API")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "tell more on stderr")
	root.PersistentPreRunE = refuseEmptyFlags
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef(cmd, "%s", err) })
	// A group is runnable only to say what is wrong: no usage line of its own.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddCommand(commands...)

	// Ids are no files; what takes a file says so.
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	_ = root.MarkPersistentFlagFilename("db", "db")       // both fail
	_ = root.MarkPersistentFlagFilename("config", "toml") // for unknown flags only
	root.InitDefaultHelpFlag()
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			asGroup(c).Example = "  source <(paidonce completion bash)"
			for _, shell := range c.Commands() {
				shell.Args = takes()
				shell.Example = "  paidonce completion " + shell.Name() + " --help"
			}
		}
	}
	return root
}

// emptyIsFine are the flags for which nothing is a value too.
var emptyIsFine = []string{"cursor", "email", "name", "note"}

// refuseEmptyFlags refuses flags that were given with nothing: a variable that
// is not set in a script must not mean the default file, or an order without
// its id.
func refuseEmptyFlags(cmd *cobra.Command, _ []string) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" && !slices.Contains(emptyIsFine, f.Name) {
			err = usagef(cmd, "--%s is empty", f.Name)
		}
	})
	return err
}

// helpCommand is cobra's, but for an unknown command, which is an error here.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Long:    "Explains a command, as its --help does.",
		Example: "  paidonce help orders add",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usagef(cmd, "unknown command %q", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// asGroup makes cmd one that only holds others: named alone, or with a word
// that is none of them, it is a usage error.
func asGroup(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			hint := ""
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = ", did you mean " + strings.Join(near, " or ") + "?"
			}
			return usagef(cmd, "unknown command %q%s", args[0], hint)
		}
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		return usagef(cmd, "name a command: %s", strings.Join(names, ", "))
	}
	return cmd
}

// takes says which arguments a command has, by their names.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef(cmd, "%s is missing", names[len(args)])
		case len(args) > len(names):
			return usagef(cmd, "unexpected argument %q", args[len(names)])
		}
		for i, arg := range args {
			if arg == "" {
				return usagef(cmd, "%s is empty", names[i])
			}
		}
		return nil
	}
}

// oneOf lets a flag take one of the words, and offers them for completion. A
// filter that is misspelt must not look like an empty list.
func oneOf(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for an unknown flag only
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f := cmd.Flags().Lookup(flag); f.Changed && !slices.Contains(words, f.Value.String()) {
			return usagef(cmd, "--%s must be one of %s", flag, strings.Join(words, ", "))
		}
		return run(cmd, args)
	}
}

// flagsAnywhere returns args so that cobra finds the command also behind
// flags that only the command knows: it takes an unknown --flag to swallow the
// next word, which is wrong for those without a value. These get one, as
// --flag=true.
func flagsAnywhere(root *cobra.Command, args []string) []string {
	const (
		bare   = 1 // some command has it without a value
		valued = 2 // some command has it with a value
	)
	kinds := map[string]int{}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		add := func(f *pflag.Flag) {
			kind := valued
			if f.NoOptDefVal != "" {
				kind = bare
			}
			kinds["--"+f.Name] |= kind
			if f.Shorthand != "" {
				kinds["-"+f.Shorthand] |= kind
			}
		}
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(add)
		c.PersistentFlags().VisitAll(add)
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)

	out := make([]string, 0, len(args))
	if len(args) > 0 && strings.HasPrefix(args[0], "__complete") {
		return append(out, args...) // half-typed on purpose
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		switch kinds[arg] {
		case bare:
			arg += "=true"
		case valued: // the next word is its value, whatever it looks like
			out = append(out, arg)
			if i++; i == len(args) {
				return out
			}
			arg = args[i]
		}
		out = append(out, arg)
	}
	return out
}

// log returns where a command that is not serve tells what it notices.
func (a *app) log() *slog.Logger {
	level := slog.LevelWarn
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}

// withStore runs fn on the file, beside a running serve or without one.
func (a *app) withStore(ctx context.Context, fn func(*store.Store) error) error {
	c, err := a.config(overrides{})
	if err != nil {
		return err
	}
	s, err := a.openStore(ctx, c)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Close())
}

// openStore opens the file as a guest: no lock, no migration.
func (a *app) openStore(ctx context.Context, c *config) (*store.Store, error) {
	return store.Open(ctx, c.ruled(store.Options{
		Path:  c.db,
		Mode:  store.Client,
		Actor: "cli",
		Now:   a.now,
		Log:   a.log(),
	}))
}

// usageError says that the command line is wrong, and where its help is.
type usageError struct {
	text    string
	command string
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%s (see `%s --help`)", e.text, e.command)
}

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...), command: cmd.CommandPath()}
}
