package estimate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/verdict/estimate"
)

// TestNeeds holds what would decide: where no interval is bounded at least the blocks that bound
// it, more of them where they lie far apart, and else what brings the interval down to the goal.
func TestNeeds(t *testing.T) {
	close, far := []float64{9.9, 10.1}, []float64{5, 15}
	for _, tc := range []struct {
		name       string
		d          []float64
		alpha      float64
		goal       float64
		least, max int
	}{
		{"one value", []float64{10}, 0.05, 5, 5, 5},
		{"two alike", close, 0.05, 5, 4, 4},
		{"two alike, a higher level", close, 0.01, 5, 6, 6},
		{"two that lie apart", far, 0.05, 1, 100, 500},
		{"at the very bound, and unbounded", close, 0.05, 0, 4, 4},
		{"at the very bound", []float64{9, 10, 11, 9, 10, 11, 9, 10}, 0.05, 0, 0, 0},
		{"bounded: four times as many halve it", []float64{9, 11, 9, 11, 9, 11, 9, 11}, 0.05, 0.5, 24, 24},
	} {
		e := estimate.Centre(tc.d, tc.alpha, false)
		if got := e.Needs(e.Value+tc.goal, 0); got < tc.least || got > tc.max {
			t.Errorf("%s: %d more, want %d to %d (%+v)", tc.name, got, tc.least, tc.max, e)
		}
	}
}

// TestNeedsOfLopsidedInterval holds that an interval which reaches much farther to one side wants
// blocks by the side of the limit that it has to clear, and more than one where it covers that.
func TestNeedsOfLopsidedInterval(t *testing.T) {
	e := estimate.Centre([]float64{8, 9, 9, 10, 10, 11, 40, 60}, 0.05, false)
	below, above := e.Value-e.Interval.Lo, e.Interval.Hi-e.Value
	if above < 4*below {
		t.Fatalf("%v around %v is not lopsided enough for this test", e.Interval, e.Value)
	}
	for _, limit := range []float64{e.Value + above/1.5, e.Value - below/1.5} {
		want := int(math.Ceil(8*1.5*1.5)) - 8
		if got := e.Needs(limit, 0); math.Abs(float64(got-want)) > 1 {
			t.Errorf("limit %v, interval %v around %v: %d more, want about %d", limit, e.Interval, e.Value, got, want)
		}
	}
}

// TestLevelInJSON holds that an interval says its level, and that an unbounded one has no ends.
func TestLevelInJSON(t *testing.T) {
	d := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, tc := range []struct {
		e    estimate.Estimate
		want string
	}{
		{estimate.Centre(d, 0.01, false), `"lo":1,"hi":8,"level":0.99`},
		{estimate.Centre(d[:2], 0.012, false), `{"value":1.5,"level":0.988}`},
		{estimate.Mean(d), `"level":0.95`},
		{estimate.Sampled(d, d), `"level":0.95`},
		{estimate.Estimate{Value: 3}, `{"value":3,"lo":0,"hi":0}`},
	} {
		if got, err := json.Marshal(tc.e); err != nil || !strings.Contains(string(got), tc.want) {
			t.Errorf("got %s, %v, want %s in it", got, err, tc.want)
		}
	}
}

func ExampleCentre() {
	e := estimate.Centre([]float64{3.1, 2.9, 3.0, 3.2, 2.8, 3.1}, 0.05, false)
	fmt.Printf("%.2f (%.2f to %.2f)\n", e.Value, e.Interval.Lo, e.Interval.Hi)
	// Output: 3.00 (2.80 to 3.20)
}
