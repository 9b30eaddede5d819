package report

import (
	"math"
	"slices"

	"github.com/tarehq/tare/lab/verdict"
)

// matrix is a table of medians, arms by metrics.
type matrix struct {
	Title string
	Heads []string
	Rows  []matrixRow
	Steps []string // what a step of the study's scale costs
}

type matrixRow struct {
	Name  string
	Cells []matrixCell
}

// matrixCell is a median beside what became of its comparison.
type matrixCell struct {
	Value  string
	Change string // the effect, "" for the control
	Mark   mark
	Shade  int // how large the effect is, 0 to 3; only of what was told apart
}

// matrixGroups say which metrics stand together; the rest is the last group.
var matrixGroups = [...]struct {
	title   string
	metrics []string
}{
	{"Cost of a request", []string{"throughput", "cpu_per_request", "loop_time", "loop_bytes", "loop_allocs", "alloc_bytes", "alloc_objects", "gc_per_10k", "gc_cpu"}},
	{"Response and service times", []string{"response_mean", "response_p50", "response_p90", "response_p95", "response_p99", "response_p999", "response_p9999", "response_max", "service_p50", "service_p99", "first_byte_p50"}},
	{"Memory, start-up, scheduling", []string{"startup", "rss_idle", "rss_peak", "pss", "threads", "goroutines", "switches_per_request", "faults_per_request"}},
	{"Connections, errors, generator", nil},
}

func newMatrices(w *verdict.Workload) []matrix {
	groups := make([][]*verdict.Metric, len(matrixGroups))
	for i := range w.Metrics {
		m := &w.Metrics[i]
		if m.Withheld != "" {
			continue
		}
		g := len(matrixGroups) - 1
		for k := range matrixGroups {
			if slices.Contains(matrixGroups[k].metrics, m.Name) {
				g = k
			}
		}
		groups[g] = append(groups[g], m)
	}
	var all []matrix
	for g, metrics := range groups {
		if len(metrics) > 0 {
			all = append(all, newMatrix(matrixGroups[g].title, levelsOf(w, metrics), metrics))
		}
	}
	if len(all) > 0 { // the first is the cost of a request
		all[0].Steps = steps(w)
	}
	return all
}

func newMatrix(title string, order []verdict.Level, metrics []*verdict.Metric) matrix {
	out := matrix{Title: title}
	for _, m := range metrics {
		out.Heads = append(out.Heads, m.Title)
	}
	for _, l := range order {
		row := matrixRow{Name: name(l)}
		for _, m := range metrics {
			row.Cells = append(row.Cells, newMatrixCell(m, l))
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// levelsOf are the arms that have any of the metrics, in one order for all of a
// workload's tables: some metrics, such as those of captures, are of some arms.
func levelsOf(w *verdict.Workload, metrics []*verdict.Metric) []verdict.Level {
	var order []verdict.Level
	for i := range w.Metrics {
		for _, l := range w.Metrics[i].Levels {
			same := func(o verdict.Level) bool { return name(o) == name(l) }
			has := func(m *verdict.Metric) bool { return slices.ContainsFunc(m.Levels, same) }
			if !slices.ContainsFunc(order, same) && slices.ContainsFunc(metrics, has) {
				order = append(order, l)
			}
		}
	}
	return order
}

func newMatrixCell(m *verdict.Metric, of verdict.Level) matrixCell {
	for _, l := range m.Levels {
		if name(l) != name(of) {
			continue
		}
		cell := matrixCell{Value: verdict.Show(m.Metric, l.Median)}
		if c := comparison(m, l); c != nil {
			cell.Mark = markFor(c)
			if c.Withheld == "" {
				cell.Change, cell.Shade = c.Figure(), shade(c)
			}
		}
		return cell
	}
	return matrixCell{Value: "–"}
}

// shade grows with the effect: from the band, from 10 %, from half as much
// again or a third less. Off the ratio scale there is no measure of size.
func shade(c *verdict.Comparison) int {
	if class := classOf(c); class != "better" && class != "worse" {
		return 0
	}
	if c.Scale != verdict.Ratio {
		return 1
	}
	switch e := math.Abs(c.Effect.Effect); {
	case e >= math.Log(1.5):
		return 3
	case e >= math.Log(1.1):
		return 2
	}
	return 1
}
