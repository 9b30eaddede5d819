// Package comment builds the comment on a pull request: what a run says, in 25 lines.
//
// [Page] is a page of doc. The verdict is first, then the metrics with their intervals
// and the noise floor, then the owners whose cost changed with the functions responsible,
// and how to repeat the run. The whole report is folded below. Nothing is decided here:
// the verdicts are those of lab/verdict, the owners those of cost/diff.
package comment

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// Source is what a comment is made from.
type Source struct {
	Analysis *verdict.Analysis
	Gates    []verdict.Gated // nil without budgets
	Changes  []Change        // nil if no arm was profiled besides the control
	Profiles Profiles
	Command  []string // that repeats it; nil: the run's own
}

// Change is what the captures of an arm differ by from those of the control.
type Change struct {
	Workload, Arm string
	CPU, Bytes    *diff.Result // nil without profiles of that kind
}

const (
	// mostBytes is the length of a comment. GitHub takes 65,536 characters, GitLab more.
	mostBytes = 60_000
	// mostRows is how many rows the tables have together, so that no comment has more
	// than 25 lines outside of the fold.
	mostRows = 9
	// mostOwners of them are owners.
	mostOwners = 3
	// mostFunctions are named for each owner.
	mostFunctions = 3
)

// Markdown writes the comment. It leaves the folded report out if that is too long for one.
func Markdown(w io.Writer, s Source) error {
	var b bytes.Buffer
	if err := doc.Markdown(&b, Page(s)); err != nil {
		return err
	}
	if b.Len() > mostBytes {
		p := summary(&s)
		p.Add(doc.Note("The whole report is too long for a comment: `tare report` shows it."))
		return doc.Markdown(w, p)
	}
	_, err := b.WriteTo(w)
	return err
}

// Page is the comment.
func Page(s Source) doc.Page {
	p := summary(&s)
	a := s.Analysis
	full := report.Page(nil, a)
	blocks := append(full.Blocks, doc.Note(full.Foot))
	warnings := len(a.Warnings) + len(a.Trials.Warning)
	p.Add(doc.Fold{Blocks: blocks, Summary: fmt.Sprintf("Details: %s, %d of %s count, %s",
		unit.Plural(a.Progress().Blocks, "block"), a.Trials.Valid, unit.Plural(a.Trials.Total, "trial"), unit.Plural(warnings, "warning"))})
	return p
}

// Equal is a change that leaves the programs as they are.
type Equal struct {
	Study, Control string
	BuildID        string // SHA-256 of the program
	Command        []string
}

// Page is the comment on it.
func (e *Equal) Page() doc.Page {
	p := doc.Page{Title: "The programs are identical"}
	p.Add(doc.Heading{Level: 2, Text: "Passed: the programs are identical"},
		doc.Paragraph{Text: doc.Spans{{Text: "Every build is the same, byte for byte, as that of "}, {Text: e.Control, Code: true},
			{Text: ", so nothing was measured. Its SHA-256 begins with "}, {Text: e.BuildID[:min(12, len(e.BuildID))], Code: true}, {Text: "."}}},
		repeat(report.ShellLine(e.Command)))
	return p
}

// summary is the comment without its fold.
func summary(s *Source) doc.Page {
	a := s.Analysis
	p := doc.Page{Title: a.Manifest.Study.Name + ": " + a.Headline}
	if len(s.Gates) == 0 {
		p.Add(doc.Heading{Level: 2, Text: a.Headline})
	} else {
		p.Add(doc.Heading{Level: 2, Text: outcome(s.Gates)})
		held := !slices.ContainsFunc(s.Gates, func(g verdict.Gated) bool { return g.Result != bound.Held })
		if a.Decided() || !held { // budgets may hold where the study's own threshold is not decided
			p.Add(doc.Paragraph{Text: doc.Plain(a.Headline)})
		}
	}
	owners := ownersTable(s)
	metrics := metricsTable(s, mostRows-len(owners.Rows))
	keepFigures(&metrics)
	keepFigures(&owners)
	p.Add(metrics, ownersOf(s, owners))
	p.Add(repeat(cmp.Or(report.ShellLine(s.Command), report.ShellLine(a.Manifest.Command))))
	return p
}

