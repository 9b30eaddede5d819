package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

func accountTitle(a *verdict.Account) string {
	what := "Who spends what"
	if a.Source == study.Trace {
		what = "What requests wait for"
	}
	return fmt.Sprintf("%s, %s, by %s", what, a.Workload, a.Source)
}

// accountBlocks say who spent what, under the workload that arms were profiled under.
func accountBlocks(a *verdict.Account) []doc.Block {
	blocks := []doc.Block{doc.Note(accountNote(a))}
	shown, rest := heavyOwners(a)
	for _, f := range figuresOf(a) {
		blocks = append(blocks, ownersTable(a, f, shown, rest))
	}
	if a.Source == study.Trace {
		return blocks
	}
	return append(blocks, causeBlocks(a)...)
}

// accountNote says what the tables are made from.
func accountNote(a *verdict.Account) string {
	fewest, most := a.Arms[0].N, a.Arms[0].N
	least := 1.0
	for _, s := range a.Arms {
		fewest, most, least = min(fewest, s.N), max(most, s.N), min(least, s.Share)
	}
	n := fmt.Sprint(fewest)
	if most > fewest {
		n += " to " + fmt.Sprint(most)
	}
	text := fmt.Sprintf("A request, means over %s captures an arm, each of a fresh process after the blocks", n)
	if a.Source == study.Trace {
		return text + ". Tracing itself slows the arm."
	}
	text += "; ± is half the 95 % interval of how they differ, and no less than the number of stacks allows. ▲ more and ▼ less than in the control by that interval, not corrected for multiple comparisons. " +
		"Scaled to the CPU time of the process"
	if least > 0 && least < 1 {
		text += fmt.Sprintf(", of which the source saw %s on average in the arm where it saw least", unit.Format(least, unit.Share))
	}
	return text + "."
}

// figure is one kind of figure of owners in arms.
type figure struct {
	title string
	cell  func(*verdict.Part) doc.Cell
	sum   func(*verdict.Spent) string
}

// figuresOf are those that an account has.
func figuresOf(a *verdict.Account) []figure {
	if a.Source == study.Trace {
		return []figure{{"Waiting within requests", func(p *verdict.Part) doc.Cell { return doc.Cell{Text: unit.Some(p.Waiting, unit.Nanoseconds)} },
			func(s *verdict.Spent) string { return unit.Some(s.Waiting, unit.Nanoseconds) }}}
	}
	all := []figure{{"CPU time, without the owners inside", selfCell, func(s *verdict.Spent) string { return plusMinus(s.CPU) }}}
	if slices.ContainsFunc(a.Arms, func(s verdict.Spent) bool { return s.Bytes > 0 }) {
		all = append(all, figure{"Bytes allocated, and what they cost in collecting", bytesCell, func(s *verdict.Spent) string { return unit.Some(s.Bytes, unit.Bytes) }})
	}
	return all
}

// selfCell has what an owner spends, with how much more or less that is than in the
// control below it.
func selfCell(p *verdict.Part) doc.Cell {
	cell := doc.Cell{Text: "–"}
	if p.Self.Value != 0 {
		cell.Text = plusMinus(p.Self)
	}
	if p.Change == nil {
		return cell
	}
	cell.Notes = []string{fmt.Sprintf("%s, %s: %s", unit.Signed(p.Change.Value, unit.Nanoseconds), verdict.Confidence(1-p.Change.Level), verdict.SpanSigned(study.Metric{Unit: unit.Nanoseconds}, p.Change.Interval))}
	switch {
	case !p.Changed():
		cell.Notes = append(cell.Notes, "undecided")
	case p.Change.Value > 0:
		cell.Text, cell.Tone = cell.Text+" ▲", doc.Bad
	default:
		cell.Text, cell.Tone = cell.Text+" ▼", doc.Good
	}
	return cell
}

func bytesCell(p *verdict.Part) doc.Cell {
	text := unit.Some(p.Bytes, unit.Bytes)
	if p.GC > 0 {
		text += ", " + unit.Format(p.GC, unit.Nanoseconds)
	}
	return doc.Cell{Text: text}
}

// plusMinus is a mean of nanoseconds with half its interval as a share of it.
func plusMinus(e verdict.Estimate) string {
	text := unit.Format(e.Value, unit.Nanoseconds)
	half := e.Interval.Width() / 2
	if e.Value <= 0 || math.IsInf(half, 0) || math.IsNaN(half) {
		return text
	}
	if share := 100 * half / e.Value; share < 100 {
		return fmt.Sprintf("%s ±%.0f %%", text, math.Max(1, math.Ceil(share)))
	}
	return text + " ±>100 %"
}

// slight is the part of an arm's whole below which an owner is not shown.
const slight = 1.0 / 200

// heavyOwners are the owners that matter in any arm; rest are the others.
func heavyOwners(a *verdict.Account) (shown, rest []verdict.Owner) {
	for _, o := range a.Owners {
		heavy := false
		for i := range o.In {
			p, all := &o.In[i], &a.Arms[i]
			heavy = heavy || p.Self.Value > slight*all.CPU.Value || p.Bytes > slight*all.Bytes || p.Waiting > slight*all.Waiting
		}
		if heavy {
			shown = append(shown, o)
		} else {
			rest = append(rest, o)
		}
	}
	return shown, rest
}

