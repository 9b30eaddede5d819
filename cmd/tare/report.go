package main

import (
	"fmt"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report"
)

// reportCmd shows a run's verdicts or writes them to a file.
type reportCmd struct {
	Name string `arg:"" optional:"" name:"run" help:"Folder of a run, or its name below --dir; none: the newest."`
	runs.HomeFlag
	JSON  bool   `name:"json" help:"Print JSON." xor:"form"`
	Bench bool   `help:"Print Go benchmark text, for benchstat." xor:"form"`
	HTML  string `name:"html" help:"Write the one-file report here; - is standard output." placeholder:"FILE" xor:"form"`
}

// Run shows the report.
func (c *reportCmd) Run(t *cli.Terminal) error {
	if c.HTML != "-" {
		if err := cli.CheckOutputs([]cli.Output{{Flag: "--html", Path: c.HTML}}); err != nil {
			return err
		}
	}
	run, a, err := runs.OpenIn(c.Dir, c.Name)
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		return report.JSON(t.Out, a)
	case c.Bench:
		return report.Bench(t.Out, run)
	case c.HTML == "-":
		return report.HTML(t.Out, run, a)
	case c.HTML != "":
		if err := runs.WriteHTML(run, a, c.HTML); err != nil {
			return err
		}
		fmt.Fprintf(t.Err, "report: %s\n", c.HTML)
		return nil
	}
	return report.Text(t.Out, a, doc.TextOptions{Width: t.Width, Color: t.Colour})
}