// keepFigures keeps figures and intervals on one line, where a column is narrow.
func keepFigures(t *doc.Table) {
	for i, c := range t.Columns {
		if !c.Right && !strings.HasSuffix(c.Head, "interval") {
			continue
		}
		for _, row := range t.Rows {
			row.Cells[i].Text = strings.ReplaceAll(row.Cells[i].Text, " ", "\u00a0")
		}
	}
}

// ownersOf is the table of owners, or why it has no rows.
func ownersOf(s *Source, owners doc.Table) doc.Block {
	if len(owners.Rows) > 0 {
		return owners
	}
	return doc.Note(s.Profiles.absence(s.Changes))
}

// Ending is what a terminal shows below the report: the owners whose cost changed, the sizes
// of the programs, and a sentence for each metric that was asked for.
func Ending(s Source) []doc.Block {
	var p doc.Page
	owners := ownersTable(&s)
	p.Add(doc.Heading{Level: 2, Text: "Owners"}, ownersOf(&s, owners))
	if len(owners.Rows) > 0 && !s.Analysis.Decided() {
		p.Add(doc.Note(fmt.Sprintf("These are from %s after the %s by which the headline is judged. An owner can differ by more than chance there while the whole is not decided.",
			unit.Plural(s.Profiles.Usable, "profile"), unit.Plural(s.Analysis.Progress().Blocks, "block"))))
	}
	if text := sizesOf(s.Analysis); text != "" {
		p.Add(doc.Note(text))
	}
	if len(s.Gates) == 0 {
		return p.Blocks
	}
	var l doc.List
	for i := range s.Gates {
		l.Items = append(l.Items, doc.Spans{{Text: sentence(&s.Gates[i]), Strong: true}})
	}
	p.Add(doc.Heading{Level: 2, Text: "Budgets"}, l)
	return p.Blocks
}

// sizesOf says how large the built programs are; "" if the control is not known to be one.
func sizesOf(a *verdict.Analysis) string {
	m := &a.Manifest
	control := m.Programs[m.Study.Control].Size
	if control == 0 {
		return ""
	}
	text := fmt.Sprintf("Size of the program: %s %s", m.Study.Control, unit.Format(float64(control), unit.Bytes))
	for _, arm := range m.Study.Arms {
		if size := m.Programs[arm.Name].Size; size > 0 && arm.Name != m.Study.Control {
			text += fmt.Sprintf(", %s %s (%s)", arm.Name, unit.Format(float64(size), unit.Bytes), unit.Change(float64(size)/float64(control)-1))
		}
	}
	return text + "."
}

// sentence says what became of one budget.
func sentence(g *verdict.Gated) string {
	word := map[bound.Outcome]string{bound.Held: "Passed", bound.Failed: "Failed", bound.Inconclusive: "Inconclusive"}[g.Result]
	what := g.Metric.Title
	if g.Arm != "" {
		what += " of " + g.Arm
	}
	if g.Withheld != "" {
		return fmt.Sprintf("%s: %s: %s", word, what, g.Withheld)
	}
	return fmt.Sprintf("%s: %s is %s (%s %s), budget %s", word, what, g.Figure(), g.Difference.Called(), g.Range(), unit.Change(g.Budget))
}

func repeat(command string) doc.Paragraph {
	return doc.Paragraph{Text: doc.Spans{{Text: "Repeat: "}, {Text: command, Code: true}}}
}

// outcome says what became of the budgets.
func outcome(gates []verdict.Gated) string {
	var failed, open []verdict.Gated
	for _, g := range gates {
		switch g.Result {
		case bound.Failed:
			failed = append(failed, g)
		case bound.Inconclusive:
			open = append(open, g)
		}
	}
	switch all := unit.Plural(len(gates), "budget"); {
	case len(failed) == 1:
		return sentence(&failed[0])
	case len(failed) > 1:
		return fmt.Sprintf("Failed: %d of %s are exceeded", len(failed), all)
	case len(open) == 1:
		return sentence(&open[0])
	case len(open) > 1:
		return fmt.Sprintf("Inconclusive: %d of %s undecided", len(open), all)
	case len(gates) == 1:
		return "Passed: the budget holds"
	default:
		return fmt.Sprintf("Passed: all %s hold", all)
	}
}

