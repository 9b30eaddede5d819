package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// TextOptions say how text is laid out.
type TextOptions struct {
	Width int  // columns; 0 means 80, less than 40 is taken as 40
	Color bool // ANSI colours; whether to use them (NO_COLOR, pipes) is the caller's decision
}

// Widths from which on tables have room for effects, and for absolute
// differences too.
const (
	middling = 80
	wide     = 100
)

// Text writes the report for a terminal or a pipe: the verdict in one
// sentence, a table for each workload, the claims, machine code, and why the figures can be
// trusted. It returns the first error of writing.
func Text(w io.Writer, a *verdict.Analysis, o TextOptions) error {
	p := newPage(w, o)
	p.title(a)
	for i := range a.Workloads {
		p.workload(a, &a.Workloads[i])
	}
	p.resolutions(a)
	p.owners(a)
	p.accuracy(a)
	p.claims(a)
	p.goals(a)
	p.code(a)
	p.trust(a)
	return p.err
}

func newPage(w io.Writer, o TextOptions) *page {
	return &page{w: w, width: max(cmp.Or(o.Width, 80), 40), color: o.Color}
}

func (p *page) title(a *verdict.Analysis) {
	s := a.Manifest.Study
	head := s.Name
	if a.Manifest.Quick {
		head += " (quick)"
	}
	if s.Title != "" {
		head += ": " + s.Title
	}
	p.wrapIn(dim, "", head)
	p.line("")
	p.wrapIn(bold, "", a.Headline)
}

func (p *page) heading(text string) {
	p.line("")
	p.wrapIn(bold, "", text)
}

// workload writes the metrics that decide or that resolve best in full, the
// others as medians.
func (p *page) workload(a *verdict.Analysis, w *verdict.Workload) {
	head := w.Name
	if w.Title != "" {
		head += ": " + w.Title
	}
	if rate := a.Manifest.Rates[w.Name]; rate > 0 {
		head += ", " + unit.Format(rate, unit.PerSecond)
	}
	p.heading(head)
	var rest []*verdict.Metric
	full := func(m *verdict.Metric) bool {
		return m != nil && m.Withheld == "" && (m.Primary || m.Name == "loop_time" || m.Name == fallback(a, w))
	}
	for i := range w.Metrics {
		if m := &w.Metrics[i]; full(m) && m.Primary {
			p.metric(w, m)
		}
	}
	for i := range w.Metrics {
		m := &w.Metrics[i]
		switch {
		case full(m) && !m.Primary:
			p.metric(w, m)
		case !full(m) && !m.Instrument && m.Withheld == "":
			rest = append(rest, m)
		}
	}
	p.medians(w, rest)
	p.steps(w)
	p.withheld(w)
}

// fallback is the metric shown in full in a workload without the primary one:
// throughput closed loop, CPU per request open loop.
func fallback(a *verdict.Analysis, w *verdict.Workload) string {
	switch {
	case a.Manifest.Study.Primary.Workload == w.Name:
		return ""
	case w.Schedule == "closed":
		return "throughput"
	}
	return "cpu_per_request"
}

// metric writes a metric in full: every arm with its effect, interval, verdict
// and number of blocks; then what follows for all of them.
func (p *page) metric(w *verdict.Workload, m *verdict.Metric) {
	role := "descriptive"
	if m.Primary {
		role = "primary"
	}
	p.line("")
	p.wrap("  ", fmt.Sprintf("%s (%s; %s)", m.Title, role, sizes(m)))
	if p.width < middling {
		p.list(w, m)
	} else {
		p.compared(w, m)
	}
	p.notes(m)
}

// sizes says from where on an effect counts, and within what none does, which are
// one where the noise floor is below the threshold.
func sizes(m *verdict.Metric) string {
	text := fmt.Sprintf("an effect counts from ±%s on", m.BandText())
	if m.Undecidable() {
		text += fmt.Sprintf(", this machine's noise; none is found within ±%s for it", m.ThresholdText())
	}
	return text
}

// list writes a metric's arms as sentences, where a table would not fit.
func (p *page) list(w *verdict.Workload, m *verdict.Metric) {
	for _, l := range m.Levels {
		text := name(l) + ": " + verdict.Show(m.Metric, l.Median)
		style := plain
		if c := comparison(m, l); c != nil && c.Withheld == "" {
			cells := effect(c)
			text += fmt.Sprintf(", %s (%s, n %s): %s", cells[0].text, c.Deciding().Text(c), cells[2].text, cells[3].text)
			style = cells[3].style
		}
		p.wrapIn(style, "  – ", text)
	}
}

