package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/studies"
)

// listCmd lists studies and runs.
type listCmd struct {
	Study string `arg:"" optional:"" help:"Describe this study: its question, arms, loads and claims." xor:"form"`
	Names bool   `help:"Print only the studies' names." xor:"form"`
	Runs  bool   `help:"Print only the runs' names." xor:"form"`
	JSON  bool   `name:"json" help:"Print JSON." xor:"form"`
	runs.HomeFlag
}

// Help shows what to list.
func (c *listCmd) Help() string {
	return `Examples:

  tare list                 the studies with their questions, and the runs in ./runs
  tare list nesting         what the study nesting asks, compares and decides
  tare list --dir ci-runs   the runs of another folder
  tare list --names         names of studies, for scripts`
}

// listed is the shape of `tare list --json`.
type listed struct {
	Studies []listedStudy `json:"studies"`
	Runs    []listedRun   `json:"runs"`
}

type listedStudy struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Question  string   `json:"question"`
	Arms      int      `json:"arms"`
	Workloads int      `json:"workloads"`
	Claims    []string `json:"claims"`
	Seconds   float64  `json:"seconds"`       // for all blocks
	Quick     float64  `json:"quick_seconds"` // for the short form
}

type listedRun struct {
	Dir     string    `json:"dir"`
	Study   string    `json:"study"`
	Started time.Time `json:"started"`
	Outcome string    `json:"outcome"`
	Trials  int       `json:"trials"`
	Error   string    `json:"error,omitempty"`
}

// Run lists, in one write as long as it is short: head -1 is content with its
// beginning.
func (c *listCmd) Run(t *cli.Terminal) error {
	if c.Study != "" {
		return describeStudy(t, c.Study)
	}
	l, err := c.gather()
	if err != nil {
		return err
	}
	if c.JSON {
		return t.JSON(l)
	}
	w := bufio.NewWriterSize(t.Out, 1<<16)
	c.print(w, l, t.Width)
	return w.Flush()
}

// describeStudy prints what a built-in study asks and how.
func describeStudy(t *cli.Terminal, name string) error {
	s, err := studies.Named(name)
	if err != nil {
		return cli.Usage("`tare list` describes them in a line each", err)
	}
	page := doc.Page{}
	page.Add(doc.Heading{Level: 1, Text: s.Name + ": " + s.Title}, doc.Paragraph{Text: doc.Plain(s.Question)})
	table := func(kind string, rows [][]string) {
		b := doc.Table{Wrap: true, Columns: []doc.Column{{Head: kind, Key: true}, {Head: "is"}}}
		for _, cells := range rows {
			b.Rows = append(b.Rows, doc.Row{Cells: doc.Cells(cells...)})
		}
		page.Add(b)
	}
	var arms, loads, claims [][]string
	for _, a := range s.Arms {
		title := a.Title
		if a.Name == s.Control {
			title = cmp.Or(title, a.Name) + " (the control)"
		}
		arms = append(arms, []string{a.Name, title})
	}
	for _, w := range s.Workloads {
		loads = append(loads, []string{w.Name, w.Title})
	}
	published, err := studies.Claims()
	if err != nil {
		return err
	}
	for _, c := range published {
		if slices.ContainsFunc(s.Claims, func(k study.Claim) bool { return k.ID == c.ID }) {
			claims = append(claims, []string{c.ID, c.Statement})
		}
	}
	table("arm", arms)
	table("load", loads)
	table("claim", claims)
	page.Add(doc.Paragraphf("`tare run %[1]s` takes at most %[2]s, `tare run %[1]s --quick` %[3]s.", s.Name, minutes(runs.LongestTime(s, 0).Seconds()), minutes(runs.LongestTime(s.QuickForm(), 0).Seconds())))
	return doc.Text(t.Out, page, t.PageLayout())
}

func (c *listCmd) print(w io.Writer, l listed, width int) {
	switch {
	case c.Names:
		for _, s := range l.Studies {
			fmt.Fprintln(w, s.Name)
		}
	case c.Runs:
		for _, r := range l.Runs {
			fmt.Fprintln(w, filepath.Base(r.Dir))
		}
	default:
		printStudies(w, l.Studies, width)
		if len(l.Runs) > 0 {
			fmt.Fprintln(w)
			printRuns(w, l.Runs, width)
		}
	}
}

// printStudies prints a table of which the last column, the title, is broken to
// fit the terminal.
func printStudies(w io.Writer, all []listedStudy, width int) {
	cells, titles := [][]string{{"STUDY", "ARMS", "CLAIMS", "TAKES", "QUICK"}}, []string{"TITLE"}
	for _, s := range all {
		cells = append(cells, []string{s.Name, strconv.Itoa(s.Arms), strconv.Itoa(len(s.Claims)), minutes(s.Seconds), minutes(s.Quick)})
		titles = append(titles, s.Title)
	}
	for i, row := range cli.AlignColumns(cells) {
		cli.WrapBeside(w, row, titles[i], width)
	}
}

func printRuns(w io.Writer, all []listedRun, width int) {
	cells, states := [][]string{{"RUN", "TRIALS"}}, []string{"ENDED"}
	for _, r := range all {
		cells = append(cells, []string{r.Dir, strconv.Itoa(r.Trials)})
		states = append(states, cmp.Or(r.Error, r.Outcome, "running or killed"))
	}
	for i, row := range cli.AlignColumns(cells) {
		cli.WrapBeside(w, row, states[i], width)
	}
}

func minutes(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

func (c *listCmd) gather() (listed, error) {
	l := listed{Runs: []listedRun{}}
	all, err := studies.All()
	if err != nil {
		return l, err
	}
	for _, s := range all {
		row := listedStudy{
			Name: s.Name, Title: s.Title, Question: s.Question, Arms: len(s.Arms), Workloads: len(s.Workloads),
			Claims: []string{}, Seconds: runs.LongestTime(s, 0).Seconds(), Quick: runs.LongestTime(s.QuickForm(), 0).Seconds(),
		}
		for _, k := range s.Claims {
			row.Claims = append(row.Claims, k.ID)
		}
		l.Studies = append(l.Studies, row)
	}
	kept, err := record.List(c.Dir)
	if err != nil {
		return l, err
	}
	for _, r := range kept {
		row := listedRun{Dir: r.Dir, Study: r.Study, Started: r.Started, Outcome: r.Outcome, Trials: r.Trials}
		if r.Err != nil {
			row.Error = r.Err.Error()
		}
		l.Runs = append(l.Runs, row)
	}
	return l, nil
}
