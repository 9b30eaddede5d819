// Package claims is the verb that lists the published claims and what was measured of them.
package claims

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/studies"
)

// Cmd lists the published claims, on a page too.
type Cmd struct {
	IDs []string `arg:"" optional:"" name:"claim" help:"Show only these, in full; P1 means all of P1."`
	runs.HomeFlag
	JSON bool `name:"json" xor:"form" help:"Print JSON."`

	Markdown string `placeholder:"FILE" xor:"form" help:"Write a page of the claims as Markdown; - is standard output."`
}

// entry is the shape of an element of `tare claims --json`.
type entry struct {
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

	Checks []checked `json:"checks,omitzero"` // of the study that tests it, the one that decides first
}

// checked is a published statement beside what was measured of it.
type checked struct {
	Says     string `json:"says"`
	Metric   string `json:"metric,omitzero"`
	Figure   string `json:"published,omitzero"`
	Measured string `json:"measured,omitzero"`
	Interval string `json:"interval,omitzero"` // of Measured
}

// Run lists.
func (c *Cmd) Run(t *cli.Terminal) error {
	rows, err := c.rows(t)
	if err != nil {
		return err
	}
	for _, id := range c.IDs {
		if !slices.ContainsFunc(rows, func(r entry) bool { return within(r.ID, id) }) {
			return cli.Usage("`tare claims` lists all", fmt.Errorf("no claim is called %s", id))
		}
	}
	if c.JSON {
		return t.JSON(rows)
	}
	if c.Markdown != "" {
		page := claimsPage(rows)
		if c.Markdown == "-" {
			return doc.Markdown(t.Out, page)
		}
		return cli.WriteFile(c.Markdown, func(w io.Writer) error { return doc.Markdown(w, page) })
	}
	if len(c.IDs) > 0 {
		for _, r := range rows {
			c.full(t, r)
		}
		return nil
	}
	c.table(t, rows)
	return nil
}

func (c *Cmd) table(t *cli.Terminal, rows []entry) {
	cells, statements := [][]string{{"CLAIM", "STATE", "PUBLISHED", "MEASURED"}}, []string{"STATEMENT"}
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.State]++
		cells = append(cells, []string{r.ID, r.State, cli.Fit(r.Figure, mostFigure), cli.Fit(r.Measured, mostFigure)})
		statements = append(statements, r.Statement)
	}
	for i, line := range cli.AlignColumns(cells) {
		cli.PrintNamed(t.Out, line, statements[i], t.Width)
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
}

func (c *Cmd) full(t *cli.Terminal, r entry) {
	cli.Wrap(t.Out, r.ID+": ", r.Statement, t.Width)
	line := func(label, text string) {
		if text != "" {
			cli.Wrap(t.Out, "  "+label+": ", text, t.Width)
		}
	}
	line("source", r.source())
	line("published under", r.Conditions)
	for _, v := range r.Values {
		line("published", describeFigures(v))
	}
	line("audit", r.Audit)
	line("state", r.State)
	line("awaits", r.Awaits)
	line("shown by", r.By)
	line("which is", r.Note)
	for _, k := range r.Checks {
		line("check", k.String())
	}
	line("measured", r.Says)
	line("run", r.Run)
	fmt.Fprintln(t.Out)
}

// source is where the claim was published.
func (r *entry) source() string {
	text := r.Source.Title + " (" + r.Source.Subject + ")"
	if r.Section != "" {
		text += ", " + r.Section
	}
	return text
}

// String is what the check says, the published figure and the measured one.
func (k checked) String() string {
	text := k.Says + ": "
	if m, ok := study.MetricNamed(k.Metric); ok {
		text += m.Title + " "
	}
	text += "published " + k.Figure
	if k.Measured != "" {
		text += ", measured " + k.Measured
	}
	if k.Interval != "" {
		text += " (" + k.Interval + ")"
	}
	return text
}

// rows joins the claims with the newest run that judged each.
func (c *Cmd) rows(t *cli.Terminal) ([]entry, error) {
	published, err := studies.Claims()
	if err != nil {
		return nil, err
	}
	known, checks := map[string]bool{}, map[string][]checked{}
	all, err := studies.All()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		known[s.Name] = true
		for _, k := range s.Claims {
			for _, check := range k.Checks {
				checks[k.ID] = append(checks[k.ID], checked{Says: check.Says, Metric: check.Metric, Figure: publishedFigure(check)})
			}
		}
	}
	judged, err := c.judged(t)
	if err != nil {
		return nil, err
	}
	var rows []entry
	for _, p := range published {
		if !c.wanted(p.ID) {
			continue
		}
		row := entry{Published: p, State: noStudy}
		if len(p.Values) > 0 {
			row.Figure = describeFigures(p.Values[0])
		}
		row.show(checks[p.ID])
		switch j, ok := judged[p.ID]; {
		case ok:
			row = j
			row.Published = p
		case p.Verdict != "":
			row.State = p.Verdict
		case p.Study == "":
			row.State = "not a study"
		case p.Awaits != "":
			row.State = "not judged yet"
		case known[p.Study]:
			row.State = "run " + p.Study
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// noStudy is the state of a claim whose study is still to be written.
const noStudy = "no study yet"

// show takes over what the checks show, the first of which decides.
func (r *entry) show(checks []checked) {
	r.Checks = checks
	if len(checks) > 0 {
		r.Metric, r.Figure, r.Measured, r.Interval = checks[0].Metric, checks[0].Figure, checks[0].Measured, checks[0].Interval
	}
}

func (c *Cmd) wanted(id string) bool {
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
func (c *Cmd) judged(t *cli.Terminal) (map[string]entry, error) {
	all, err := record.List(c.Dir) // the newest first
	if err != nil {
		return nil, err
	}
	judged := map[string]entry{}
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
			row := entry{State: string(k.Verdict), Says: k.Sentence, Run: r.Dir}
			var checks []checked
			for i := range k.Checks {
				check := &k.Checks[i].Check
				shown := checked{Says: check.Says, Metric: check.Metric, Figure: publishedFigure(*check)}
				shown.Measured, shown.Interval = measuredFigure(&k.Checks[i])
				checks = append(checks, shown)
			}
			row.show(checks)
			judged[k.ID] = row
		}
	}
	return judged, nil
}
