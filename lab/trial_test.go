package lab_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// over is a result with so many answers in its slices.
func over(answered ...uint64) *load.Result {
	res := &load.Result{Window: time.Second, Response: hist.New(), Service: hist.New(), FirstByte: hist.New(), Generator: load.Generator{Late: hist.New()}}
	for i, n := range answered {
		res.Within, res.Counts.Status[2] = res.Within+n, res.Counts.Status[2]+n
		res.Series = append(res.Series, load.Slice{At: time.Duration(i) * time.Second, Answered: n})
	}
	return res
}

func level() *load.Result { return over(100, 101, 100, 99, 100, 101, 99, 100, 100, 100) }
func rising() *load.Result {
	return over(100, 120, 140, 160, 180, 200, 220, 240, 260, 280)
}

// A trial that was not steady is extended once; what came second counts, and is
// flagged if it was not steady either.
func TestExtendOnce(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name    string
		results []*load.Result // of the loads, in turn; nil: it fails
		runs    int
		steady  bool
		warned  bool
	}{
		{"steady", []*load.Result{level()}, 1, true, false},
		{"steady when extended", []*load.Result{rising(), level()}, 2, true, false},
		{"never steady", []*load.Result{rising(), rising(), level()}, 2, false, true},
		{"fails", []*load.Result{nil, level()}, 1, false, false},
		{"fails when extended", []*load.Result{rising(), nil}, 2, false, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var warmUps []time.Duration
			got, trial, err := lab.Steadily(t.Context(), time.Second, func(_ context.Context, o load.Options) (*load.Result, error) {
				warmUps = append(warmUps, o.WarmUp)
				if res := tc.results[len(warmUps)-1]; res != nil {
					return res, nil
				}
				return nil, broken
			})
			if want := []time.Duration{time.Second, 0}[:tc.runs]; !slices.Equal(warmUps, want) {
				t.Fatalf("loads with warm-ups of %v, want %v", warmUps, want)
			}
			if want := tc.results[tc.runs-1]; got != want || errors.Is(err, broken) != (want == nil) {
				t.Errorf("got %p, %v, want the result of load %d", got, err, tc.runs)
			}
			warned := slices.Contains(trial.Warnings, "not steady, also when measured again")
			if trial.Steady != tc.steady || warned != tc.warned {
				t.Errorf("steady %t, warnings %q, want steady %t, warned %t", trial.Steady, trial.Warnings, tc.steady, tc.warned)
			}
		})
	}
}

// Interrupted, a trial is not extended.
func TestExtendInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	loads := 0
	if _, _, err := lab.Steadily(ctx, 0, func(context.Context, load.Options) (*load.Result, error) {
		loads++
		cancel()
		return rising(), nil
	}); err != nil || loads != 1 {
		t.Errorf("%d loads, %v, want 1 without an error", loads, err)
	}
}

// Where there are CPUs enough, generator and specimen have their own.
func TestOwnCPUs(t *testing.T) {
	tests := []struct {
		pins                record.Pinning
		generator, specimen []int
		threads             int
	}{
		{record.Pinning{Specimen: []int{0, 1}, Instrument: []int{2, 3, 5}, Disjoint: true}, []int{2, 3, 5}, []int{0, 1}, 3},
		{record.Pinning{Specimen: []int{0}, Instrument: []int{0}}, nil, nil, 0},
	}
	for _, tc := range tests {
		o, specimen := lab.CPUs(tc.pins)
		if !slices.Equal(o.CPUs, tc.generator) || o.Threads != tc.threads || !slices.Equal(specimen, tc.specimen) {
			t.Errorf("%+v: generator on %v with %d threads, specimen on %v; want %v, %d, %v",
				tc.pins, o.CPUs, o.Threads, specimen, tc.generator, tc.threads, tc.specimen)
		}
	}
}
