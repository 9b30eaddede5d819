package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/studies"
)

// listCmd lists studies and runs.
type listCmd struct {
	Names bool   `help:"Only the studies' names." xor:"form"`
	Runs  bool   `help:"Only the runs' names." xor:"form"`
	JSON  bool   `name:"json" help:"As JSON." xor:"form"`
	Dir   string `help:"Folder that runs are kept in." default:"runs"`
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
	l, err := c.gather()
	if err != nil {
		return err
	}
	if c.JSON {
		return t.JSON(l)
	}
	w := bufio.NewWriterSize(t.Out, 1<<16)
	if err := c.print(w, l, t.Width); err != nil {
		return err
	}
	return w.Flush()
}

func (c *listCmd) print(w io.Writer, l listed, width int) error {
	switch {
	case c.Names:
		for _, s := range l.Studies {
			fmt.Fprintln(w, s.Name)
		}
		return nil
	case c.Runs:
		for _, r := range l.Runs {
			fmt.Fprintln(w, filepath.Base(r.Dir))
		}
		return nil
	}
	if err := printStudies(w, l.Studies, width); err != nil || len(l.Runs) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return printRuns(w, l.Runs, width)
}

// printStudies prints a table of which the last column, the title, is broken to
// fit the terminal.
func printStudies(out io.Writer, all []listedStudy, width int) error {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	titles := []string{"TITLE"}
	fmt.Fprintln(w, "STUDY\tARMS\tCLAIMS\tTAKES\tQUICK\t")
	for _, s := range all {
		titles = append(titles, s.Title)
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t\n", s.Name, s.Arms, len(s.Claims), minutes(s.Seconds), minutes(s.Quick))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, row := range tableRows(&table) {
		beside(out, row, titles[i], width)
	}
	return nil
}

// beside prints text at the end of a table's row, broken to fit the terminal, or
// below the row where there is too little room for it.
func beside(w io.Writer, row, text string, width int) {
	if room := width - utf8.RuneCountInString(row); room < min(cli.LeastRoom, utf8.RuneCountInString(text)) {
		fmt.Fprintln(w, strings.TrimRight(row, " "))
		row = "    "
	}
	cli.Wrap(w, row, text, width)
}

func printRuns(out io.Writer, all []listedRun, width int) error {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	states := []string{"ENDED"}
	fmt.Fprintln(w, "RUN\tTRIALS\t")
	for _, r := range all {
		state := r.Outcome
		switch {
		case r.Error != "":
			state = r.Error
		case state == "":
			state = "running or killed"
		}
		states = append(states, state)
		fmt.Fprintf(w, "%s\t%d\t\n", r.Dir, r.Trials)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, row := range tableRows(&table) {
		beside(out, row, states[i], width)
	}
	return nil
}

// tableRows are the lines of a table.
func tableRows(table *bytes.Buffer) []string {
	return strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
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
			Claims: []string{}, Seconds: atMost(s, 0).Seconds(), Quick: atMost(s.QuickForm(), 0).Seconds(),
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