// armWidth is the most that a table leaves to an arm's name.
func (p *page) armWidth() int { return max(12, p.width/5) }

// compared writes a metric's arms as a table.
func (p *page) compared(w *verdict.Workload, m *verdict.Metric) {
	both := p.width >= wide && m.Scale == verdict.Ratio
	cols := []column{{head: "arm", left: true, most: p.armWidth()}, {head: "median"}}
	if both {
		cols = append(cols, column{head: "difference"})
	}
	cols = append(cols, column{head: "effect"}, column{head: verdict.Confidence(w.Alpha) + " interval", left: true},
		column{head: "n"}, column{head: "verdict", left: true})
	var rows [][]item
	for _, l := range m.Levels {
		row := []item{{text: name(l)}, {text: verdict.Show(m.Metric, l.Median)}}
		if c := comparison(m, l); c != nil {
			if both {
				row = append(row, item{text: verdict.ShowSigned(m.Metric, c.Difference.Value)})
			}
			row = append(row, effect(c)...)
		}
		for len(row) < len(cols) {
			row = append(row, item{})
		}
		rows = append(rows, row)
	}
	p.table(cols, rows)
}

func name(l verdict.Level) string {
	if l.Twin {
		return l.Arm + " again"
	}
	return l.Arm
}

// comparison is the one that belongs to a level, nil for the control.
func comparison(m *verdict.Metric, l verdict.Level) *verdict.Comparison {
	if l.Twin {
		return m.Twin
	}
	return m.Against(l.Arm)
}

// effect are the cells of a comparison from its effect on.
func effect(c *verdict.Comparison) []item {
	if c.Withheld != "" {
		return []item{{}, {}, {text: fmt.Sprint(c.N)}, {c.Word(), dim}}
	}
	word := c.Word()
	if c.Verdict == stats.Inconclusive && c.Needs <= verdict.MostWorthwhile {
		word += fmt.Sprintf(", ~%d more", c.Needs)
	}
	return []item{{text: c.Figure()}, {text: c.DecidingRange()}, {text: fmt.Sprint(c.N)}, {word, styleOf(c.Verdict)}}
}

func styleOf(v stats.Verdict) style {
	switch v {
	case stats.Faster:
		return green
	case stats.Slower:
		return red
	}
	return dim
}

// notes writes what follows for all arms of a metric.
func (p *page) notes(m *verdict.Metric) {
	for _, text := range notesOf(m) {
		p.wrapIn(dim, "  ", text)
	}
}

// notesOf are ranks, slope and why a comparison is not what it seems.
func notesOf(m *verdict.Metric) []string {
	var notes []string
	said := map[string]bool{}
	for _, c := range m.Compared {
		for _, text := range []string{c.Note, c.Heaps, c.Withheld} {
			if text != "" && !said[text] {
				said[text] = true
				notes = append(notes, c.Arm+": "+text)
			}
		}
	}
	if m.Ranking != nil {
		notes = append(notes, ranks(m.Ranking))
	}
	if s := m.Slope; s != nil && s.N > 0 {
		notes = append(notes, fmt.Sprintf("slope over %s: %s a step, %s interval %s (%s)", strings.Join(s.Arms, ", "),
			verdict.ShowSigned(m.Metric, s.Slope), verdict.Confidence(s.Alpha), verdict.SpanSigned(m.Metric, s.Interval), verdict.Count(s.N, "block")))
		notes = append(notes, messages(s.Warnings)...)
	}
	return notes
}

// ranks writes places as intervals, tier by tier.
func ranks(r *verdict.Ranking) string {
	if r.Needs > 0 {
		return fmt.Sprintf("ranks: %s take %s to be told apart", verdict.Count(len(r.Ranks), "arm"), verdict.Count(r.Needs, "block"))
	}
	tiers := map[int][]string{}
	most, told := 1, false
	for _, k := range r.Ranks {
		place := fmt.Sprint(k.Lo)
		if k.Hi != k.Lo {
			place += fmt.Sprintf("–%d", k.Hi)
		}
		tiers[k.Tier] = append(tiers[k.Tier], k.Arm+" "+place)
		most = max(most, k.Tier)
		told = told || k.Hi-k.Lo+1 < len(r.Ranks)
	}
	if !told {
		return fmt.Sprintf("ranks: no two of the %d arms are told apart", len(r.Ranks))
	}
	var texts []string
	for tier := 1; tier <= most; tier++ {
		texts = append(texts, strings.Join(tiers[tier], ", "))
	}
	return "ranks, best first, tiers told apart by |: " + strings.Join(texts, " | ")
}

