package verdict_test

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// What the rest of the machine does for one arm, and not for the control, is warned of:
// beyond the floor of that, and where CPU per request would count.
func TestWorkElsewhere(t *testing.T) {
	for _, tc := range []struct {
		name        string
		ratio, rest float64 // true ratio of the arm; the control's level, ns
		noise       float64
		warned      bool
	}{
		{"430 µs more", 87, 5_000, 0.05, true},
		{"as much", 1, 5_000, 0.05, false},
		{"as much, on a busy machine", 1, 200_000, 0.4, false},
		{"less than counts", 1.01, 5_000, 0.001, false}, // 50 ns of the 300 that are 1 % of CPU per request
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := base()
			u.noise = tc.noise
			u.level["residual_cpu"] = tc.rest
			u.effect("three", "residual_cpu", tc.ratio)
			a := analyse(t, u.run())
			all := strings.Join(texts(a.Warnings), "\n")
			if got := strings.Contains(all, "of CPU per request outside arm and generator against none"); got != tc.warned {
				t.Errorf("warned %t, want %t: %s", got, tc.warned, all)
			}
		})
	}
}

// So is what an arm does after the load, and the control does not.
func TestWorkPutOff(t *testing.T) {
	for ratio, warned := range map[float64]bool{1: false, 87: true} {
		u := base()
		u.noise = 0.05
		u.level["deferred_cpu"] = 5_000
		u.effect("three", "deferred_cpu", ratio)
		all := strings.Join(texts(analyse(t, u.run()).Warnings), "\n")
		if got := strings.Contains(all, "of CPU per request after the load against none"); got != warned {
			t.Errorf("%v times as much: warned %t, want %t: %s", ratio, got, warned, all)
		}
	}
}

// Of ten arms of which none leaves work to others, a warning is rare; one that does is found, also
// by as few blocks as a quick form has.
func TestWorkElsewhereOfTen(t *testing.T) {
	for _, tc := range []struct {
		name         string
		blocks, runs int
		ratio        float64 // true one, of one arm
		least, most  float64 // share of runs with a warning
	}{
		{"none", 20, 150, 1, 0, 0.1},
		{"none, few blocks", 8, 150, 1, 0, 0.2},
		{"one", 20, 20, 3, 1, 1},
		{"one, few blocks", 8, 20, 3, 0.8, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rng, warned := rand.New(rand.NewPCG(1, 2)), 0
			for range tc.runs {
				u := base()
				u.arms(10)
				u.study.Control, u.blocks, u.seed, u.noise = "a0", tc.blocks, rng.Uint64(), 0.3
				u.level["residual_cpu"], u.level["deferred_cpu"] = 5_000, 5_000
				u.effect("a7", "residual_cpu", tc.ratio)
				if strings.Contains(strings.Join(texts(analyse(t, u.run()).Warnings), "\n"), "or leaves to others") {
					warned++
				}
			}
			if got := float64(warned) / float64(tc.runs); got < tc.least || got > tc.most {
				t.Errorf("%d of %d runs warned, want from %.0f to %.0f %%", warned, tc.runs, 100*tc.least, 100*tc.most)
			} else {
				t.Logf("%d of %d runs warned", warned, tc.runs)
			}
		})
	}
}

// The residual is compared by difference, whatever its level, and is of practical size
// where CPU per request would be.
func TestResidualScale(t *testing.T) {
	u := base()
	u.level["residual_cpu"] = 5_000
	r := u.run()
	w := analyse(t, r).Workload("half")
	m, cpu := w.Metric("residual_cpu"), w.Metric("cpu_per_request").Level("none").Median
	if m.Scale != "difference" || m.Threshold != 0.01*cpu {
		t.Errorf("got the scale %s and a threshold of %v, want difference and 1 %% of %v", m.Scale, m.Threshold, cpu)
	}
	if got, want := m.Level("none").Least, 30e6/float64(r.Trials[0].Requests); got != want || w.Metric("cpu_per_request").Level("none").Least != 0 {
		t.Errorf("got a resolution of %v ns, want 30 ms over the requests, %v, of the residual alone", got, want)
	}
}
