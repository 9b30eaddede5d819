package main

import (
	"fmt"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report"
)

// compareCmd compares two runs through the control that they share.
type compareCmd struct {
	A string `arg:"" name:"run" help:"A run's folder, or its name below --dir."`
	B string `arg:"" name:"other" help:"The run to compare it with, in the same forms."`
	runs.HomeFlag
}

// Help says when two runs can be compared.
func (c *compareCmd) Help() string {
	return `Examples:

  tare list --runs                                      the names of the runs
  tare compare 20261125-090000-release 20261126-090000-release

Trials of two runs lie hours or versions apart, so tare never compares them directly.
It compares each run's arms with its own control, and shows the two ratios side by side.
Both runs need the same control program, start options, number of CPUs and workload.
Otherwise the command reports what differs.`
}

// Run compares.
func (c *compareCmd) Run(t *cli.Terminal) error {
	_, a, err := runs.OpenIn(c.Dir, c.A)
	if err != nil {
		return err
	}
	_, b, err := runs.OpenIn(c.Dir, c.B)
	if err != nil {
		return err
	}
	// Machines that are told to by one clock begin runs of one name.
	if id := a.Manifest.ID; id == b.Manifest.ID && a.Manifest.Started.Equal(b.Manifest.Started) {
		return cli.Usage("`tare list` shows the runs kept", fmt.Errorf("both are the run %s: nothing to compare", id))
	}
	page, err := report.Compare(a, b)
	if err != nil {
		return err
	}
	return doc.Text(t.Out, page, t.PageLayout())
}
