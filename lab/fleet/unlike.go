package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/unit"
)

// The rule by which an agent is unlike the others.
const (
	falseAlarms = 0.01 // share of loads by agents that are alike in which some agent is found unlike, at most
	leastRatio  = 0.10 // a smaller difference is not worth a word
	leastAgents = 3    // of two, either could be the odd one
)

// findUnlike says of each agent how its answers differ from the others'; "" if not
// noticeably. In each slice agents are ranked by their median response time, and by the 99th
// percentile. Among n that are alike, each stands in the upper half as often as in the lower
// one. An agent is unlike the others if the sign test on its slices, two-sided, is below
// falseAlarms/2n, since there are n agents and two measures, and the ratio to the others'
// median is typically off by more than leastRatio. Slices are taken for independent: an agent
// that was slow for a part of the load is unlike the others, whatever made it slow.
func findUnlike(series [][]load.Slice) []string {
	found := make([]string, len(series))
	if len(series) < leastAgents {
		return found
	}
	silent(series, found)
	for _, m := range []struct {
		name string
		of   func(load.Slice) time.Duration
	}{
		{"p50", func(s load.Slice) time.Duration { return s.P50 }},
		{"p99", func(s load.Slice) time.Duration { return s.P99 }},
	} {
		for k, s := range standings(series, m.of) {
			if text := s.unlike(len(series)); text != "" && found[k] == "" {
				found[k] = "its " + m.name + " is " + text
			}
		}
	}
	return found
}

// silent finds agents without an answer while others had some. That needs no test.
func silent(series [][]load.Slice, found []string) {
	answered := func(all []load.Slice) bool {
		return slices.ContainsFunc(all, func(s load.Slice) bool { return s.Answered > 0 })
	}
	if !slices.ContainsFunc(series, answered) {
		return
	}
	for k, all := range series {
		if !answered(all) {
			found[k] = "it had no answer, and other agents had some"
		}
	}
}

// standing is where an agent stood among all.
type standing struct {
	above, below int       // slices in which it was in the upper half, or in the lower
	ratios       []float64 // to the median of all
}

// standings ranks the agents in each slice in which all had answers.
func standings(series [][]load.Slice, of func(load.Slice) time.Duration) []standing {
	at := map[time.Duration][]float64{} // by slice; 0 where an agent had no answer
	for k, all := range series {
		for _, s := range all {
			if at[s.At] == nil {
				at[s.At] = make([]float64, len(series))
			}
			if s.Answered > 0 {
				at[s.At][k] = float64(of(s))
			}
		}
	}
	found := make([]standing, len(series))
	for _, values := range at {
		sorted := slices.Sorted(slices.Values(values))
		if sorted[0] <= 0 {
			continue
		}
		middle := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
		for k, v := range values {
			less, _ := slices.BinarySearch(sorted, v)
			more, _ := slices.BinarySearchFunc(sorted, v, func(x, v float64) int { return cmp.Or(cmp.Compare(x, v), -1) })
			switch s := &found[k]; cmp.Compare(less, len(sorted)-more) {
			case 1:
				s.above++
			case -1:
				s.below++
			}
			found[k].ratios = append(found[k].ratios, v/middle)
		}
	}
	return found
}

// unlike says how an agent of n differs; "" if not noticeably.
func (s standing) unlike(n int) string {
	sliced := s.above + s.below
	if sliced == 0 || signTest(max(s.above, s.below), sliced) > falseAlarms/float64(2*n) {
		return ""
	}
	slices.Sort(s.ratios)
	ratio := s.ratios[len(s.ratios)/2]
	switch {
	case ratio > 1+leastRatio && s.above > s.below:
		return fmt.Sprintf("%s above that of all agents, and among the higher half in %d of %d slices", unit.Format(ratio-1, unit.Share), s.above, sliced)
	case ratio < 1-leastRatio && s.below > s.above:
		return fmt.Sprintf("%s below that of all agents, and among the lower half in %d of %d slices", unit.Format(1-ratio, unit.Share), s.below, sliced)
	}
	return ""
}

// signTest is the chance, two-sided, that of n fair coins so many or more show one side.
func signTest(most, n int) float64 {
	all, _ := math.Lgamma(float64(n + 1))
	var p float64
	for k := most; k <= n; k++ {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		p += math.Exp(all - a - b - float64(n)*math.Ln2)
	}
	return min(1, 2*p)
}
