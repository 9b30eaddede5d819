package verdict

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tarehq/tare/stats"
)

// leastRanked is the number of arms from which on ranks tell more than the
// comparisons with the control.
const leastRanked = 4

// Ranking places arms by one metric.
type Ranking struct {
	Ranks []Rank // in the study's order
	Needs int    // blocks that it takes to tell this many arms apart at all; 0 = there are enough
}

// Rank is an arm's place.
type Rank struct {
	Arm string `json:"arm"`
	stats.Rank
}

// rank ranks all arms that have the metric, the control among them. Paced
// metrics of arms at different rates are not ranked.
func (an *analyser) rank(w *Workload, m *Metric) *Ranking {
	cells := m.cells(w.Name)
	if len(cells) < leastRanked {
		return nil
	}
	for _, c := range cells[1:] {
		if an.otherRates(m.Name, c, cells[0]) != "" {
			return nil
		}
	}
	r := &Ranking{}
	if need := stats.BlocksForFamily(len(cells)*(len(cells)-1)/2, w.Alpha); need > w.Blocks {
		r.Needs = need
	}
	for i, rank := range stats.RankIntervals(an.valid.grid(m, cells, m.Scale), an.rule(m, w)) {
		r.Ranks = append(r.Ranks, Rank{cells[i].arm, rank})
	}
	return r
}

// cells are those of the metric's levels without the twin.
func (m *Metric) cells(workload string) []cell {
	var cells []cell
	for _, l := range m.Levels {
		if !l.Twin {
			cells = append(cells, cell{workload, l.Arm, false})
		}
	}
	return cells
}

// grid are the cells' values on a scale, a row a block that has one, in the order of
// the blocks; NaN where a cell has none.
func (ts trials) grid(m *Metric, cells []cell, scale Scale) [][]float64 {
	byBlock := map[int][]float64{}
	for i, c := range cells {
		for block, t := range ts[c] {
			v, ok := t.Metrics[m.Name]
			if !ok {
				continue
			}
			if byBlock[block] == nil {
				byBlock[block] = slices.Repeat([]float64{math.NaN()}, len(cells))
			}
			byBlock[block][i] = scale.of(v)
		}
	}
	rows := make([][]float64, 0, len(byBlock))
	for _, block := range slices.Sorted(maps.Keys(byBlock)) {
		rows = append(rows, byBlock[block])
	}
	return rows
}

// leastPositions is the number of positions from which on a line says more
// than a comparison.
const leastPositions = 3

// Slope is how a metric grows along the study's scale, such as nanoseconds a
// layer.
type Slope struct {
	Alpha float64
	stats.Scaling
	Arms []string // fitted
}

// slope fits the arms that have a position on the study's scale.
func (an *analyser) slope(w *Workload, m *Metric) *Slope {
	s := &Slope{Alpha: w.Alpha}
	var cells []cell
	var x []float64
	positions := map[float64]bool{}
	for _, arm := range an.study.ArmsOf(w.Workload) {
		if arm.X == nil || m.Level(arm.Name) == nil {
			continue
		}
		c := cell{w.Name, arm.Name, false}
		if len(cells) > 0 && an.otherRates(m.Name, c, cells[0]) != "" {
			return nil
		}
		cells = append(cells, c)
		x = append(x, *arm.X)
		positions[*arm.X] = true
		s.Arms = append(s.Arms, arm.Name)
	}
	if len(positions) < leastPositions {
		return nil
	}
	s.Scaling = stats.Slope(x, an.valid.grid(m, cells, Difference), an.rule(m, w))
	return s
}

// Resolution sets an effect that the load could not resolve beside what the
// in-process loop says of the same arm.
type Resolution struct {
	Workload  string
	Arm       string
	EndToEnd  *Comparison // of the primary metric, or CPU per request: not distinguished, even alone
	InProcess *Comparison // of loop_time: distinguished
}

// resolve finds the arms whose effect only the in-process loop can tell.
func (a *Analysis) resolve() []Resolution {
	var all []Resolution
	for i := range a.Workloads {
		w := &a.Workloads[i]
		loop := w.Metric("loop_time")
		load := w.Metric("cpu_per_request")
		if p := a.Manifest.Study.Primary; p.Workload == w.Name && !strings.HasPrefix(p.Metric, "loop_") {
			load = w.Metric(p.Metric)
		}
		if loop == nil || load == nil {
			continue
		}
		for j := range loop.Compared {
			in := &loop.Compared[j]
			end := load.Against(in.Arm)
			if end == nil || end.Withheld != "" || end.Told() || end.Note != "" || !in.Told() {
				continue
			}
			all = append(all, Resolution{w.Name, in.Arm, end, in})
		}
	}
	return all
}
