package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"paidonce/handler"
	"paidonce/store"
	"paidonce/worker"
)

// grace is how long requests and events in hand may take after the first
// signal. A supervisor should wait a little longer before it kills.
const grace = 10 * time.Second

var errGraceOver = errors.New("the grace period is over")

func (a *app) serveCommand() *cobra.Command {
	var o overrides
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Take webhooks and work on them",
		Long: `Takes webhooks on the public address and works on them; serves the API on the
admin address. Makes the database if there is none, and brings an older one to
its schema.

The first SIGINT or SIGTERM ends it in good order: nothing new is taken, and
what is in hand is finished, for at most 10 seconds. The second one ends it at
once, which costs nothing but time: what was acknowledged is on disk.`,
		Example: `  STRIPE_WEBHOOK_SECRET=whsec_... paidonce serve
  paidonce serve --db /var/lib/paidonce/shop.db --listen 127.0.0.1:9000`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.serve(cmd.Context(), o)
			if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return nil // it was told to stop before it was ready, and did
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.listen, "listen", "", "the public `address` (default PAIDONCE_LISTEN, else "+defaultListen+")")
	cmd.Flags().StringVar(&o.adminListen, "admin-listen", "", "the admin `address` (default PAIDONCE_ADMIN_LISTEN, else "+defaultAdminListen+")")
	return cmd
}

// serve runs the service until ctx is done.
func (a *app) serve(ctx context.Context, o overrides) (err error) {
	c, err := a.config(o)
	if err != nil {
		return err
	}
	sec, err := c.forServe()
	if err != nil {
		return err
	}
	log := a.serveLog()
	out, err := a.outbound(c, sec, log)
	if err != nil {
		return err
	}
	opt := c.ruled(store.Options{
		Path:      c.db,
		Mode:      store.Serve,
		Env:       c.env(),
		Scopes:    scopes(sec.sources),
		Actor:     "api",
		Listen:    c.listen,
		Now:       a.now,
		Log:       log,
		Compose:   out.compose,
		Targets:   out.targets(),
		Queued:    out.effects.Wake,
		StripeKey: sec.keyKind,
		Audit:     c.auditLog != "",
	})
	if a.adjust != nil {
		a.adjust(&opt)
	}
	s, err := store.Open(ctx, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if a.opened != nil {
		a.opened(s)
	}
	if sec.adminToken == nil {
		token, err := handler.LoadToken(c.db+".token", log)
		if err != nil {
			return err
		}
		sec.adminToken = &token
	}
	// Both addresses are bound before anything says ready: whoever reads the
	// start line may send at once.
	public, err := listen("public", "listen", c.listen)
	if err != nil {
		return err
	}
	defer public.Close()
	admin, err := listen("admin", "admin-listen", c.adminListen)
	if err != nil {
		return err
	}
	defer admin.Close()
	w := worker.New(worker.Config{Inbox: s, Log: log})
	h, err := handler.New(handler.Config{
		Store:   s,
		Sources: sec.sources,
		Wake:    w.Wake,
		Now:     a.now,
		Log:     log,
		Token:   *sec.adminToken,
	})
	if err != nil {
		return err
	}
	held, err := s.HeldSince(ctx)
	if err != nil {
		return err
	}
	if held != 0 {
		log.Warn("serve: restored from a backup: nothing goes out until `paidonce restore --release`", "restored", held)
	}
	for _, text := range append(c.warnings, sec.warnings...) {
		log.Warn("serve: " + text)
	}
	svc := service{log: log, handler: h, parts: append([]part{{"worker", w.Run}}, out.parts(s, c, h)...)}
	rec, err := a.reconciler(c, sec, s, w.Wake, log)
	if err != nil {
		return err
	}
	if rec != nil {
		svc.parts = append(svc.parts, part{"reconcile", rec.Run})
	}
	svc.serveHTTP(public, handler.NewServer(h.Public(), log))
	svc.serveHTTP(admin, handler.NewServer(h.Admin(), log))
	log.Info("serve: ready", "version", thisBuild().Version, "env", c.env(), "key", or(sec.keyKind, "none"),
		"sources", sourceList(sec.sources), "listen", public.Addr().String(), "admin", admin.Addr().String(),
		"targets", opt.Targets, "db", c.db, "missed_events", missedEvents(rec != nil, sec.keyKind))
	return svc.run(ctx)
}

// missedEvents says in the start line what promise P8 is worth in this run.
func missedEvents(asked bool, keyKind string) string {
	switch {
	case asked:
		return "found within minutes: Stripe is asked for them at start and every 5 minutes"
	case keyKind == "":
		return "not found: there is no STRIPE_API_KEY"
	}
	return "not found: there is no source of Stripe's"
}

func listen(which, flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		var sys *os.SyscallError
		if errors.As(err, &sys) {
			err = sys.Err
		}
		hint := ""
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			hint = ": another program listens there; end it, or name another address with --" + flag
		case errors.Is(err, syscall.EACCES):
			hint = ": this user may not; name a port above 1023 with --" + flag
		}
		return nil, fmt.Errorf("cannot listen on the %s address %s: %w%s", which, address, err, hint)
	}
	return l, nil
}

