package main

import (
	"bytes"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by a release build: -ldflags "-X main.version=v1.2.3".
var version string

// build says what this program is made of.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	SQLite   string `json:"sqlite,omitempty"` // of the driver, modernc.org/sqlite
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = s.Value
			}
		}
		for _, d := range info.Deps {
			if d.Path == "modernc.org/sqlite" {
				b.SQLite = d.Version
			}
		}
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say which build this is",
		Long:    "Says which build this is, and of which Go and which SQLite driver it is made.",
		Example: "  paidonce version\n  paidonce version --json",
		Args:    takes(),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			return a.print(b, func(w *bytes.Buffer) {
				pairs(w, "paidonce", b.Version, "commit", b.Commit, "go", b.Go, "sqlite", b.SQLite, "platform", b.Platform)
			})
		},
	}
}
