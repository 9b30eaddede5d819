package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/publish"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab/report"
)

// reportCmd shows a run's verdicts or writes them to a file.
type reportCmd struct {
	Name string `arg:"" optional:"" name:"run" help:"Folder of a run, or its name below --dir; default: the newest."`
	runs.HomeFlag
	All      bool   `help:"Show all parts in full, as in a pipe. Without it a terminal shows one screen."`
	JSON     bool   `name:"json" help:"Print JSON." xor:"form"`
	Bench    bool   `help:"Print Go benchmark text, for benchstat." xor:"form"`
	HTML     string `name:"html" help:"Write the report as one HTML file; - is standard output." placeholder:"FILE" xor:"form"`
	Markdown string `help:"Write a comment for a pull request, the report folded in it; - is standard output." placeholder:"FILE" xor:"form"`
}

// Help shows what to write.
func (c *reportCmd) Help() string {
	return `Examples:

  tare report                                     the newest run in ./runs, on one screen
  tare report --all | less                        all of it
  tare report 20261126-090000-release             this one
  tare report --html report.html                  one file to send
  tare report --bench > new.txt                   for benchstat old.txt new.txt`
}

// Run shows the report.
func (c *reportCmd) Run(t *cli.Terminal) error {
	outputs := []cli.Output{{Flag: "--html", Path: c.HTML}, {Flag: "--markdown", Path: c.Markdown}}
	if err := cli.CheckOutputs(slices.DeleteFunc(outputs, func(o cli.Output) bool { return o.Path == "-" })); err != nil {
		return err
	}
	run, a, err := runs.OpenIn(c.Dir, c.Name)
	if err != nil {
		return err
	}
	result := publish.Result{Run: run, Analysis: a}
	switch {
	case c.Bench:
		return report.Bench(t.Out, run)
	case c.HTML != "":
		return writeReport(t, c.HTML, func(w io.Writer) error { return report.HTML(w, run, a, publish.Ending(t, result)...) })
	case c.Markdown != "":
		return writeReport(t, c.Markdown, func(w io.Writer) error { return publish.WriteComment(w, t, result) })
	case c.All && !c.JSON:
		return runs.PrintAll(t, a, publish.Ending(t, result)...)
	}
	_, err = publish.Print(t, result, c.JSON)
	return err
}

// writeReport writes to a file, or to standard output for -.
func writeReport(t *cli.Terminal, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(t.Out)
	}
	if err := cli.WriteFile(path, write); err != nil {
		return err
	}
	fmt.Fprintf(t.Err, "report: %s\n", path)
	return nil
}
