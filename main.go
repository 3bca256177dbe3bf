// Paidonce takes a small shop's payment webhooks and makes each payment count
// exactly once. It is one program over one SQLite file.
//
// # Use
//
//	paidonce serve                                  take webhooks and work on them
//	paidonce demo                                   see what happens when things go wrong
//	paidonce send TYPE|FILE                         sign and post a test event
//	paidonce orders add|list|show|edit              what the shop sells
//	paidonce orders checkout|refund|cancel          what Stripe is asked to do about it
//	paidonce orders link|accept|ack|fulfil|forget   what a person decides about it
//	paidonce events list|show|explain               what the sender told us, and why it stands where it does
//	paidonce events requeue|dismiss                 run it again, or set it aside
//	paidonce effects list|show|retry|resolve        what went out because of it, and what came back
//	paidonce books                                  what came in and went out, by day
//	paidonce stock list|set                         what there is to sell
//	paidonce stats                                  where everything stands
//	paidonce version
//
// Every command explains itself with --help, with examples. Flags may stand
// anywhere. --db names the file, --config the TOML file, --json prints the
// shapes of the API in place of text, -v tells more on stderr.
//
// The commands other than serve and send work on the file itself, beside a
// running serve or without one: what they change is committed before they say
// so, and serve sees it within a second. What only Stripe can do is carried out
// by serve, and the command waits for it.
//
// # Configuration
//
// A setting comes from the first of these that has it: its flag, the
// environment, a file .env in the working directory, the TOML file or the
// default. The environment alone is enough for one Stripe account; see
// .env.example and paidonce.example.toml. Secrets never stand in the TOML file
// or on the command line: both only name an env:VARIABLE or a file:/path.
//
// # Exit codes
//
//	0  done
//	1  failed: also when the configuration, the file or the network is wrong
//	2  the command line is wrong: nothing was done
//
// An error is told on stderr, a line for each thing that is wrong; with --json
// as {"error":{"code","message","fields"}}, and stdout stays empty. No error
// and no log line holds a secret or a customer's data.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	// The first signal asks for an orderly end. stop gives the signals back
	// to the system's default, so that a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], process{
		lookup: os.LookupEnv,
		now:    time.Now,
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
	}))
}

// process is all that a command may touch of the outside world besides files
// and the network, so that a test can be the world.
type process struct {
	lookup func(name string) (string, bool) // the environment
	now    func() time.Time
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

// run carries out one command line and returns its exit code. It ends early,
// in good order, when ctx does.
func run(ctx context.Context, args []string, p process) int {
	a := &app{process: p}
	root := a.commands()
	root.SetArgs(flagsAnywhere(root, args))
	if err := root.ExecuteContext(ctx); err != nil {
		return a.report(args, err)
	}
	return 0
}

// commands are all that the program can do.
func (a *app) commands() *cobra.Command {
	return a.root(
		a.serveCommand(),
		a.demoCommand(),
		a.demoChildCommand(),
		a.sendCommand(),
		a.ordersCommand(),
		a.eventsCommand(),
		a.effectsCommand(),
		a.booksCommand(),
		a.stockCommand(),
		a.reconcileCommand(),
		a.backupCommand(),
		a.restoreCommand(),
		a.purgeCommand(),
		a.statsCommand(),
		a.doctorCommand(),
		a.versionCommand(),
	)
}
