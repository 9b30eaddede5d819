package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Scale says on what scale differences are taken.
type Scale string

// The scales.
const (
	Ratio      Scale = "ratio"      // differences of natural logarithms
	Difference Scale = "difference" // differences in the metric's base unit
)

// cell is an arm, or the control's twin, in a workload.
type cell struct {
	workload, arm string
	twin          bool
}

func (c cell) asTwin() cell { c.twin = true; return c }

// trials are the valid trials by cell and block. The pilot is not among them.
type trials map[cell]map[int]record.Trial

// validTrials sorts the trials into cells. Where a cell has two in a block,
// the first one counts.
func validTrials(all []record.Trial) trials {
	by := trials{}
	for _, t := range all {
		if len(t.Invalid) > 0 || t.Block < 0 {
			continue
		}
		c := cell{t.Workload, t.Arm, t.Twin}
		if by[c] == nil {
			by[c] = map[int]record.Trial{}
		}
		if _, there := by[c][t.Block]; !there {
			by[c][t.Block] = t
		}
	}
	for _, blocks := range by {
		holdLag(blocks)
	}
	return by
}

// holdLag has a cell's response times count by the generator's lag alone, held against the
// median of the cell. Held against its own trial's, the same lag would void the fast trials
// and keep the slow ones.
func holdLag(blocks map[int]record.Trial) {
	times := map[string][]float64{}
	for _, t := range blocks {
		if t.Readings != nil {
			for name, l := range t.Readings.Times {
				times[name] = append(times[name], l.Response)
			}
		}
	}
	typical := map[string]float64{}
	for name, all := range times {
		typical[name] = stats.Median(all)
	}
	for b, t := range blocks {
		if t.Readings == nil {
			continue
		}
		t.Metrics = maps.Clone(t.Metrics)
		for name, l := range t.Readings.Times {
			delete(t.Metrics, name)
			if !l.Late(typical[name]) {
				t.Metrics[name] = l.Response
			}
		}
		blocks[b] = t
	}
}

// Lagging says that the generator's lag voids a study's primary metric, a response time, in most
// of the trials that count; "" if it does not.
func Lagging(s *study.Study, all []record.Trial) string {
	p, told, late := s.Primary, 0, 0
	for _, t := range validTrials(all).of(p.Workload) {
		if t.Readings == nil || t.Readings.Times[p.Metric] == (record.Lagged{}) {
			continue
		}
		told++
		if _, counts := t.Metrics[p.Metric]; !counts {
			late++
		}
	}
	if 2*late <= told {
		return ""
	}
	m, _ := study.MetricNamed(p.Metric)
	return fmt.Sprintf("the generator's lag voids %s, which the study decides on, in %d of %s", parenthesised(m), late, unit.Plural(told, "trial"))
}

func (an *analyser) has(workload string) bool { return len(an.valid.of(workload)) > 0 }

// of are the valid trials of a workload, in no order.
func (ts trials) of(workload string) (all []record.Trial) {
	for c, blocks := range ts {
		if c.workload == workload {
			all = slices.AppendSeq(all, maps.Values(blocks))
		}
	}
	return all
}

func (ts trials) measured(workload, metric string) bool {
	return slices.ContainsFunc(ts.of(workload), func(t record.Trial) bool { _, ok := t.Metrics[metric]; return ok })
}

// shared is the number of blocks in which both cells have a valid trial.
func (ts trials) shared(a, b cell) (n int) {
	for block := range ts[a] {
		if _, ok := ts[b][block]; ok {
			n++
		}
	}
	return n
}

// gather takes what of gives of a cell's trials, in the order of the blocks.
func (ts trials) gather(c cell, of func(record.Trial) (v float64, ok bool)) []Point {
	var points []Point
	for block, t := range ts[c] {
		if v, ok := of(t); ok {
			points = append(points, Point{block, v})
		}
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Block, b.Block) })
	return points
}

// points are a cell's measurements of a metric.
func (ts trials) points(c cell, metric string) []Point {
	return ts.gather(c, func(t record.Trial) (float64, bool) { v, ok := t.Metrics[metric]; return v, ok })
}

// lagging are points and the response times that the generator's lag voids.
func (ts trials) lagging(c cell, metric string) []Point {
	return ts.gather(c, func(t record.Trial) (float64, bool) {
		v, ok := t.Metrics[metric]
		if !ok && t.Readings != nil {
			v = t.Readings.Times[metric].Response
			ok = v > 0
		}
		return v, ok
	})
}

func values(points []Point) []float64 {
	vs := make([]float64, len(points))
	for i, p := range points {
		vs[i] = p.Value
	}
	return vs
}

// rows are the values of several cells, a row for every block in which all of
// them have one, in the order of the blocks.
func (ts trials) rows(metric string, cells ...cell) [][]float64 {
	var rows [][]float64
	for _, p := range ts.points(cells[0], metric) {
		row := []float64{p.Value}
		for _, c := range cells[1:] {
			if v, ok := ts[c][p.Block].Metrics[metric]; ok {
				row = append(row, v)
			}
		}
		if len(row) == len(cells) {
			rows = append(rows, row)
		}
	}
	return rows
}

// scale is the ratio unless the metric is a share or zero somewhere: a share
// of errors that falls from 0.2 % to 0.1 % has not halved anything one would
// multiply by. Nor is what is left of the machine's CPU time a whole. It holds for all arms, so that they can be ranked.
func (ts trials) scale(workload string, m study.Metric) Scale {
	if m.Unit == unit.Share || m.Residual {
		return Difference
	}
	for _, t := range ts.of(workload) {
		if v, ok := t.Metrics[m.Name]; ok && v <= 0 {
			return Difference
		}
	}
	return Ratio
}

// tooFew says why a quantile may not be shown: some trial had fewer requests
// than it takes. It is "" where all had enough. A trial may have too few to keep
// the quantile at all: it was the slowest, and the others alone would look better.
// Arms that never tell it are not asked.
func (ts trials) tooFew(workload string, m study.Metric) string {
	tells := map[string]bool{}
	for _, t := range ts.of(workload) {
		if _, ok := t.Metrics[m.Name]; ok {
			tells[t.Arm] = true
		}
	}
	fewest, seen := uint64(m.Requests), false
	for _, t := range ts.of(workload) {
		if n := t.RequestsOf(m.Operation); tells[t.Arm] && n < fewest {
			fewest, seen = n, true
		}
	}
	if !seen {
		return ""
	}
	return fmt.Sprintf("it takes %s requests a trial; the least was %s", unit.Number(float64(m.Requests)), unit.Number(float64(fewest)))
}

// paced reports whether a metric depends on the rate at which requests come.
func paced(metric string) bool {
	for _, prefix := range []string{"response_", "service_", "first_byte_"} {
		if strings.HasPrefix(study.Plain(metric), prefix) {
			return true
		}
	}
	return false
}
