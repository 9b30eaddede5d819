package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// inFull reports whether a metric has a table of its own: what decides, what resolves
// best, and the response times that are asked about most.
func inFull(a *verdict.Analysis, w *verdict.Workload, m *verdict.Metric) bool {
	return m.Withheld == "" && !m.Instrument && len(m.Compared) > 0 && metricOrder(a, w, m) < last
}

// last is the order of what has no table of its own.
const last = 5

func metricOrder(a *verdict.Analysis, w *verdict.Workload, m *verdict.Metric) int {
	switch {
	case m.Primary:
		return 0
	case m.Name == mainMetric(a, w):
		return 1
	case m.Name == "loop_time":
		return 2
	case m.Name == "response_p50":
		return 3
	case m.Name == "response_p99":
		return 4
	}
	return last
}

// mainMetric is the first metric of a workload without the primary one: throughput
// closed loop, CPU per request open loop.
func mainMetric(a *verdict.Analysis, w *verdict.Workload) string {
	switch {
	case a.Manifest.Study.Primary.Workload == w.Name:
		return ""
	case w.Schedule == "closed":
		return "throughput"
	}
	return "cpu_per_request"
}

// metricBlocks are a metric's arms with effect, interval, verdict and number of blocks,
// then what follows for all of them. The primary one stands outside of its workload.
func metricBlocks(a *verdict.Analysis, w *verdict.Workload, m *verdict.Metric) []doc.Block {
	title, role := capital(m.Title), "descriptive"
	if m.Primary {
		title, role = w.Name+", "+m.Title, "primary"
	}
	x := effectAxis(m)
	table := doc.Table{
		Caption: fmt.Sprintf("%s (%s; %s)", title, role, sizesText(m)),
		Columns: []doc.Column{
			{Head: "arm", Key: true, Shrink: true}, {Head: "median", Right: true}, {Head: "difference", Right: true, Optional: true},
			{Head: "interval, drawn", Drawn: true, Drawing: doc.Markup(chart.Scale(effectTicks(x, m)))},
			{Head: "effect", Right: true}, {Head: verdict.Confidence(w.Alpha) + " interval"}, {Head: "n", Right: true}, {Head: "verdict"},
		},
	}
	for _, l := range m.Levels {
		table.Rows = append(table.Rows, levelRow(a, m, l, x))
	}
	blocks := []doc.Block{table}
	if m.Primary {
		blocks = append(blocks, drawn("How to read the drawings", barLegend))
	}
	for _, text := range notesOf(m) {
		blocks = append(blocks, doc.Note(text))
	}
	return blocks
}

// barLegend explains the bars.
const barLegend = `<small>Drawn: the effect with its interval, and as faint dots single blocks. Within the grey band an effect is too small to count.</small>`

// sizesText says from where on an effect counts, and within what none does, which are
// one where the noise floor is below the threshold.
func sizesText(m *verdict.Metric) string {
	if m.Band() == 0 {
		return "neither a threshold nor a noise floor is known"
	}
	text := fmt.Sprintf("an effect counts from ±%s on", m.BandText())
	if m.Undecidable() {
		text += ", this machine's noise"
		if m.Threshold > 0 {
			text += fmt.Sprintf("; it is too high to show that there is none within ±%s", m.ThresholdText())
		}
	}
	return text
}

// showLevel is a cell's median; one below what can be distinguished from none is less than that.
func showLevel(m *verdict.Metric, l verdict.Level) string {
	if l.Median < l.Least {
		return "< " + verdict.Show(m.Metric, l.Least)
	}
	return verdict.Show(m.Metric, l.Median)
}

// levelRow is an arm's row. Where the median is of more trials than the blocks that
// are compared, it says of how many.
func levelRow(a *verdict.Analysis, m *verdict.Metric, l verdict.Level, x chart.Axis) doc.Row {
	c := comparisonOf(m, l)
	cells := make([]doc.Cell, 8)
	cells[0].Text, cells[1].Text, cells[6].Text = levelName(l), showLevel(m, l), fmt.Sprint(l.N)
	bar := chart.EmptyBar(m.Band(), x)
	switch {
	case c == nil && l.Arm == a.Manifest.Study.Control && !l.Twin:
		cells[7] = doc.Cell{Text: "control", Tone: doc.Muted}
	case c == nil:
		cells[7] = doc.Cell{Text: "not compared: no block has both", Tone: doc.Muted}
	default:
		if l.N != c.N {
			cells[1].Notes = []string{fmt.Sprintf("n %d", l.N)}
		}
		cells[6].Text = fmt.Sprint(c.N)
		cells[7] = verdictCell(c)
	}
	if c == nil || c.Withheld != "" {
		bar.Label = cells[0].Text + ": " + cells[7].Text
	} else {
		cells[2].Text, cells[4].Text, cells[5].Text = verdict.ShowSigned(m.Metric, c.Difference.Value), c.Figure(), c.DecidingRange()
		bar = chart.NewBar(chart.Effect{Value: c.Effect.Effect, Interval: c.Effect.Interval, Band: c.Band(), Singles: c.Paired}, x)
		bar.Label = fmt.Sprintf("%s: %s, interval %s", cells[0].Text, cells[4].Text, cells[5].Text)
	}
	cells[3].Drawing = doc.Markup(bar.SVG())
	return doc.Row{Cells: cells}
}