// Worst is failed if any gate failed, inconclusive if any is undecided, else held.
func Worst(gates []verdict.Gated) bound.Outcome {
	worst := bound.Held
	for _, g := range gates {
		if g.Result == bound.Failed || g.Result == bound.Inconclusive && worst == bound.Held {
			worst = g.Result
		}
	}
	return worst
}

// shown are the metrics of the comment beside the primary one and those with budgets.
var shown = [...]string{"cpu_per_request", "response_p50", "response_p99", "throughput", "alloc_bytes", "rss_peak", "startup"}

// line is a comparison to be shown, with its budget if it has one.
type line struct {
	*verdict.Comparison
	gate *verdict.Gated
}

// lines are what is gated, the worst first, then what else is worth a look.
func lines(s *Source) []line {
	var all []line
	a := s.Analysis
	rank := map[bound.Outcome]int{bound.Failed: 0, bound.Inconclusive: 1, bound.Held: 2}
	seen := map[string]bool{}
	for _, g := range slices.SortedStableFunc(slices.Values(s.Gates), func(x, y verdict.Gated) int { return cmp.Compare(rank[x.Result], rank[y.Result]) }) {
		seen[g.Workload+" "+g.Metric.Name] = true
		all = append(all, line{g.Comparison, &g})
	}
	primary := a.Manifest.Study.Primary
	for _, name := range append([]string{primary.Metric}, shown[:]...) {
		for i := range a.Workloads {
			w := &a.Workloads[i]
			m := w.Metric(name)
			if m == nil || m.Withheld != "" || m.Instrument || w.Unfit(name) != "" || seen[w.Name+" "+name] || name == primary.Metric && w.Name != primary.Workload {
				continue
			}
			seen[w.Name+" "+name] = true
			for k := range m.Compared {
				if m.Compared[k].Withheld == "" {
					all = append(all, line{&m.Compared[k], nil})
				}
			}
		}
	}
	return all
}

// metricsTable has so many lines at most. The level of the intervals is in the head where
// all have the same.
func metricsTable(s *Source, most int) doc.Table {
	a := s.Analysis
	t := doc.Table{Caption: "Metrics", Unlabelled: true, Columns: []doc.Column{{Head: "metric", Key: true}, {Head: "arm"},
		{Head: a.Manifest.Study.Control, Right: true}, {Head: "arm’s", Right: true}, {Head: "change", Right: true},
		{Head: "interval"}, {Head: "noise floor", Right: true}, {Head: "verdict"}}}
	all := lines(s)
	all = all[:min(len(all), most)]
	level := 0.0
	for _, l := range all {
		if l.Withheld == "" {
			level = cmp.Or(level, l.Alpha)
		}
	}
	other := slices.ContainsFunc(all, func(l line) bool { return l.Withheld == "" && l.Alpha != level })
	if level > 0 && !other {
		t.Columns[5].Head = verdict.Confidence(level) + " interval"
	}
	for _, l := range all {
		cells := metricCells(a, l)
		if other && l.Withheld == "" && cells[5].Text == l.Range() {
			cells[5].Text += " (" + verdict.Confidence(l.Alpha) + ")"
		}
		t.Rows = append(t.Rows, doc.Row{Cells: cells})
	}
	omitOnlyArm(a, &t)
	return t
}

// metricCells are one comparison. One that is withheld has its reason in place of a verdict.
func metricCells(a *verdict.Analysis, l line) []doc.Cell {
	name := l.Metric.Title
	if len(a.Manifest.Study.Workloads) > 1 && l.Workload != "" {
		name += ", " + l.Workload
	}
	cells := doc.Cells(name, l.Arm, "–", "–", "–", "–", "–", cmp.Or(l.Withheld, l.Word()))
	if g := l.gate; g != nil {
		word := ": " + cells[7].Text
		if l.Withheld == "" && l.Verdict == stats.Inconclusive {
			word = ""
		}
		cells[7].Text, cells[7].Strong = fmt.Sprintf("%s%s, budget %s", g.Result, word, unit.Change(g.Budget)), g.Result == bound.Failed
	}
	if l.Withheld != "" {
		return cells
	}
	cells[2].Text, cells[3].Text = verdict.Show(l.Metric, l.AgainstMedian), verdict.Show(l.Metric, l.ArmMedian)
	cells[4].Text, cells[5].Text = l.Figure(), l.DecidingRange()
	if l.gate != nil { // which has the level of the look, whatever the arm's verdict rests on
		cells[5].Text = l.Range()
	}
	if m := a.Workload(l.Workload).Metric(l.Metric.Name); m.FloorBy != "" {
		cells[6].Text = m.FloorText()
	}
	return cells
}

