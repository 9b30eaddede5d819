package lab

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/record"
)

// The facts that a trial of a workload with lines reports.
const (
	allocatesAt  = "allocates at"
	goroutinesAt = "goroutines at"
)

// mostLeft is how many goroutines may stand after the load, in all and for each
// 1,000 requests, before they are said to be gained: a server has some.
const mostLeft = 50

// tellLines finds in the arm's profiles the lines that allocate most and that
// the goroutines stand at which the load has left.
func (s *session) tellLines(ctx context.Context, t *record.Trial) error {
	if !s.w.Lines {
		return nil
	}
	heap, err := s.proc.Profile(ctx, "heap", 0)
	if untold(err) {
		return nil
	}
	if err != nil {
		return err
	}
	allocated, err := pprof.Read(bytes.NewReader(heap))
	if err != nil {
		return fmt.Errorf("the arm's heap profile: %w", err)
	}
	profile, err := s.proc.Profile(ctx, "goroutines", 0)
	if untold(err) {
		return nil
	}
	if err != nil {
		return err
	}
	goroutines, err := pprof.ReadGoroutines(bytes.NewReader(profile))
	if err != nil {
		return fmt.Errorf("the arm's goroutine profile: %w", err)
	}
	addFacts(t, map[string]string{
		allocatesAt:  most(allocated.Stacks),
		goroutinesAt: crowded(goroutines.Stacks, float64(t.Requests)),
	})
	return nil
}

// most is the place of the arm's own code with the greatest value below it, ""
// if no stack has any.
func most(stacks []cost.Stack) string {
	sums := map[string]float64{}
	for i := range stacks {
		if f := ownFrame(&stacks[i]); f != nil {
			sums[place(f)] += stacks[i].Value
		}
	}
	best := ""
	for _, at := range slices.Sorted(maps.Keys(sums)) {
		if best == "" || sums[at] > sums[best] {
			best = at
		}
	}
	return best
}

// crowded are the places with at least a tenth of all goroutines, by name, if
// there are more of these than a server has.
func crowded(stacks []cost.Stack, requests float64) string {
	counts, all := map[string]float64{}, 0.0
	for i := range stacks {
		s := &stacks[i]
		at := s.Frames[len(s.Frames)-1].Func // of the standard library, whose lines are not the arm's to change
		if f := ownFrame(s); f != nil {
			at = place(f)
		}
		counts[at] += s.Count
		all += s.Count
	}
	if all <= mostLeft || all*1000 <= mostLeft*requests {
		return "none gained"
	}
	maps.DeleteFunc(counts, func(_ string, n float64) bool { return n < all/10 })
	return strings.Join(slices.Sorted(maps.Keys(counts)), "; ")
}

// harness is what arms are built on: what it does it does for tare.
const harness = "github.com/tarehq/tare/arms/arm."

// ownFrame is the innermost frame of the arm's own code: neither the standard
// library's nor the harness's.
func ownFrame(s *cost.Stack) *cost.Frame {
	for i := range s.Frames {
		if f := &s.Frames[i]; !f.Standard() && !strings.HasPrefix(f.Func, harness) {
			return f
		}
	}
	return nil
}

func place(f *cost.Frame) string { return fmt.Sprintf("%s %s:%d", f.Func, path.Base(f.File), f.Line) }