// verdictCell is a comparison's verdict in words. What two blocks are apart foretells no number.
func verdictCell(c *verdict.Comparison) doc.Cell {
	if c.Withheld != "" {
		return doc.Cell{Text: c.Word(), Tone: doc.Muted}
	}
	text := c.Word()
	if c.Verdict == stats.Inconclusive && c.N > 2 && c.Needs > 0 && c.Needs <= verdict.MostWorthwhile {
		text += fmt.Sprintf(", ~%d more", c.Needs)
	}
	return doc.Cell{Text: text, Tone: toneOf(c.Verdict)}
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func levelName(l verdict.Level) string {
	if l.Twin {
		return l.Arm + " again"
	}
	return l.Arm
}

// comparisonOf is the one that belongs to a level, nil for the control.
func comparisonOf(m *verdict.Metric, l verdict.Level) *verdict.Comparison {
	if l.Twin {
		return m.Twin
	}
	return m.Against(l.Arm)
}

// effectAxis holds all intervals, the band and no effect.
func effectAxis(m *verdict.Metric) chart.Axis {
	var e chart.Extent
	e.Add(0, m.Band(), -m.Band())
	for _, l := range m.Levels {
		if c := comparisonOf(m, l); c != nil && c.Withheld == "" {
			e.Add(c.Effect.Effect, c.Effect.Interval.Lo, c.Effect.Interval.Hi)
			if math.IsInf(c.Effect.Interval.Width(), 0) { // the blocks are all there is
				e.Add(c.Paired...)
			}
		}
	}
	return e.Axis(0.08, chart.Across)
}

// manifold is the log-ratio from which on an axis counts in multiples.
const manifold = 1.1 // threefold

// effectTicks label an axis of effects, in percent of the width: relative changes where
// they are small, multiples where they are large, plain differences off the ratio scale.
func effectTicks(x chart.Axis, m *verdict.Metric) []chart.Tick {
	const most = 4
	var ticks []chart.Tick
	add := func(v float64, text string) {
		ticks = append(ticks, chart.Tick{At: x.At(v) / (chart.Across / 100), Text: text})
	}
	switch {
	case m.Scale != verdict.Ratio:
		for _, v := range chart.Linear(x.Lo, x.Hi, most) {
			add(v, verdict.ShowSigned(m.Metric, v))
		}
	case x.Hi-x.Lo > manifold:
		for _, v := range chart.Decades(math.Exp(x.Lo), math.Exp(x.Hi), most+2) {
			add(math.Log(v), "× "+strconv.FormatFloat(v, 'g', 3, 64))
		}
	default:
		for _, v := range chart.Linear(math.Expm1(x.Lo), math.Expm1(x.Hi), most) {
			add(math.Log1p(v), strings.Replace(unit.Change(v), ".0 %", " %", 1))
		}
	}
	return ticks
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
		notes = append(notes, ranksText(m.Ranking))
	}
	if s := m.Slope; s != nil && s.N > 0 {
		notes = append(notes, fmt.Sprintf("slope over %s: %s a step, %s interval %s (%s)", strings.Join(s.Arms, ", "),
			verdict.ShowSigned(m.Metric, s.Slope), verdict.Confidence(s.Alpha), verdict.SpanSigned(m.Metric, s.Interval), unit.Plural(s.N, "block")))
		notes = append(notes, messages(s.Warnings)...)
	}
	return notes
}

// ranksText writes places as intervals, tier by tier.
func ranksText(r *verdict.Ranking) string {
	if r.Needs > 0 {
		return fmt.Sprintf("ranks: distinguishing %s takes %s", unit.Plural(len(r.Ranks), "arm"), unit.Plural(r.Needs, "block"))
	}
	tiers := map[int][]string{}
	most, ranked := 1, false
	for _, k := range r.Ranks {
		place := fmt.Sprint(k.Lo)
		if k.Hi != k.Lo {
			place += fmt.Sprintf("–%d", k.Hi)
		}
		tiers[k.Tier] = append(tiers[k.Tier], k.Arm+" "+place)
		most = max(most, k.Tier)
		ranked = ranked || k.Hi-k.Lo+1 < len(r.Ranks)
	}
	if !ranked {
		return fmt.Sprintf("ranks: no two of the %d arms are distinguished", len(r.Ranks))
	}
	var texts []string
	for tier := 1; tier <= most; tier++ {
		texts = append(texts, strings.Join(tiers[tier], ", "))
	}
	return "ranks, best first, a | between tiers: " + strings.Join(texts, " | ")
}

