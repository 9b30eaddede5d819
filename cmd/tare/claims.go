package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

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
}

// Run lists.
func (c *claimsCmd) Run(t *terminal) error {
	rows, err := c.rows(t)
	if err != nil {
		return err
	}
	for _, id := range c.IDs {
		if !slices.ContainsFunc(rows, func(r claimRow) bool { return r.ID == id }) {
			return asked("`tare claims` lists all", fmt.Errorf("no claim is called %s", id))
		}
	}
	if c.JSON {
		return t.json(rows)
	}
	if len(c.IDs) > 0 {
		for _, r := range rows {
			c.full(t, r)
		}
		return nil
	}
	return c.table(t, rows)
}

func (c *claimsCmd) table(t *terminal, rows []claimRow) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLAIM\tSTATE\tSTATEMENT")
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.State]++
		room := max(20, t.width-44)
		statement := r.Statement
		if s := []rune(statement); len(s) > room {
			statement = string(s[:room-1]) + "…"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.ID, r.State, statement)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "\n%s", count(uint64(len(rows)), "claim"))
	for _, r := range rows {
		if n := counts[r.State]; n > 0 {
			fmt.Fprintf(t.out, ", %d %s", n, r.State)
			delete(counts, r.State)
		}
	}
	fmt.Fprintln(t.out, "\n`tare claims ID` shows one in full.")
	return nil
}

func (c *claimsCmd) full(t *terminal, r claimRow) {
	fmt.Fprintf(t.out, "%s: %s\n", r.ID, r.Statement)
	if r.Conditions != "" {
		fmt.Fprintf(t.out, "  published under: %s\n", r.Conditions)
	}
	for _, v := range r.Values {
		text, err := json.Marshal(v)
		if err == nil {
			fmt.Fprintf(t.out, "  published: %s\n", text)
		}
	}
	fmt.Fprintf(t.out, "  state: %s\n", r.State)
	if r.By != "" {
		fmt.Fprintf(t.out, "  shown by: %s\n", r.By)
	}
	if r.Says != "" {
		fmt.Fprintf(t.out, "  measured: %s\n  run: %s\n", r.Says, r.Run)
	}
	fmt.Fprintln(t.out)
}

// rows joins the claims with the newest run that judged each.
func (c *claimsCmd) rows(t *terminal) ([]claimRow, error) {
	published, err := studies.Claims()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	all, err := studies.All()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		known[s.Name] = true
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
		row := claimRow{Published: p, State: "not yet measured"}
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
		if id == want || strings.HasPrefix(id, want+".") {
			return true
		}
	}
	return len(c.IDs) == 0
}

// judged are the verdicts of the newest runs, by claim. A run that cannot be
// read is named and left out.
func (c *claimsCmd) judged(t *terminal) (map[string]claimRow, error) {
	runs, err := record.List(c.Dir) // the newest first
	if err != nil {
		return nil, err
	}
	judged := map[string]claimRow{}
	for _, r := range runs {
		_, a, err := openRun(r.Dir)
		if err != nil {
			fmt.Fprintf(t.err, "left out: %s\n", report.Printable(err.Error()))
			continue
		}
		for _, k := range a.Claims {
			old, ok := judged[k.ID]
			if ok && old.State != string(verdict.Inconclusive) {
				continue
			}
			judged[k.ID] = claimRow{State: string(k.Verdict), Says: k.Sentence, Run: r.Dir}
		}
	}
	return judged, nil
}
