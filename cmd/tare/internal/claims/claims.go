// Package claims lists the published claims and their measurements: the verb claims.
package claims

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/published"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/studies"
)

// Cmd lists the published claims, on a page too.
type Cmd struct {
	IDs []string `arg:"" optional:"" name:"claim" help:"Show only these, in full; P1 means all of P1."`
	runs.HomeFlag
	JSON bool `name:"json" xor:"form" help:"Print JSON."`

	Markdown string `placeholder:"FILE" xor:"form" help:"Write the claims as a Markdown page; - is standard output."`
	Results  string `placeholder:"FILE" help:"Also write what runs found, for studies/results.json in tare's own source."`
}

// entry is the shape of an element of `tare claims --json`.
type entry struct {
	published.Claim
	studies.Result
}

// Help says what is listed.
func (c *Cmd) Help() string {
	return `Examples:

  tare claims                          every claim with its verdict
  tare claims P1.nesting               one claim with its figures and checks
  tare claims P1 --dir ci-runs         all of P1, by the runs of a folder
  tare claims --markdown claims.md     a page of all

Claims are statements that others published about Go services. A verdict comes from your
runs, or else from the run that is kept with tare. tare run --claims tests them here.`
}

// Run lists.
func (c *Cmd) Run(t *cli.Terminal) error {
	judged, err := c.judged(t)
	if err != nil {
		return err
	}
	rows, err := c.rows(judged)
	if err != nil {
		return err
	}
	for _, id := range c.IDs {
		if !slices.ContainsFunc(rows, func(r entry) bool { return matchesID(r.ID, id) }) {
			return cli.Usage("`tare claims` lists all", fmt.Errorf("no claim is called %s", id))
		}
	}
	if c.Results != "" {
		if err := cli.WriteFile(c.Results, func(w io.Writer) error { return writeResults(w, judged) }); err != nil {
			return err
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
	for _, r := range rows {
		cells = append(cells, []string{r.ID, r.State, c.fit(t, r.Figure), c.fit(t, r.Measured)})
		statements = append(statements, r.Statement)
	}
	for i, line := range cli.AlignColumns(cells) {
		if t.Piped {
			fmt.Fprintln(t.Out, line+doc.Printable(statements[i]))
		} else {
			cli.WrapBeside(t.Out, line, statements[i], t.Width)
		}
	}
	fmt.Fprintln(t.Out)
	cli.Wrap(t.Out, "", countStates(rows), t.Width)
	fmt.Fprintln(t.Out, "`tare claims ID` shows one in full.")
}

// fit is a figure for the table, cut on a terminal alone.
func (c *Cmd) fit(t *cli.Terminal, figure string) string {
	if t.Piped {
		return figure
	}
	return doc.Cut(figure, mostFigure)
}

// countStates says how many claims are decided, and in which state the others are. States
// come in the order of the claims.
func countStates(rows []entry) string {
	counts, verdicts, others := map[string]int{}, []string(nil), []string(nil)
	decided := 0
	for _, r := range rows {
		state := r.State
		if strings.HasPrefix(state, toRun) {
			state = "not run yet"
		}
		order := &others
		if settled(state) {
			decided, order = decided+1, &verdicts
		}
		if counts[state]++; counts[state] == 1 {
			*order = append(*order, state)
		}
	}
	list := func(states []string) string {
		parts := make([]string, len(states))
		for i, state := range states {
			parts[i] = fmt.Sprintf("%d %s", counts[state], state)
		}
		return strings.Join(parts, ", ")
	}
	parts := []string{fmt.Sprintf("%s, %d decided", unit.Plural(len(rows), "claim"), decided)}
	if decided > 0 {
		parts[0] += " (" + list(verdicts) + ")"
	}
	if len(others) > 0 {
		parts = append(parts, list(others))
	}
	return strings.Join(parts, "; ")
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
	line("shown by", r.By)
	line("which is", r.Note)
	for _, k := range r.Checks {
		line("check", describeOutcome(k))
	}
	line("measured", r.Says)
	if r.Run != "" {
		line("run", r.Run+", "+strings.Join(runNotes(&r.Result), ", "))
	}
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

// runNotes are when and where a run was made, how many there are, and whether newer ones
// could not tell.
func runNotes(r *studies.Result) []string {
	notes := []string{r.Started.Format(time.DateOnly), r.Machine}
	if r.Quick {
		notes = append(notes, "short form")
	}
	newer := slices.Index(r.Runs, r.Run)
	switch n := len(r.Runs); {
	case n > 1 && !settled(r.State):
		notes = append(notes, fmt.Sprintf("none of %d runs decided", n))
	case newer == 1:
		notes = append(notes, fmt.Sprintf("one of %d runs; the newer one did not decide", n))
	case newer > 1:
		notes = append(notes, fmt.Sprintf("one of %d runs; the %d newer ones did not decide", n, newer))
	case n > 1:
		notes = append(notes, fmt.Sprintf("the newest of %d runs", n))
	}
	return slices.DeleteFunc(notes, func(s string) bool { return s == "" })
}

// describeOutcome is what a check says, the published figure and the measured one.
func describeOutcome(k studies.Outcome) string {
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

// rows joins the claims with what runs found of them.
func (c *Cmd) rows(judged map[string]studies.Result) ([]entry, error) {
	published, err := studies.Claims()
	if err != nil {
		return nil, err
	}
	known, checks := map[string]bool{}, map[string][]studies.Outcome{}
	all, err := builtIn()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		known[s.Name] = true
		for _, k := range s.Claims {
			for _, check := range k.Checks {
				checks[k.ID] = append(checks[k.ID], studies.Outcome{Says: check.Says, Metric: check.Metric, Figure: publishedFigure(check)})
			}
		}
	}
	var rows []entry
	for _, p := range published {
		if !c.wanted(p.ID) {
			continue
		}
		row := entry{p, studies.Result{State: noStudy}}
		if len(p.Values) > 0 {
			row.Figure = describeFigures(p.Values[0])
		}
		show(&row.Result, checks[p.ID], 0)
		switch j, ok := judged[p.ID]; {
		case p.Verdict != "":
			row.State = p.Verdict
		case ok:
			row.Result = j
		case p.Study == "":
			row.State = "not a study"
		case known[p.Study]:
			row.State = toRun + p.Study
		}
		rows = append(rows, row)
	}
	return rows, nil
}

const (
	noStudy = "no study yet" // the state of a claim whose study is still to be written
	toRun   = "run "         // what that of a claim whose study was not run begins with
)

// show takes over what the checks show, above all the one that gave the verdict.
func show(r *studies.Result, checks []studies.Outcome, part int) {
	r.Checks = checks
	if part < len(checks) {
		k := &checks[part]
		r.Metric, r.Figure, r.Measured, r.Interval = k.Metric, k.Figure, k.Measured, k.Interval
	}
}

func (c *Cmd) wanted(id string) bool {
	for _, want := range c.IDs {
		if matchesID(id, want) {
			return true
		}
	}
	return len(c.IDs) == 0
}

// matchesID reports whether a claim is the one that is called want, or one of those.
func matchesID(id, want string) bool { return id == want || strings.HasPrefix(id, want+".") }

// settled reports whether a state is a verdict that decides. A claim that is inconclusive
// or not comparable is not settled: its older verdict stays.
func settled(state string) bool { return verdict.Word(state).Settled() }

// judged are the verdicts by claim. The newest run that settled a claim counts, or
// else the newest; what came with tare counts where no run of one's own settled it.
// A run that cannot be read is named and left out, and so is what a run found by a rule
// that the study no longer has. What a part of a study or its quick form did not measure
// is no run, nor is one that came with tare and is newer than that of one's own which counts.
func (c *Cmd) judged(t *cli.Terminal) (map[string]studies.Result, error) {
	all, err := record.List(c.Dir) // the newest first
	if err != nil {
		return nil, err
	}
	tested, err := builtIn()
	if err != nil {
		return nil, err
	}
	today := studies.Rules(tested)
	judged := map[string]studies.Result{}
	consider := func(id string, r studies.Result) {
		old, ok := judged[id]
		ids := slices.Clone(old.Runs)
		for _, run := range r.Runs {
			if !slices.Contains(ids, run) && !(settled(old.State) && run > old.Run) {
				ids = append(ids, run)
			}
		}
		slices.Sort(ids) // by the time with which their names begin
		slices.Reverse(ids)
		if !ok || !settled(old.State) && settled(r.State) {
			old = r
		}
		old.Runs = ids
		judged[id] = old
	}
	for _, r := range all {
		_, a, err := runs.Open(r.Dir)
		if err != nil {
			fmt.Fprintf(t.Err, "excluded: %s\n", doc.Printable(err.Error()))
			continue
		}
		for i := range a.Claims {
			k := &a.Claims[i]
			switch result := newResult(a, k); {
			case k.Verdict == verdict.NotComparable && !whole(&a.Manifest):
			case len(today[k.ID]) > 0 && !result.RuledBy(today[k.ID]):
				fmt.Fprintf(t.Err, "excluded: what run %s found of %s: it was judged by another rule than the study has now\n", doc.Printable(a.Manifest.ID), k.ID)
			default:
				consider(k.ID, result)
			}
		}
	}
	kept, err := studies.Results()
	if err != nil {
		return nil, err
	}
	for id, r := range kept {
		if r.RuledBy(today[id]) {
			consider(id, r)
		}
	}
	return judged, nil
}

// builtIn are the studies that come with tare, read once, as that takes long.
var builtIn = sync.OnceValues(studies.All)

// whole reports whether a run is of a built-in study with all its arms and workloads. A part
// has no say on claims about what it lacks.
func whole(m *record.Manifest) bool {
	s, err := studies.Named(m.Study.Name)
	return err == nil && !m.Quick && len(m.Study.Arms) == len(s.Arms) && len(m.Study.Workloads) == len(s.Workloads)
}

// newResult is what a run found of a claim.
func newResult(a *verdict.Analysis, k *verdict.Claim) studies.Result {
	m := &a.Manifest
	r := studies.Result{
		State: string(k.Verdict), Says: k.Sentence,
		Run: m.ID, Runs: []string{m.ID}, Started: m.Started.UTC().Truncate(time.Second), Quick: m.Quick,
		Deciding: k.Deciding,
	}
	switch {
	case k.Needs <= 0 || k.Needs > verdict.MostWorthwhile:
	case k.Rounds:
		r.Rounds = k.Needs
	default:
		r.Needs = a.Progress().Begun + k.Needs
	}
	for _, f := range m.Env {
		if f.Name == "cpu" {
			r.Machine = f.Value
		}
	}
	var checks []studies.Outcome
	for i := range k.Checks {
		check := &k.Checks[i].Check
		shown := studies.Outcome{Says: check.Says, Metric: check.Metric, Figure: publishedFigure(*check), Rule: studies.RuleOf(*check, k.Checks[i].Against)}
		shown.Measured, shown.Interval = measuredFigure(&k.Checks[i])
		checks = append(checks, shown)
	}
	show(&r, checks, k.Part)
	return r
}

// writeResults writes what runs found, in the form that studies.Results reads.
func writeResults(w io.Writer, judged map[string]studies.Result) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(judged)
}
