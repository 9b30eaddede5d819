// Package layers weighs what arms of a study add to the arms that they stand in, side by side
// with others that add the same.
//
// An arm with a layer names the arm that it is added to: one on a router is not held
// against one on net/http. The weight is the difference of the two within each block, so that
// what router, server and handler take is in both.
package layers

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/lab/verdict/estimate"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Weight is what an arm's layer adds to a request. Values are in the primary metric's base unit.
type Weight struct {
	Layer  string            `json:"layer"`
	Arm    string            `json:"arm"`
	Over   string            `json:"over"` // the arm that it is added to
	N      int               `json:"n"`    // blocks that had both
	Adds   estimate.Estimate `json:"adds"`
	Allocs *float64          `json:"allocs,omitzero"` // allocations that it adds, where counted in process

	// Against is how much more it adds than Beside, the first of its layer in the study's
	// order. Neither is there for that one itself, nor where no block had both.
	Beside  string             `json:"beside,omitzero"`
	Against *estimate.Estimate `json:"against,omitzero"`
	Word    string             `json:"word,omitzero"` // heavier, lighter, or not told apart: beyond the machine's noise

	title string
}

// Of weighs the layers of a run by its primary metric: by layer in the study's order, the lightest
// first. It is nil where the study has no layers or nothing valid was measured of them.
func Of(a *verdict.Analysis) []Weight {
	m := a.Primary()
	if m == nil || m.Withheld != "" {
		return nil
	}
	w := a.Workload(a.Manifest.Study.Primary.Workload)
	noise := m.Floor
	if l := m.Level(a.Manifest.Study.Control); m.Scale == verdict.Ratio && l != nil {
		noise = math.Expm1(m.Floor) * l.Median
	}
	firsts := map[string]first{}
	var all []Weight
	var order []string
	for _, arm := range a.Manifest.Study.Arms {
		adds := added(m, arm)
		if arm.Layer == "" || len(adds) == 0 {
			continue
		}
		one := Weight{Layer: arm.Layer, Arm: arm.Name, Over: arm.Over, N: len(adds), Adds: estimate.Centre(values(adds), w.Alpha, w.Anytime), title: cmp.Or(arm.Title, arm.Name)}
		if allocs := w.Metric("loop_allocs"); allocs != nil {
			if d := values(added(allocs, arm)); len(d) > 0 {
				one.Allocs = new(stats.Median(d))
			}
		}
		ours, seen := firsts[arm.Layer]
		if !seen {
			firsts[arm.Layer], order = first{arm.Name, adds}, append(order, arm.Layer)
		} else if d := values(less(adds, ours.adds)); len(d) > 0 {
			e := estimate.Centre(d, w.Alpha, w.Anytime)
			one.Beside, one.Against, one.Word = ours.arm, &e, word(m, e, noise)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(x, y Weight) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.Layer), slices.Index(order, y.Layer)), cmp.Compare(x.Adds.Value, y.Adds.Value))
	})
	return all
}

// first is the arm that the others of its layer are held against.
type first struct {
	arm  string
	adds []verdict.Point
}

// added is what an arm's layer adds, in each block that has both arms.
func added(m *verdict.Metric, arm study.Arm) []verdict.Point {
	with, over := m.Level(arm.Name), m.Level(arm.Over)
	if with == nil || over == nil {
		return nil
	}
	return less(with.Points, over.Points)
}

// less is x less y, block by block, where there are both.
func less(x, y []verdict.Point) []verdict.Point {
	other := map[int]float64{}
	for _, p := range y {
		other[p.Block] = p.Value
	}
	var all []verdict.Point
	for _, p := range x {
		if v, ok := other[p.Block]; ok {
			all = append(all, verdict.Point{Block: p.Block, Value: p.Value - v})
		}
	}
	return all
}

func values(all []verdict.Point) []float64 {
	out := make([]float64, len(all))
	for i, p := range all {
		out[i] = p.Value
	}
	return out
}

// What Word says.
const (
	Heavier = "heavier"
	Lighter = "lighter"
	Neither = "not told apart"
)

// word says what an interval tells of two weights. Noise is how far two trials of one program may
// lie apart; where it is not known, nothing is told apart.
func word(m *verdict.Metric, e estimate.Estimate, noise float64) string {
	more, less := Heavier, Lighter
	if m.Higher {
		more, less = less, more
	}
	switch {
	case m.FloorBy == "":
	case e.Interval.Lo > 0 && e.Value > noise:
		return more
	case e.Interval.Hi < 0 && e.Value < -noise:
		return less
	}
	return Neither
}

// Blocks are the weights as a table, nothing where there are none.
func Blocks(a *verdict.Analysis) []doc.Block {
	all := Of(a)
	if len(all) == 0 {
		return nil
	}
	m := a.Primary()
	t := doc.Table{Caption: "What each layer adds: " + m.Title, Wrap: true, Columns: []doc.Column{
		{Head: "layer", Key: true}, {Head: "arm", Key: true}, {Head: "adds"}, {Head: "interval"}, {Head: "allocations"}, {Head: "blocks"}, {Head: "against another"}}}
	for i, w := range all {
		layer := w.Layer
		if i > 0 && all[i-1].Layer == layer {
			layer = ""
		}
		t.Rows = append(t.Rows, doc.Row{Cells: []doc.Cell{{Text: layer}, {Text: w.title}, {Text: verdict.ShowSigned(m.Metric, w.Adds.Value)},
			{Text: verdict.SpanSigned(m.Metric, w.Adds.Interval)}, {Text: allocations(w.Allocs)}, {Text: fmt.Sprint(w.N)}, against(m, &w)}})
	}
	return []doc.Block{t, doc.Note(fmt.Sprintf("A layer's weight is its arm less the arm that it is added to, block by block: %ss, not corrected for their number. "+
		"Within a layer the lightest stands first, and all are held against the one that the study names first. Heavier and lighter are beyond this machine's noise.", all[0].Adds.Called()))}
}

func allocations(n *float64) string {
	if n == nil {
		return ""
	}
	if math.Abs(*n) < 0.005 { // of a rare one, such as the collector's, no request's share is worth a digit
		return "0"
	}
	return unit.Signed(*n, unit.Count)
}

func against(m *verdict.Metric, w *Weight) doc.Cell {
	if w.Against == nil {
		return doc.Cell{Text: "what the others are held against"}
	}
	c := doc.Cell{Text: fmt.Sprintf("%s: %s (%s)", w.Word, verdict.ShowSigned(m.Metric, w.Against.Value), verdict.SpanSigned(m.Metric, w.Against.Interval))}
	switch w.Word {
	case Heavier:
		c.Tone = doc.Bad
	case Lighter:
		c.Tone = doc.Good
	}
	return c
}
