package serve_test

import (
	"fmt"
	"testing"

	"github.com/tarehq/tare/serve"
)

// TestHorizons holds the sweep to look at a connection by the tick at which something is due
// of it, whatever the limits and whatever it does.
func TestHorizons(t *testing.T) {
	for seed := range uint64(60) {
		if err := serve.Horizons(seed, 2000); err != nil {
			t.Error(err)
		}
	}
}

// TestSweepLooksAtFew counts at how many idle connections the sweep looks: at each when it
// begins to idle, and then when its time may be up.
func TestSweepLooksAtFew(t *testing.T) {
	const n, passes = 10_000, 2000 // 62 s
	pass, looks := serve.Idlers(n, false)
	for range passes {
		pass()
	}
	if each := float64(looks()) / n; each > 4 {
		t.Errorf("%.1f looks at each of %d connections in %d ticks, want at most 4", each, n, passes)
	}
}

// BenchmarkSweep passes a tick by with many idle connections, whose clients ask once a minute:
// by=wheel looks at those of which something may be due, by=walk at all.
func BenchmarkSweep(b *testing.B) {
	for _, n := range []int{1000, 50_000} {
		for _, by := range []string{"walk", "wheel"} {
			b.Run(fmt.Sprintf("idle=%d/by=%s", n, by), func(b *testing.B) {
				pass, _ := serve.Idlers(n, by == "walk")
				b.ReportAllocs()
				for b.Loop() {
					pass()
				}
			})
		}
	}
}
