package report

import (
	"fmt"
	"math"
	"strings"

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
	text += "; ± is half the 95 % interval of how they differ. ▲ more and ▼ less than in the control, as far as that tells, not corrected for being many. " +
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
		return []ownerTable{{title: "Waiting within requests", cell: waitCell, sum: func(s *verdict.Spent) string { return some(s.Waiting, unit.Nanoseconds) }}}
	}
	tables := []ownerTable{{title: "CPU time, without the owners inside", changes: true, cell: selfCell, sum: func(s *verdict.Spent) string { return plusMinus(s.CPU) }}}
	var bytes float64
	for _, s := range a.Arms {
		bytes += s.Bytes
	}
	if bytes > 0 {
		tables = append(tables, ownerTable{title: "Bytes allocated, and what they cost in collecting", cell: bytesCell,
			sum: func(s *verdict.Spent) string { return some(s.Bytes, unit.Bytes) }})
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

func waitCell(p *verdict.Part) (text, mark string) { return some(p.Waiting, unit.Nanoseconds), "" }

func bytesCell(p *verdict.Part) (text, mark string) {
	text = some(p.Bytes, unit.Bytes)
	if p.GC > 0 {
		text += ", " + unit.Format(p.GC, unit.Nanoseconds)
	}
	return text, ""
}

// some is a quantity, or a dash for none.
func some(v float64, base string) string {
	if v == 0 {
		return "–"
	}
	return unit.Format(v, base)
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
	name := max(16, p.width/3)
	perRow := max(1, (p.width-2-name)/(2+len("123.4 µs ±>100 % ▲")))
	for from := 0; from < len(a.Arms); from += perRow {
		to := min(from+perRow, len(a.Arms))
		cols := []column{{head: "owner", left: true, most: name}}
		sums := []item{{"all", bold}}
		for i := from; i < to; i++ {
			cols = append(cols, column{head: a.Arms[i].Arm + "  "})
			sums = append(sums, item{t.sum(&a.Arms[i]) + "  ", bold})
		}
		var rows [][]item
		for k := range shown {
			if row, any := ownerRow(&shown[k], t, from, to); any {
				rows = append(rows, row)
			}
		}
		if len(rest) > 0 && a.Source != study.Trace {
			rows = append(rows, others(rest, t, from, to))
		}
		p.line("")
		p.table("  ", cols, append(rows, sums))
	}
}

func ownerRow(o *verdict.Owner, t ownerTable, from, to int) (row []item, any bool) {
	row = []item{{text: t.name(o)}}
	for i := from; i < to; i++ {
		text, mark := t.cell(&o.In[i])
		any = any || text != "–"
		style := plain
		switch mark {
		case "▲":
			style = red
		case "▼":
			style = green
		case "":
			mark = " "
		}
		row = append(row, item{text + " " + mark, style})
	}
	return row, any
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

// others adds up the owners that are not shown.
func others(rest []verdict.Owner, t ownerTable, from, to int) []item {
	row := []item{{fmt.Sprintf("%d more", len(rest)), dim}}
	for i := from; i < to; i++ {
		sum := sumOf(rest, i)
		text, _ := t.cell(&sum)
		row = append(row, item{text + "  ", dim})
	}
	return row
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

// accuracy writes how near attribution came to what arms count themselves.
func (p *page) accuracy(a *verdict.Analysis) {
	if len(a.Accuracies) == 0 {
		return
	}
	p.heading("Attribution against the arms' own count")
	p.wrapIn(dim, "  ", accuracyNote(a))
	p.line("")
	cols := []column{{head: "arm", left: true, most: 12}, {head: "part", left: true}, {head: "what", left: true}, {head: "truth"}, {head: "source", left: true},
		{head: "charged"}, {head: "off, 90 % interval"}, {head: "allowed"}, {head: "", left: true}}
	var rows [][]item
	for i := range a.Accuracies {
		x := &a.Accuracies[i]
		for k := range x.By {
			h := &x.By[k]
			row := []item{{}, {}, {}, {}}
			if k == 0 {
				row = []item{{text: x.Arm}, {text: x.Part}, {text: string(x.Quantity)}, {text: amount(x, x.Truth)}}
			}
			rows = append(rows, append(row, item{text: string(h.Source)}, item{text: amount(x, h.Attributed)}, item{text: offText(x, h)},
				item{text: "±" + amount(x, x.Band)}, item{string(h.Verdict), styleOfNearness(h.Verdict)}))
		}
	}
	p.table("  ", cols, rows)
	for _, text := range apartTexts(a) {
		p.wrapIn(dim, "  ", text)
	}
}

// accuracyNote says how it is judged, and what came of it.
func accuracyNote(a *verdict.Analysis) string {
	n, of := 0, 0
	for _, x := range a.Accuracies {
		for _, h := range x.By {
			of++
			if h.Verdict == verdict.Within {
				n++
			}
		}
	}
	t := a.Manifest.Study.Attribute.Truth
	text := fmt.Sprintf("%d of %d attributions are within bounds: the 90 %% interval of charged less truth, by captures, lies inside %s of the truth for CPU time",
		n, of, unit.Format(t.CPU, unit.Share))
	if t.Least > 0 {
		text += " or " + unit.Format(float64(t.Least), unit.Nanoseconds)
	}
	return text + fmt.Sprintf(", %s for bytes, %s for waiting. The truth of %q is what the arm without the parts costs.",
		unit.Format(t.Bytes, unit.Share), unit.Format(t.Waiting, unit.Share), verdict.Rest)
}

// amount shows a quantity of an accuracy.
func amount(x *verdict.Accuracy, v float64) string {
	if x.Quantity == verdict.Memory {
		return unit.Format(v, unit.Bytes)
	}
	return unit.Format(v, unit.Nanoseconds)
}

func signedAmount(x *verdict.Accuracy, v float64) string {
	if v > 0 {
		return "+" + amount(x, v)
	}
	return amount(x, v)
}

// offText is how far off a source is; its owner, where the part's was not found.
func offText(x *verdict.Accuracy, h *verdict.Held) string {
	if h.Owner == "" && x.Part != verdict.Rest {
		return "no such owner"
	}
	if math.IsInf(h.Off.Interval.Width(), 0) {
		return signedAmount(x, h.Off.Value) + ", too few captures"
	}
	return signedAmount(x, h.Off.Interval.Lo) + " to " + signedAmount(x, h.Off.Interval.Hi)
}

func styleOfNearness(n verdict.Nearness) style {
	switch n {
	case verdict.Within:
		return green
	case verdict.Beyond:
		return red
	}
	return yellow
}

// apartTexts say how far two sources are apart that looked at the same time.
func apartTexts(a *verdict.Analysis) []string {
	var all []string
	for i := range a.Accuracies {
		x := &a.Accuracies[i]
		if x.Apart == nil {
			continue
		}
		text := fmt.Sprintf("%s, %s: %s less %s is %s", x.Arm, x.Part, study.Pprof, study.EBPF, signedAmount(x, x.Apart.Value))
		if w := x.Apart.Interval; !math.IsInf(w.Width(), 0) {
			text += fmt.Sprintf(" (%s to %s)", signedAmount(x, w.Lo), signedAmount(x, w.Hi))
		}
		all = append(all, text)
	}
	return all
}
