// Package webverb is the verb web: it serves runs as pages, which a program of its own
// makes, web/cmd/tare-web.
package webverb

import (
	"context"
	"fmt"
	"os"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/companion"
)

// Command serves runs as pages.
type Command struct {
	Dir     string `arg:"" optional:"" default:"runs" help:"Folder that holds the runs (default: runs)."`
	Listen  string `default:"127.0.0.1:8273" help:"Address to serve on." placeholder:"127.0.0.1:8273"`
	DB      string `name:"db" help:"File of the index, or postgres://USER@HOST/NAME (default: a file in the user's cache)." placeholder:"PLACE"`
	Reindex bool   `help:"First rebuild the index from the folders."`
	Token   string `name:"upload-token-file" help:"File with the token that allows adding runs; without it nobody can." placeholder:"FILE"`
}

// Help says what the pages show.
func (c *Command) Help() string {
	return `Examples:

  tare web                      the runs in ./runs, on http://127.0.0.1:8273/
  tare web ci-runs --listen 127.0.0.1:9000
  tare web ci-runs --db postgres://tare@db.example/tare

Pages list runs, studies and claims, and show reports. They plot a metric of a study over
its runs, with noise floor and suspected changes. They compare two runs through their
control, draw flame graphs, rank frameworks, and follow a run live. They work without
scripts.

The index only speeds up lists. All data stay in the folders, and --reindex rebuilds it.
PostgreSQL reads its password from PGPASSWORD or ~/.pgpass.

The first start builds the program from source, which needs Go and takes a minute or two.`
}

// Run serves until it is interrupted.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	if fi, err := os.Stat(c.Dir); err != nil || !fi.IsDir() {
		return cli.Usage("name the folder that holds the runs: tare web DIR; `tare run` makes runs", fmt.Errorf("there is no folder %s", c.Dir))
	}
	return companion.Run(ctx, t, companion.Web, c.arguments())
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
