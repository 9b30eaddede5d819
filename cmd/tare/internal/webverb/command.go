// Package webverb is the verb web: it serves runs as pages.
//
// The pages come from a program of its own, web/cmd/tare-web, since its database is larger
// than all else in tare. It lies beside tare where a release put it there; elsewhere it is
// built from tare's source and kept in the cache, as arms are.
package webverb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/source"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// Command serves runs as pages.
type Command struct {
	Dir     string `arg:"" optional:"" default:"runs" help:"Folder that holds the runs (default: runs)."`
	Listen  string `default:"127.0.0.1:8273" help:"Address to serve on." placeholder:"127.0.0.1:8273"`
	DB      string `name:"db" help:"File of the index, or postgres://USER@HOST/NAME (default: a file in the user's cache)." placeholder:"PLACE"`
	Reindex bool   `help:"Build the index anew from the folders first."`
	Token   string `name:"upload-token-file" help:"File with the token that allows adding runs; without it nobody can." placeholder:"FILE"`
}

// Help says what the pages show.
func (c *Command) Help() string {
	return `Examples:

  tare web                      the runs in ./runs, on http://127.0.0.1:8273/
  tare web ci-runs --listen 127.0.0.1:9000
  tare web ci-runs --db postgres://tare@db.example/tare

Pages list the runs, studies and claims, show reports, and follow a metric of a study over
its runs, with noise floor and suspected changes. They compare two runs through their
control, draw flame graphs, rank frameworks, and follow a run that goes on. They work
without scripts.

The folders stay the truth. The index only lists them, and --reindex builds it anew.
PostgreSQL reads its password from PGPASSWORD or ~/.pgpass.

The first start builds the program from source, which needs Go and takes a minute or two.`
}

// Run serves until it is interrupted.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	if fi, err := os.Stat(c.Dir); err != nil || !fi.IsDir() {
		return cli.Usage("name the folder that holds the runs: tare web DIR; `tare run` makes runs", fmt.Errorf("there is no folder %s", c.Dir))
	}
	program, err := find(ctx, t)
	if err != nil {
		return err
	}
	return c.serve(ctx, t, program)
}

// find returns the program's path.
func find(ctx context.Context, t *cli.Terminal) (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside, ok := besideOf(self); ok {
			return beside, nil
		}
	}
	slow := time.AfterFunc(2*time.Second, func() { t.Note("building tare-web from source, which takes a minute or two the first time …") })
	defer slow.Stop()
	b := &arm.Builder{FetchSource: source.Fetch}
	p, err := b.Build(ctx, study.Arm{Go: "./web/cmd/tare-web"})
	if err != nil {
		return "", fmt.Errorf("building tare-web: %w", err)
	}
	return p.Path, nil
}

// besideOf is the program in the folder of tare's own file, where it is there.
func besideOf(self string) (string, bool) {
	name := "tare-web"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	path := filepath.Join(filepath.Dir(self), name)
	fi, err := os.Stat(path)
	return path, err == nil && fi.Mode().IsRegular() && (runtime.GOOS == "windows" || fi.Mode()&0o111 != 0)
}

// patience is how long the program may take to end: less than tare itself has.
const patience = 15 * time.Second

// serve runs the program until it ends, and has its status. An interruption reaches it as
// one.
func (c *Command) serve(ctx context.Context, t *cli.Terminal, program string) error {
	cmd := exec.CommandContext(ctx, program, c.arguments()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, t.Out, t.Err
	cmd.Cancel = func() error {
		if runtime.GOOS == "windows" {
			return cmd.Process.Kill()
		}
		return cmd.Process.Signal(os.Interrupt)
	}
	cmd.WaitDelay = patience
	err := cmd.Run()
	exit := (*exec.ExitError)(nil)
	switch {
	case cmd.ProcessState != nil && cmd.ProcessState.Success(): // ended as asked, though ctx may have ended too
		return nil
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return &cli.Failure{Status: exit.ExitCode()} // it said why
	case ctx.Err() != nil:
		return fmt.Errorf("tare-web did not end within %v: %w", patience, ctx.Err())
	case err != nil:
		return fmt.Errorf("running tare-web: %w", err)
	}
	return nil
}

func (c *Command) arguments() []string {
	args := []string{"-listen", c.Listen}
	if c.DB != "" {
		args = append(args, "-db", c.DB)
	}
	if c.Reindex {
		args = append(args, "-reindex")
	}
	if c.Token != "" {
		args = append(args, "-upload-token-file", c.Token)
	}
	return append(args, "--", c.Dir)
}
