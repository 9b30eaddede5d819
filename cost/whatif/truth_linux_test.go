//go:build linux && amd64

package whatif

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/internal/injected"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/unit"
)

// TestAgainstTruth compares the effect of slowing a service down by 20 µs from
// outside with that of a middleware that really spins for 20 µs. A process
// without the middleware, left alone and slowed down, and one with it are loaded
// in turns, half a second each, in random order. It measures for about a minute
// and a half, and wants a machine that does little else:
//
//	TARE_MEASURE=1 go test -run TestAgainstTruth -v ./cost/whatif
func TestAgainstTruth(t *testing.T) {
	if os.Getenv("TARE_MEASURE") == "" {
		t.Skip("it measures, on a machine that does little else: TARE_MEASURE=1")
	}
	path := injected.Build(t)
	for _, tt := range []struct {
		name string
		rate float64 // requests a second; 0: as fast as the answers come
	}{{"closed", 0}, {"rate=4000", 4000}} {
		t.Run(tt.name, func(t *testing.T) {
			var predicted, removed, slope []float64
			rng := rand.New(rand.NewPCG(1, 2))
			for range 3 { // fresh processes
				r := newRivals(t, path)
				for range 9 {
					b := r.block(t, rng, tt.rate)
					spin := r.spin(t)
					predicted = append(predicted, b.perTaken()*spin)
					removed = append(removed, newLevel(b[spinning]).CPU-newLevel(b[alone]).CPU)
					slope = append(slope, b.perTaken())
				}
				r.close()
			}
			p, r, s := estimateCentre(predicted), estimateCentre(removed), estimateCentre(slope)
			ns := func(v float64) string { return unit.Format(v, unit.Nanoseconds) }
			t.Logf("1 µs taken costs %.2f µs [%.2f %.2f]; predicted %s, %s; removed %s, %s; ratio %.3f",
				s.Value, s.Low, s.High, ns(p.Value), p.Between(ns), ns(r.Value), r.Between(ns), p.Value/r.Value)
			if ratio := p.Value / r.Value; ratio < 0.85 || ratio > 1.15 {
				t.Errorf("what slowing down predicts is %.3f of what removing saves, want 0.85 to 1.15", ratio)
			}
		})
	}
}

// What a window is of: the process without the middleware, left alone or slowed
// down, or the one with it.
const (
	alone = iota
	braked
	spinning
)

// rivals are the two processes, both under the same probes.
type rivals struct {
	brakes [2]*probe.Brake
	procs  [2]*injected.Process
	close  func()
}

func newRivals(t *testing.T, path string) *rivals {
	t.Helper()
	r := &rivals{}
	var closers []func()
	r.close = func() {
		for _, c := range slices.Backward(closers) {
			c()
		}
	}
	for i, spin := range []string{"0", "20us"} {
		p := injected.Start(t, path, "-spin", spin, "-alloc", "0")
		closers = append(closers, p.Stop)
		target, err := probe.Open(p.PID)
		if errors.Is(err, cost.ErrNotSupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		closers = append(closers, func() { target.Close() })
		owners, err := target.Owners(t.Context(), []string{"layers.Hello"}, time.Millisecond)
		if errors.Is(err, cost.ErrNotSupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := target.NewBrake(owners[0])
		if err != nil {
			t.Fatal(err)
		}
		closers = append(closers, func() { b.Close() })
		r.procs[i], r.brakes[i] = p, b
	}
	return r
}

// spin is the CPU time of the middleware that spins, a call, as it says itself.
func (r *rivals) spin(t *testing.T) float64 {
	calls, nanos := r.procs[1].Spun(t)
	return nanos / calls
}

// block is one window of each kind, close together and in random order.
type block [3]probe.Reading

func (b *block) perTaken() float64 {
	return (newLevel(b[braked]).CPU - newLevel(b[alone]).CPU) * float64(b[braked].Requests) / float64(b[braked].Taken)
}

func (r *rivals) block(t *testing.T, rng *rand.Rand, rate float64) *block {
	t.Helper()
	var b block
	for _, kind := range rng.Perm(len(b)) {
		i := kind / spinning
		if kind == braked {
			if err := r.brakes[i].On(20*time.Microsecond, 5*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		b[kind] = loaded(t, r.procs[i].URL, rate, r.brakes[i])
		if err := r.brakes[i].Off(); err != nil {
			t.Fatal(err)
		}
	}
	return &b
}

// loaded loads a process for half a second and reads what was counted meanwhile.
func loaded(t *testing.T, url string, rate float64, b *probe.Brake) probe.Reading {
	t.Helper()
	var readings []probe.Reading
	o := load.Options{
		Targets: []load.Target{{URL: url}}, Connections: 4, WarmUp: 50 * time.Millisecond, Duration: 450 * time.Millisecond,
		Mark: func(bool) {
			r, err := b.Read()
			if err != nil {
				t.Error(err)
			}
			readings = append(readings, r)
		},
	}
	if rate > 0 {
		o.Schedule = pace.Constant(rate)
	}
	if _, err := load.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(readings) != 2 {
		t.Fatalf("got %d readings, want one at either end", len(readings))
	}
	return readings[1].Since(readings[0])
}
