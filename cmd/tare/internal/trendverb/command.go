// Package trendverb shows a study's runs over time: the verb trend.
package trendverb

import (
	"errors"
	"fmt"
	"io"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/trend"
	"github.com/tarehq/tare/lab/verdict"
)

// Command shows one metric of one study over its runs.
type Command struct {
	Dir      string `arg:"" optional:"" default:"runs" help:"Folder that holds the runs (default: runs)."`
	Study    string `help:"Study to show (default: the newest run's)." placeholder:"NAME"`
	Metric   string `help:"Metric to show (default: the study's primary one)."`
	Workload string `help:"Workload to show (default: the study's primary one)." placeholder:"NAME"`
	JSON     bool   `name:"json" help:"Print JSON."`
	HTML     string `name:"html" help:"Write a chart and the table as one HTML file." placeholder:"FILE"`
	Markdown string `help:"Write the table as Markdown." placeholder:"FILE"`
}

// Help says what is compared with what.
func (c *Command) Help() string {
	return `Examples:

  tare trend                                  the newest study in ./runs
  tare trend ci-runs --study release --metric response_p99 --html trend.html

Each run shows its arms as ratios to its own control, with intervals. Runs are not compared
with each other: tare compare does that if both ran the same control.`
}

// Run reads the runs, and shows the trend.
func (c *Command) Run(t *cli.Terminal) error {
	if err := cli.CheckOutputs([]cli.Output{{Flag: "--html", Path: c.HTML}, {Flag: "--markdown", Path: c.Markdown}}); err != nil {
		return err
	}
	all, broken, err := readRuns(c.Dir, c.Study)
	if err != nil {
		return err
	}
	for _, why := range broken {
		t.Note("warning: %s", why)
	}
	tr, err := trend.New(all, trend.Options{Study: c.Study, Workload: c.Workload, Metric: c.Metric})
	if errors.Is(err, trend.ErrNothing) {
		return cli.Usage("`tare list` shows the runs kept, `tare report` what one measured", err)
	}
	if err != nil {
		return err
	}
	page := tr.Page()
	err = errors.Join(
		cli.WriteFile(c.HTML, func(w io.Writer) error { return doc.HTML(w, page, doc.HTMLOptions{}) }),
		cli.WriteFile(c.Markdown, func(w io.Writer) error { return doc.Markdown(w, page) }))
	if c.JSON {
		return errors.Join(t.JSON(tr), err)
	}
	return errors.Join(doc.Text(t.Out, page, t.PageLayout()), err)
}

// readRuns analyses the runs of a study in a folder, "" that of the newest. What cannot be
// read is in broken.
func readRuns(dir, study string) (all []*verdict.Analysis, broken []error, err error) {
	kept, err := record.List(dir) // the newest first
	if err != nil {
		return nil, nil, err
	}
	for _, s := range kept {
		if s.Err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", s.Dir, s.Err))
			continue
		}
		if study == "" {
			study = s.Study
		}
		if s.Study != study {
			continue
		}
		_, a, err := runs.Open(s.Dir)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		all = append(all, a)
	}
	if len(kept) == 0 {
		return nil, nil, cli.Usage("name the folder that holds the runs: tare trend DIR", fmt.Errorf("%s holds no runs", dir))
	}
	return all, broken, nil
}