// medians writes metrics side by side as far as the width goes, with a mark
// for the verdict.
func (p *page) medians(w *verdict.Workload, metrics []*verdict.Metric) {
	if len(metrics) == 0 {
		return
	}
	p.line("")
	legend := "Other metrics, medians"
	if !p.explained {
		p.explained = true
		legend += "; ▲ higher and ▼ lower than the control, = no different, ? undecided, · not compared. " +
			"Descriptive: the intervals behind the marks are not corrected for being many."
	}
	p.wrap("  ", legend)
	arm := p.armWidth()
	for len(metrics) > 0 {
		n, used := 0, 2+arm
		for n < len(metrics) && (n == 0 || used+2+cellWidth(metrics[n]) <= p.width) {
			used += 2 + cellWidth(metrics[n])
			n++
		}
		p.line("")
		p.matrix(arm, levelsOf(w, metrics[:n]), metrics[:n])
		metrics = metrics[n:]
	}
}

func cellWidth(m *verdict.Metric) int { return max(len(m.Name), len("1,000 MiB ▲")) }

func (p *page) matrix(arm int, order []verdict.Level, metrics []*verdict.Metric) {
	cols := []column{{head: "arm", left: true, most: arm}}
	for _, m := range metrics {
		cols = append(cols, column{head: m.Name})
	}
	var rows [][]item
	for _, o := range order {
		row := []item{{text: name(o)}}
		for _, m := range metrics {
			row = append(row, median(m, o))
		}
		rows = append(rows, row)
	}
	p.table(cols, rows)
}

// median is one cell of the matrix.
func median(m *verdict.Metric, of verdict.Level) item {
	for _, l := range m.Levels {
		if name(l) != name(of) {
			continue
		}
		mark, s := " ", plain
		if c := comparison(m, l); c != nil {
			mark, s = markOf(c), styleOf(c.Verdict)
		}
		if s == dim {
			s = plain
		}
		return item{verdict.Show(m.Metric, l.Median) + " " + mark, s}
	}
	return item{text: "–  "}
}

func markOf(c *verdict.Comparison) string {
	switch {
	case c.Withheld != "":
		return "·"
	case c.Verdict == stats.Equivalent, c.Verdict == stats.Small:
		return "="
	case c.Verdict == stats.Inconclusive:
		return "?"
	case c.Effect.Effect > 0:
		return "▲"
	}
	return "▼"
}

// steps writes what a step of the study's scale costs.
func (p *page) steps(w *verdict.Workload) {
	lines := steps(w)
	if len(lines) > 0 {
		p.line("")
	}
	for _, text := range lines {
		p.wrap("  ", text)
	}
}

// withheld names what is not shown, with the reason.
func (p *page) withheld(w *verdict.Workload) {
	for _, m := range w.Metrics {
		if m.Withheld != "" {
			p.wrapIn(dim, "  ", fmt.Sprintf("%s is not shown: %s", m.Name, m.Withheld))
		}
	}
}

// resolutions sets end to end and in process side by side.
func (p *page) resolutions(a *verdict.Analysis) {
	if len(a.Resolutions) == 0 {
		return
	}
	p.heading("Too small for the load, not for the loop in process")
	for _, r := range a.Resolutions {
		p.wrap("  ", resolution(r))
	}
}

func resolution(r verdict.Resolution) string {
	return fmt.Sprintf("%s, %s: end to end %s %s (%s), %s; in process %s a request (%s), %s",
		r.Workload, r.Arm, r.EndToEnd.Metric.Title, r.EndToEnd.Figure(), r.EndToEnd.Range(), r.EndToEnd.Word(),
		verdict.ShowSigned(r.InProcess.Metric, r.InProcess.Difference.Value), r.InProcess.Range(), r.InProcess.Word())
}
