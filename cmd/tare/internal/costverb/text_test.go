package costverb

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli/clitest"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/doc"
)

// TestTimerRingsLate has the lateness of samples told where it is more than that of
// a processor's own timer.
func TestTimerRingsLate(t *testing.T) {
	for late, want := range map[int64]bool{0: false, 2_000: false, 12_700: true} {
		text := samplingText(&cost.Sampled{Hz: 99, Clock: "a timer", Stacks: 1475, Covered: 1, Late: late})
		if got := strings.Contains(text, "fires 12.7 µs late"); got != want {
			t.Errorf("a timer that fires %d ns late is mentioned: %v, want %v\n%s", late, got, want, text)
		}
	}
}

// TestCallTime does not tell a time that is shorter than what the probes leave.
func TestCallTime(t *testing.T) {
	for ns, want := range map[float64]string{0: "below 100 ns", 0.861: "below 100 ns", 99.9: "below 100 ns", 100: "100 ns", 22e3: "22.0 µs"} {
		if got := callTime(ns); got != want {
			t.Errorf("%v ns: got %q, want %q", ns, got, want)
		}
	}
}

func TestTenths(t *testing.T) {
	for s, want := range map[float64]string{5: "5", 5.02: "5", 5.54: "5.5", 4.97: "5", 0.5: "0.5"} {
		if got := tenths(s); got != want {
			t.Errorf("tenths(%v) = %s, want %s", s, got, want)
		}
	}
}

// TestWallText shows calls as the clock saw them.
func TestWallText(t *testing.T) {
	it := &cost.Item{Wall: &cost.WallShare{Calls: 2, P50: 19e3, P99: 40e3, Self: 20e3, Total: 50e3}}
	const want = "clock: 2 a request, p50 19.0 µs, p99 40.0 µs, mean 20.0 µs, total 50.0 µs"
	if got := wallText(it, "request"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNarrow has the table keep within a terminal, and still say whose the figures are.
func TestNarrow(t *testing.T) {
	const owner = "middleware.(*authenticator)"
	item := cost.Item{Kind: "middleware", Owner: owner, Where: "mw/auth.go:34", Self: 12.3e3, Margin: 7.26e3, Total: 48.1e3, GC: 33.4e3, Bytes: 46387, Objects: 7.77}
	page := doc.Page{Blocks: []doc.Block{ownerTable([]cost.Item{item}, "request", true)}}
	clitest.CheckPage(t, page, "45.3 KiB", owner)
}