// metricGroups say which metrics stand together; the rest is the last group.
var metricGroups = [...]struct {
	title   string
	metrics []string
}{
	{"Cost of a request", []string{"throughput", "cpu_per_request", "loop_time", "loop_bytes", "loop_allocs", "alloc_bytes", "alloc_objects", "gc_per_10k", "gc_cpu", "answer_bytes"}},
	{"Response and service times", []string{"response_mean", "response_p50", "response_p90", "response_p95", "response_p99", "response_p999", "response_p9999", "response_max", "service_p50", "service_p99", "first_byte_p50", "handshake_p50"}},
	{"Memory, start-up, scheduling", []string{"startup", "rss_idle", "rss_peak", "pss", "threads", "goroutines", "switches_per_request", "faults_per_request"}},
	{"Operations of the users' flow", nil},
	{"Connections, errors, generator", nil},
}

// medianBlocks are tables of medians, metrics by arms.
func medianBlocks(w *verdict.Workload, metrics []*verdict.Metric) []doc.Block {
	groups := make([][]*verdict.Metric, len(metricGroups))
	for _, m := range metrics {
		g := slices.IndexFunc(metricGroups[:], func(g struct {
			title   string
			metrics []string
		}) bool {
			return slices.Contains(g.metrics, m.Name)
		})
		if g < 0 {
			g = len(metricGroups) - 1
		}
		if m.Operation != "" {
			g = len(metricGroups) - 2
		}
		groups[g] = append(groups[g], m)
	}
	var blocks []doc.Block
	for g, metrics := range groups {
		if len(metrics) > 0 {
			blocks = append(blocks, medianTable(metricGroups[g].title, levelsOf(w, metrics), metrics))
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	return append([]doc.Block{doc.Heading{Level: 3, Text: "Other metrics, medians"},
		doc.Note("▲ higher and ▼ lower than the control, = no different, ? undecided, · not compared. The intervals behind the marks are not corrected for multiple comparisons.")}, blocks...)
}

func medianTable(title string, arms []verdict.Level, metrics []*verdict.Metric) doc.Table {
	table := doc.Table{Caption: title, Matrix: true, Columns: []doc.Column{{Head: "metric", Key: true, Shrink: true}}}
	for _, l := range arms {
		table.Columns = append(table.Columns, doc.Column{Head: levelName(l), Right: true})
	}
	for _, m := range metrics {
		row := doc.Row{Cells: doc.Cells(m.Title)}
		for _, l := range arms {
			row.Cells = append(row.Cells, medianCell(m, l))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// levelsOf are the arms that have any of the metrics, in one order for all of a
// workload's tables: some metrics, such as those of captures, are of some arms.
func levelsOf(w *verdict.Workload, metrics []*verdict.Metric) []verdict.Level {
	var order []verdict.Level
	for i := range w.Metrics {
		for _, l := range w.Metrics[i].Levels {
			same := func(o verdict.Level) bool { return levelName(o) == levelName(l) }
			has := func(m *verdict.Metric) bool { return slices.ContainsFunc(m.Levels, same) }
			if !slices.ContainsFunc(order, same) && slices.ContainsFunc(metrics, has) {
				order = append(order, l)
			}
		}
	}
	return order
}

// medianCell is a median with a mark for what became of its comparison, and the effect
// below it.
func medianCell(m *verdict.Metric, of verdict.Level) doc.Cell {
	i := slices.IndexFunc(m.Levels, func(l verdict.Level) bool { return levelName(l) == levelName(of) })
	if i < 0 {
		return doc.Cell{Text: "–"}
	}
	cell := doc.Cell{Text: showLevel(m, m.Levels[i])}
	c := comparisonOf(m, m.Levels[i])
	if c == nil {
		return cell
	}
	cell.Text += " " + markOf(c)
	if c.Withheld == "" {
		d := c.Deciding() // of captures another level than the workload's
		cell.Notes = []string{fmt.Sprintf("%s, %s: %s", c.Figure(), verdict.Confidence(1-d.Level), d.Range(c))}
		if c.Verdict == stats.Faster || c.Verdict == stats.Slower {
			cell.Tone = toneOf(c.Verdict)
		}
	}
	return cell
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
