package main

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"paidonce/store"
)

// demoChild is what the demo tells the service that it starts, on its stdin.
// Only here may a service be told to die at a point or to have a small disk:
// no flag, variable or file reaches these, and a child works only in a
// directory that a demo has made for it.
type demoChild struct {
	Dir   string            `json:"dir"`
	Nonce string            `json:"nonce"`            // what the demo wrote into the directory
	Env   map[string]string `json:"env"`              // its whole environment
	DieAt string            `json:"die_at,omitempty"` // a point in a write transaction
}

// demoTold is what a demo may tell its child later, a line each; the child
// writes a line when it is done.
type demoTold struct {
	Pages int64 `json:"pages"` // the disk ends here; 0: it has room
}

// demoMark is the file that makes a directory a demo's.
const demoMark = ".paidonce-demo"

func (a *app) demoChildCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "demo-child",
		Short:   "The service under a demo",
		Example: "  paidonce demo",
		Hidden:  true,
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demoChild(cmd.Context())
		},
	}
}

// demoChild serves as it is told, until its stdin ends: a demo that dies takes
// its child along.
func (a *app) demoChild(ctx context.Context) error {
	var c demoChild
	in := json.NewDecoder(a.stdin)
	if err := in.Decode(&c); err != nil {
		return errors.New("demo-child is started by `paidonce demo` alone")
	}
	mark, err := os.ReadFile(filepath.Join(c.Dir, demoMark))
	if err != nil || len(mark) < 20 || subtle.ConstantTimeCompare(mark, []byte(c.Nonce)) != 1 {
		return errors.New("demo-child works only in a directory that `paidonce demo` has made")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	child := &app{process: a.process, dbFlag: filepath.Join(c.Dir, defaultDB)}
	child.lookup = func(name string) (string, bool) { v, ok := c.Env[name]; return v, ok }
	child.adjust = func(o *store.Options) {
		if c.DieAt == "" {
			return
		}
		o.Testpoint = func(point string) {
			if point == c.DieAt {
				die()
			}
		}
	}
	child.opened = func(s *store.Store) {
		go func() {
			defer cancel()
			for {
				var told demoTold
				if in.Decode(&told) != nil {
					return
				}
				err := s.LimitPages(ctx, told.Pages)
				fmt.Fprintf(a.stdout, "limited to %d pages: %v\n", told.Pages, err)
			}
		}()
	}
	return child.serve(ctx, overrides{listen: "127.0.0.1:0", adminListen: "127.0.0.1:0"})
}

// die ends this process as kill -9 does: nothing is flushed, closed or said.
func die() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("demo: cannot die: %v", err))
	}
	select {}
}
