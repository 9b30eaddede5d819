package balance_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy/balance"
)

// TestRamp is the table of how often a target is spared.
func TestRamp(t *testing.T) {
	now := time.Unix(1000, 0)
	const n, slow = 20_000, 10 * time.Second
	share := func(r *balance.Ramp, at time.Time) float64 {
		spared := 0
		for range n {
			if r.Spares(slow, at) {
				spared++
			}
		}
		return float64(spared) / n
	}
	var r balance.Ramp
	expect := func(when string, at time.Time, want float64) {
		t.Helper()
		if got := share(&r, at); math.Abs(got-want) > 0.02 {
			t.Errorf("%s: %.3f are spared, want %.2f", when, got, want)
		}
	}
	expect("an old one", now, 0)
	r.Begin(now)
	expect("a new one", now, 0.9)
	expect("after half a second", now.Add(slow/20), 0.9)
	expect("half way", now.Add(slow/2), 0.5)
	expect("at the end", now.Add(slow), 0)
	expect("later, by a clock that was set back", now, 0)
	r.Fell()
	expect("well again", now.Add(time.Minute), 0.9)
	expect("once it was", now.Add(time.Minute+slow), 0)
}

// TestNear is the table of what stays in the zone.
func TestNear(t *testing.T) {
	zones := []string{"a", "b", "a", "a", "a", "", "a", "a", "a"} // seven near ones
	z := balance.NewZones("a", zones)
	if got := fmt.Sprint(z.Weights([]int{1, 2, 3, 4, 5, 6, 7, 8, 9})); got != "[1 0 3 4 5 0 7 8 9] [0 2 0 0 0 6 0 0 0]" {
		t.Errorf("got the weights %s", got)
	}
	near := map[int]bool{0: true, 2: true, 3: true, 4: true, 6: true, 7: true, 8: true}
	for well, want := range map[int]float64{7: 1, 5: 1, 4: 0.8, 1: 0.2, 0: 0} {
		const n = 20_000
		stay := 0
		for range n {
			left := well
			if z.Stay(func(i int) bool {
				if !near[i] {
					t.Fatalf("target %d is asked for, which is far", i)
				}
				left--
				return left >= 0
			}) {
				stay++
			}
		}
		if got := float64(stay) / n; math.Abs(got-want) > 0.02 {
			t.Errorf("%d of 7 are well: %.3f stay, want %.2f", well, got, want)
		}
	}
	if balance.NewZones("c", zones) != nil || balance.NewZones("a", []string{"a", "a"}) != nil {
		t.Error("zones count where none or all are near")
	}
}