// ownersTable has a row for each owner with a figure, one for the others, and the sums.
func ownersTable(a *verdict.Account, f figure, shown, rest []verdict.Owner) doc.Table {
	t := doc.Table{Caption: f.title, Matrix: true, Columns: []doc.Column{{Head: "owner", Key: true, Shrink: true}, {Head: "what, and where", Optional: true}}}
	sums := doc.Row{Sum: true, Cells: doc.Cells("all", "")}
	for i := range a.Arms {
		t.Columns = append(t.Columns, doc.Column{Head: a.Arms[i].Arm, Right: true})
		sums.Cells = append(sums.Cells, doc.Cell{Text: f.sum(&a.Arms[i])})
	}
	names := distinctNames(shown)
	for k := range shown {
		o := &shown[k]
		row := doc.Row{Cells: doc.Cells(names[k], strings.TrimSuffix(o.Kind+", "+o.Where, ", "))}
		for i := range o.In {
			row.Cells = append(row.Cells, f.cell(&o.In[i]))
		}
		if slices.ContainsFunc(row.Cells[2:], func(c doc.Cell) bool { return c.Text != "–" }) {
			t.Rows = append(t.Rows, row)
		}
	}
	if len(rest) > 0 {
		others := doc.Row{Cells: doc.Cells(fmt.Sprintf("%d more", len(rest)), "")}
		for i := range a.Arms {
			sum := sumOf(rest, i)
			others.Cells = append(others.Cells, doc.Cell{Text: f.cell(&sum).Text, Tone: doc.Muted})
		}
		t.Rows = append(t.Rows, others)
	}
	t.Rows = append(t.Rows, sums)
	return t
}

// distinctNames tells owners of one name apart by where they are written.
func distinctNames(all []verdict.Owner) []string {
	n := map[string]int{}
	for _, o := range all {
		n[o.Name]++
	}
	names := make([]string, len(all))
	for i, o := range all {
		if names[i] = o.Name; n[o.Name] > 1 && o.Where != "" {
			names[i] = o.Where + " " + o.Name
		}
	}
	return names
}

// sumOf adds up owners in one arm; the sum has no interval.
func sumOf(all []verdict.Owner, arm int) verdict.Part {
	var sum verdict.Part
	for k := range all {
		p := &all[k].In[arm]
		sum.Self.Value += p.Self.Value
		sum.GC += p.GC
		sum.Bytes += p.Bytes
		sum.Waiting += p.Waiting
	}
	sum.Self.Interval.Lo, sum.Self.Interval.Hi = math.Inf(-1), math.Inf(1)
	return sum
}

// drawnCauses is how many causes have a colour of their own.
const drawnCauses = 8

// causeBlocks say what each arm's CPU time went into: bars on one scale, and a table.
// Causes stand in the order of the first arm that has them; slight ones are "other".
func causeBlocks(a *verdict.Account) []doc.Block {
	var causes []string
	most := 0.0
	for _, s := range a.Arms {
		most = max(most, s.CPU.Value)
		for _, c := range s.Causes {
			if !slices.Contains(causes, c.Cause) && c.Value >= slight*s.CPU.Value {
				causes = append(causes, c.Cause)
			}
		}
	}
	if most == 0 {
		return nil
	}
	t := doc.Table{Caption: "CPU time by cause", Matrix: true, Columns: []doc.Column{{Head: "cause", Key: true}}}
	byCause := make([]doc.Row, len(causes)+1)
	for k, cause := range append(causes, "other") {
		byCause[k].Cells = doc.Cells(cause)
	}
	var bars strings.Builder
	for _, s := range a.Arms {
		t.Columns = append(t.Columns, doc.Column{Head: s.Arm, Right: true})
		values := make([]float64, len(causes)+1)
		for _, c := range s.Causes {
			k := slices.Index(causes, c.Cause)
			if k < 0 {
				k = len(causes)
			}
			values[k] += c.Value
		}
		var parts []chart.Part
		for k, v := range values {
			cell := doc.Cell{Text: "–"}
			if v > 0 {
				cell.Text = fmt.Sprintf("%s (%.0f %%)", unit.Format(v, unit.Nanoseconds), 100*v/s.CPU.Value)
				parts = append(parts, chart.Part{Class: causeClass(k, len(causes)), Width: chart.Across * v / most, Text: byCause[k].Cells[0].Text + " " + cell.Text})
			}
			byCause[k].Cells = append(byCause[k].Cells, cell)
		}
		bars.WriteString("<div>" + chart.Element("span", s.Arm) + chart.Stack(s.Arm+": "+partsText(parts), parts) + "</div>")
	}
	keys := make([]chart.Part, len(causes))
	for k, cause := range causes {
		keys[k] = chart.Part{Class: causeClass(k, len(causes)), Text: cause}
	}
	for k, row := range byCause {
		if k < len(causes) || slices.ContainsFunc(row.Cells[1:], func(c doc.Cell) bool { return c.Text != "–" }) {
			t.Rows = append(t.Rows, row)
		}
	}
	return []doc.Block{drawn("CPU time by cause", `<div class="stacks">`+bars.String()+"</div>"+chart.Keys(keys)), t}
}

// causeClass is the colour of the k-th of n causes; those beyond share one.
func causeClass(k, n int) string {
	if k >= min(n, drawnCauses) {
		return "kx"
	}
	return fmt.Sprintf("k%d", k)
}

func partsText(parts []chart.Part) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	return strings.Join(texts, "; ")
}