// omitOnlyArm leaves out the second column, which names arms, where there is one beside the
// control. Its name heads its values then.
func omitOnlyArm(a *verdict.Analysis, t *doc.Table) {
	arms := a.Manifest.Study.Arms
	if len(arms) != 2 {
		return
	}
	for _, arm := range arms {
		if arm.Name != a.Manifest.Study.Control {
			t.Columns[3].Head = arm.Name
		}
	}
	t.Columns = slices.Delete(t.Columns, 1, 2)
	for i := range t.Rows {
		t.Rows[i].Cells = slices.Delete(t.Rows[i].Cells, 1, 2)
	}
}

// ownersTable has the owners that differ, the largest difference first, CPU before memory.
func ownersTable(s *Source) doc.Table {
	t := doc.Table{Caption: "Owners", Unlabelled: true, Columns: []doc.Column{{Head: "owner whose cost changed", Key: true}, {Head: "arm"},
		{Head: s.Analysis.Manifest.Study.Control, Right: true}, {Head: "arm’s", Right: true}, {Head: "change", Right: true}, {Head: "95 % interval"}, {Head: "functions"}}}
	for _, base := range []string{unit.Nanoseconds, unit.Bytes} {
		for i := range s.Changes {
			c := &s.Changes[i]
			for _, o := range c.Owners(base) {
				if len(t.Rows) < mostOwners {
					t.Rows = append(t.Rows, ownerRow(c, &o))
				}
			}
		}
	}
	omitOnlyArm(s.Analysis, &t)
	return t
}

func ownerRow(c *Change, o *Owner) doc.Row {
	what := "CPU"
	if o.Base == unit.Bytes {
		what = "memory"
	}
	var names []string
	for _, f := range o.Responsible() {
		names = append(names, shorten(f.Function)+" "+unit.Signed(f.Diff, o.Base))
	}
	return doc.Row{Cells: doc.Cells(shorten(o.Owner)+", "+what, c.Arm, unit.Some(o.A, o.Base), unit.Some(o.B, o.Base), unit.Signed(o.Diff, o.Base),
		unit.Signed(o.Lo, o.Base)+" to "+unit.Signed(o.Hi, o.Base), strings.Join(names, ", "))}
}

// Owner is an owner that differs.
type Owner struct {
	diff.Row
	Base string // unit of its figures: unit.Nanoseconds of CPU, or unit.Bytes allocated

	in *diff.Result
}

// Owners returns the owners that differ by more than chance, the largest difference first.
// The base says in what: unit.Nanoseconds of CPU, or unit.Bytes allocated.
func (c *Change) Owners(base string) []Owner {
	r := c.CPU
	if base == unit.Bytes {
		r = c.Bytes
	}
	var all []Owner
	for i := 0; r != nil && i < len(r.Owners) && r.Owners[i].Differs; i++ {
		all = append(all, Owner{r.Owners[i], base, r})
	}
	return all
}

// Responsible returns the functions within the owner that differ in the same direction,
// the largest difference first, without the owner's own.
func (o *Owner) Responsible() []diff.Row {
	var all []diff.Row
	for _, f := range o.in.Functions {
		if f.Differs && f.Owner == o.Owner && f.Where == o.Where && bare(f.Function) != bare(o.Owner) && f.Diff*o.Diff > 0 && len(all) < mostFunctions {
			all = append(all, f)
		}
	}
	return all
}

// shorten leaves the folders of a function's package out.
func shorten(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// bare is a function's name without its package: package main goes by its folder in owners.
func bare(name string) string {
	_, rest, _ := strings.Cut(shorten(name), ".")
	return rest
}
