package main

import (
	"fmt"

	"github.com/tarehq/tare/lab/report"
)

// reportCmd shows a run's verdicts or writes them to a file.
type reportCmd struct {
	Name  string `arg:"" optional:"" name:"run" help:"Folder of a run, or its name below --dir; none: the newest."`
	Dir   string `help:"Folder that runs are kept in." default:"runs"`
	JSON  bool   `name:"json" help:"Print JSON." xor:"form"`
	Bench bool   `help:"Print Go benchmark text, for benchstat." xor:"form"`
	HTML  string `name:"html" help:"Write the one-file report here; - is standard output." placeholder:"FILE" xor:"form"`
}

// Run shows the report.
func (c *reportCmd) Run(t *terminal) error {
	if c.HTML != "-" {
		if err := writable([]output{{"--html", c.HTML}}); err != nil {
			return err
		}
	}
	run, a, err := openRunIn(c.Dir, c.Name)
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		return report.JSON(t.out, a)
	case c.Bench:
		return report.Bench(t.out, run)
	case c.HTML == "-":
		return report.HTML(t.out, run, a)
	case c.HTML != "":
		if err := writeHTML(run, a, c.HTML); err != nil {
			return err
		}
		fmt.Fprintf(t.err, "report: %s\n", c.HTML)
		return nil
	}
	return report.Text(t.out, a, report.TextOptions{Width: t.width, Color: t.colour})
}