// serveLog is text for a person at a terminal, JSON for everything else.
func (a *app) serveLog() *slog.Logger {
	o := &slog.HandlerOptions{}
	if a.verbose {
		o.Level = slog.LevelDebug
	}
	if f, ok := a.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return slog.New(slog.NewTextHandler(a.stderr, o))
	}
	return slog.New(slog.NewJSONHandler(a.stderr, o))
}

// service is what runs: two servers, and the parts that work behind them.
type service struct {
	log     *slog.Logger
	handler *handler.Handler
	parts   []part
	servers []*http.Server
	failed  chan error
}

// part is a loop that works until stop is done, and lets go of what it has in
// hand when work is.
type part struct {
	name string
	run  func(stop, work context.Context) error
}

// serveHTTP begins to serve on l.
func (s *service) serveHTTP(l net.Listener, server *http.Server) {
	if s.failed == nil {
		s.failed = make(chan error, 2+len(s.parts)) // room for all who send
	}
	s.servers = append(s.servers, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve %s: %w", l.Addr(), err)
		}
	}()
}

// run works until ctx is done or a part fails, and then ends all parts in good
// order: it stops taking, finishes what is in hand, and gives up on that when
// the grace period is over.
func (s *service) run(ctx context.Context) error {
	stop, stopTaking := context.WithCancel(context.Background())
	defer stopTaking()
	work, giveUp := context.WithCancelCause(context.Background())
	defer giveUp(nil)
	var worked sync.WaitGroup
	for _, p := range s.parts {
		worked.Go(func() {
			switch err := p.run(stop, work); {
			case errors.Is(err, errGraceOver):
				// No loss: what was in hand runs again after the next start.
				s.log.Warn("serve: what was in hand was let go of", "part", p.name, "err", err)
			case err != nil:
				s.failed <- fmt.Errorf("%s: %w", p.name, err)
			}
		})
	}
	var errs []error
	select {
	case <-ctx.Done():
		s.log.Info("serve: stopping", "grace", grace.String())
	case err := <-s.failed:
		errs = append(errs, err)
		s.log.Error("serve: a part failed, stopping", "err", err)
	}
	s.handler.SetDraining()
	stopTaking()
	timer := time.AfterFunc(grace, func() { giveUp(errGraceOver) })
	defer timer.Stop()
	var wg sync.WaitGroup
	for _, server := range s.servers {
		wg.Go(func() {
			if server.Shutdown(work) != nil {
				_ = server.Close() // cuts off what did not end in time
			}
		})
	}
	wg.Wait()
	worked.Wait()
	for len(s.failed) > 0 {
		errs = append(errs, <-s.failed)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.log.Info("serve: stopped")
	return nil
}

// sourceList tells the sources and the scopes that their events are filed under.
func sourceList(sources []handler.Source) []string {
	var list []string
	for _, src := range sources {
		list = append(list, src.Name+" "+src.OwnScope())
	}
	return list
}

// scopes are the scopes of the sources, by name.
func scopes(sources []handler.Source) map[string]string {
	m := map[string]string{}
	for _, src := range sources {
		m[src.Name] = src.OwnScope()
	}
	return m
}
