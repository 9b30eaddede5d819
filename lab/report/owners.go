package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

// owners writes who spent what, of the workloads that arms were profiled under.
func (p *page) owners(a *verdict.Analysis) {
	for i := range a.Accounts {
		p.account(&a.Accounts[i])
	}
}

func (p *page) account(a *verdict.Account) {
	p.heading(accountTitle(a))
	p.wrapIn(dim, "  ", accountNote(a))
	shown, rest := weighty(a)
	for _, kind := range tablesOf(a) {
		kind.name = named(shown)
		p.line("")
		p.wrap("  ", kind.title)
		p.sideBySide(a, kind, shown, rest)
	}
	p.causes(a)
}

func accountTitle(a *verdict.Account) string {
	what := "Who spends what"
	if a.Source == study.Trace {
		what = "What requests wait for"
	}
	return fmt.Sprintf("%s, %s, by %s", what, a.Workload, a.Source)
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
	text += "; ± is half the 95 % interval of how they differ, and no less than the number of stacks allows. ▲ more and ▼ less than in the control, as far as that tells, not corrected for being many. " +
		"Scaled to the CPU time of the process"
	if least > 0 && least < 1 {
		text += fmt.Sprintf(", of which the source saw %s or more", unit.Format(least, unit.Share))
	}
	return text + "."
}

// ownerTable is one kind of figure, owners by arms.
type ownerTable struct {
	title string
	name  func(*verdict.Owner) string
	cell  func(*verdict.Part) (text string, mark string)
	sum   func(*verdict.Spent) string

	changes bool // its figures are those that are held against the control
}

// tablesOf are the tables that an account has figures for.
func tablesOf(a *verdict.Account) []ownerTable {
	if a.Source == study.Trace {
		return []ownerTable{{title: "Waiting within requests", cell: waitCell, sum: func(s *verdict.Spent) string { return unit.Some(s.Waiting, unit.Nanoseconds) }}}
	}
	tables := []ownerTable{{title: "CPU time, without the owners inside", changes: true, cell: selfCell, sum: func(s *verdict.Spent) string { return plusMinus(s.CPU) }}}
	var bytes float64
	for _, s := range a.Arms {
		bytes += s.Bytes
	}
	if bytes > 0 {
		tables = append(tables, ownerTable{title: "Bytes allocated, and what they cost in collecting", cell: bytesCell,
			sum: func(s *verdict.Spent) string { return unit.Some(s.Bytes, unit.Bytes) }})
	}
	return tables
}

func selfCell(p *verdict.Part) (text, mark string) {
	if p.Changed() {
		mark = "▲"
		if p.Change.Value < 0 {
			mark = "▼"
		}
	}
	if p.Self.Value == 0 {
		return "–", mark
	}
	return plusMinus(p.Self), mark
}

func waitCell(p *verdict.Part) (text, mark string) { return unit.Some(p.Waiting, unit.Nanoseconds), "" }

func bytesCell(p *verdict.Part) (text, mark string) {
	text = unit.Some(p.Bytes, unit.Bytes)
	if p.GC > 0 {
		text += ", " + unit.Format(p.GC, unit.Nanoseconds)
	}
	return text, ""
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

// weighty are the owners that matter in any arm; rest are the others.
func weighty(a *verdict.Account) (shown, rest []verdict.Owner) {
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

// sideBySide writes a table, as many arms beside each other as the width takes.
func (p *page) sideBySide(a *verdict.Account, t ownerTable, shown, rest []verdict.Owner) {
	rows := ownerRows(a, t, shown, rest)
	cols := []column{{head: "owner", left: true, most: max(16, p.width/3)}}
	widths := []int{min(cols[0].most, widest(rows, 0))}
	for i, arm := range a.Arms {
		cols = append(cols, column{head: arm.Arm + "  "})
		widths = append(widths, max(widest(rows, i+1), utf8.RuneCountInString(cols[i+1].head)))
	}
	for from := 1; from < len(cols); {
		to, used := from, 2+widths[0]
		for to < len(cols) && (to == from || used+2+widths[to] <= p.width) {
			used += 2 + widths[to]
			to++
		}
		var part [][]item
		for k, row := range rows {
			if cells := row[from:to]; k == len(rows)-1 || slices.ContainsFunc(cells, func(c item) bool { return strings.TrimSpace(c.text) != "–" }) {
				part = append(part, append([]item{row[0]}, cells...))
			}
		}
		p.line("")
		p.table(append([]column{cols[0]}, cols[from:to]...), part)
		from = to
	}
}

func widest(rows [][]item, column int) (most int) {
	for _, row := range rows {
		most = max(most, utf8.RuneCountInString(row[column].text))
	}
	return most
}

// ownerRows are the cells of a table: a row an owner, one for the others, and
// the sums.
func ownerRows(a *verdict.Account, t ownerTable, shown, rest []verdict.Owner) [][]item {
	var rows [][]item
	for k := range shown {
		row := []item{{text: t.name(&shown[k])}}
		for i := range a.Arms {
			row = append(row, partItem(t, &shown[k].In[i]))
		}
		rows = append(rows, row)
	}
	others, sums := []item{{fmt.Sprintf("%d more", len(rest)), dim}}, []item{{"all", bold}}
	for i := range a.Arms {
		sum := sumOf(rest, i)
		text, _ := t.cell(&sum)
		others = append(others, item{text + "  ", dim})
		sums = append(sums, item{t.sum(&a.Arms[i]) + "  ", bold})
	}
	if len(rest) > 0 {
		rows = append(rows, others)
	}
	return append(rows, sums)
}

func partItem(t ownerTable, p *verdict.Part) item {
	text, mark := t.cell(p)
	switch mark {
	case "▲":
		return item{text + " " + mark, red}
	case "▼":
		return item{text + " " + mark, green}
	}
	return item{text: text + "  "}
}

// named tells owners of one name apart by where they are written.
func named(all []verdict.Owner) func(*verdict.Owner) string {
	n := map[string]int{}
	for _, o := range all {
		n[o.Name]++
	}
	return func(o *verdict.Owner) string {
		if n[o.Name] > 1 && o.Where != "" {
			return o.Where + " " + o.Name
		}
		return o.Name
	}
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

// causes writes what each arm's CPU time went into.
func (p *page) causes(a *verdict.Account) {
	if a.Source == study.Trace {
		return
	}
	p.line("")
	p.wrap("  ", "CPU time by cause")
	p.line("")
	for _, s := range a.Arms {
		var parts []string
		for _, c := range s.Causes {
			if c.Value > slight*s.CPU.Value {
				parts = append(parts, causeText(c, s.CPU.Value))
			}
		}
		p.wrap("  "+s.Arm+"  ", strings.Join(parts, ", "))
	}
}

func causeText(c cost.Share, of float64) string {
	return fmt.Sprintf("%s %s (%.0f %%)", c.Cause, unit.Format(c.Value, unit.Nanoseconds), 100*c.Value/of)
}
