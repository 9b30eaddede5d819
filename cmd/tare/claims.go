package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/studies"
)

// claimsCmd lists the published claims.
type claimsCmd struct {
	IDs  []string `arg:"" optional:"" name:"claim" help:"Only these, in full; P1 stands for all of P1."`
	Dir  string   `help:"Folder that runs are kept in." default:"runs"`
	JSON bool     `name:"json" help:"Print JSON."`
}

// claimRow is the shape of an element of `tare claims --json`.
type claimRow struct {
	study.Published
	State string `json:"state"`         // the verdict, or why there is none
	Says  string `json:"says,omitzero"` // the verdict in one sentence
	Run   string `json:"run,omitzero"`  // folder of the run that it comes from

	// Of the check that decides, or of the first published row where no study
	// has one.
	Metric   string `json:"metric,omitzero"`
	Figure   string `json:"published,omitzero"`
	Measured string `json:"measured,omitzero"`
	Interval string `json:"interval,omitzero"` // of Measured
}

// Run lists.
func (c *claimsCmd) Run(t *cli.Terminal) error {
	rows, err := c.rows(t)
	if err != nil {
		return err
	}
	for _, id := range c.IDs {
		if !slices.ContainsFunc(rows, func(r claimRow) bool { return within(r.ID, id) }) {
			return cli.Usage("`tare claims` lists all", fmt.Errorf("no claim is called %s", id))
		}
	}
	if c.JSON {
		return t.JSON(rows)
	}
	if len(c.IDs) > 0 {
		for _, r := range rows {
			c.full(t, r)
		}
		return nil
	}
	return c.table(t, rows)
}

func (c *claimsCmd) table(t *cli.Terminal, rows []claimRow) error {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	statements := []string{"STATEMENT"}
	fmt.Fprintln(w, "CLAIM\tSTATE\tPUBLISHED\tMEASURED\t")
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.State]++
		statements = append(statements, r.Statement)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", r.ID, r.State, cli.Fit(r.Figure, mostFigure), cli.Fit(r.Measured, mostFigure))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, row := range tableRows(&table) {
		cli.PrintNamed(t.Out, row, statements[i], t.Width)
	}
	sum := cli.Count(uint64(len(rows)), "claim")
	for _, r := range rows {
		if n := counts[r.State]; n > 0 {
			sum += fmt.Sprintf(", %d %s", n, r.State)
			delete(counts, r.State)
		}
	}
	fmt.Fprintln(t.Out)
	cli.Wrap(t.Out, "", sum, t.Width)
	fmt.Fprintln(t.Out, "`tare claims ID` shows one in full.")
	return nil
}

func (c *claimsCmd) full(t *cli.Terminal, r claimRow) {
	fmt.Fprintf(t.Out, "%s: %s\n", r.ID, r.Statement)
	if r.Conditions != "" {
		fmt.Fprintf(t.Out, "  published under: %s\n", r.Conditions)
	}
	for _, v := range r.Values {
		text, err := json.Marshal(v)
		if err == nil {
			fmt.Fprintf(t.Out, "  published: %s\n", text)
		}
	}
	fmt.Fprintf(t.Out, "  state: %s\n", r.State)
	if r.By != "" {
		fmt.Fprintf(t.Out, "  shown by: %s\n", r.By)
	}
	if r.Note != "" {
		fmt.Fprintf(t.Out, "  which is: %s\n", r.Note)
	}
	if r.Measured != "" {
		fmt.Fprintf(t.Out, "  what decides: %s\n", r.decides())
	}
	if r.Says != "" {
		fmt.Fprintf(t.Out, "  measured: %s\n  run: %s\n", r.Says, r.Run)
	}
	fmt.Fprintln(t.Out)
}

// decides is the published figure and the measured one of the check that decides.
func (r *claimRow) decides() string {
	text := fmt.Sprintf("published %s, measured %s", r.Figure, r.Measured)
	if m, ok := study.MetricNamed(r.Metric); ok {
		text = m.Title + " " + text
	}
	if r.Interval != "" {
		text += " (" + r.Interval + ")"
	}
	return text
}

// rows joins the claims with the newest run that judged each.
func (c *claimsCmd) rows(t *cli.Terminal) ([]claimRow, error) {
	published, err := studies.Claims()
	if err != nil {
		return nil, err
	}
	known, deciding := map[string]bool{}, map[string]study.Check{}
	all, err := studies.All()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		known[s.Name] = true
		for _, k := range s.Claims {
			deciding[k.ID] = k.Checks[0]
		}
	}
	judged, err := c.judged(t)
	if err != nil {
		return nil, err
	}
	var rows []claimRow
	for _, p := range published {
		if !c.wanted(p.ID) {
			continue
		}
		row := claimRow{Published: p, State: "not yet measured", Figure: firstFigures(p.Values)}
		if k, ok := deciding[p.ID]; ok {
			row.Metric, row.Figure = k.Metric, publishedFigure(k)
		}
		switch j, ok := judged[p.ID]; {
		case ok:
			row = j
			row.Published = p
		case p.Verdict != "":
			row.State = p.Verdict
		case p.Study == "":
			row.State = "not a study"
		case known[p.Study]:
			row.State = "run " + p.Study
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (c *claimsCmd) wanted(id string) bool {
	for _, want := range c.IDs {
		if within(id, want) {
			return true
		}
	}
	return len(c.IDs) == 0
}

// within tells whether a claim is the one that is called want, or one of those.
func within(id, want string) bool { return id == want || strings.HasPrefix(id, want+".") }

// settled tells whether a run has decided on a claim. One that cannot tell, or
// whose short form leaves the headline out, gives way to an older one.
func settled(state string) bool {
	return state != string(verdict.Inconclusive) && state != string(verdict.NotComparable)
}

// judged are the verdicts of the newest runs, by claim: of those that settled
// it, or else of all. A run that cannot be read is named and left out.
func (c *claimsCmd) judged(t *cli.Terminal) (map[string]claimRow, error) {
	all, err := record.List(c.Dir) // the newest first
	if err != nil {
		return nil, err
	}
	judged := map[string]claimRow{}
	for _, r := range all {
		_, a, err := runs.Open(r.Dir)
		if err != nil {
			fmt.Fprintf(t.Err, "left out: %s\n", report.Printable(err.Error()))
			continue
		}
		for _, k := range a.Claims {
			old, ok := judged[k.ID]
			if ok && (settled(old.State) || !settled(string(k.Verdict))) {
				continue
			}
			row := claimRow{State: string(k.Verdict), Says: k.Sentence, Run: r.Dir}
			if len(k.Checks) > 0 {
				row.Metric, row.Figure = k.Checks[0].Check.Metric, publishedFigure(k.Checks[0].Check)
				row.Measured, row.Interval = measuredFigure(&k.Checks[0])
			}
			judged[k.ID] = row
		}
	}
	return judged, nil
}
