package meter_test

import (
	"testing"
	"time"

	"github.com/tarehq/tare/serve/internal/meter"
)

// TestStalled has 100 bytes asked for in each 10 ns of waiting.
func TestStalled(t *testing.T) {
	w := meter.Window{Stall: 10, Least: 100}
	type wait struct {
		from, to int64
		n        int
	}
	for _, test := range []struct {
		name  string
		waits []wait // that have ended
		from  int64  // of the wait at hand, 0: none
		now   int64
		w     meter.Window
		want  bool
	}{
		{"no wait", nil, 0, 100, w, false},
		{"a short one", nil, 5, 15, w, false},
		{"a long one", nil, 5, 16, w, true},
		{"no bound", nil, 5, 1000, meter.Window{}, false},
		{"short ones add up", []wait{{1, 6, 10}}, 20, 26, w, true},
		{"enough came before", []wait{{1, 6, 100}}, 20, 26, w, false},
		{"a full window with enough ends", []wait{{1, 12, 100}}, 20, 30, w, false},
		{"a full window with little goes on", []wait{{1, 12, 99}}, 20, 21, w, true},
		{"one byte at least", nil, 5, 16, meter.Window{Stall: 10 * time.Nanosecond}, true},
	} {
		var m meter.Meter
		for _, one := range test.waits {
			m.Begin(one.from)
			m.End(one.to, one.n, test.w)
		}
		if test.from != 0 {
			m.Begin(test.from)
		}
		if m.Waiting() != (test.from != 0) {
			t.Errorf("%s: Waiting() = %v", test.name, m.Waiting())
		}
		if got := m.Stalled(test.now, test.w); got != test.want {
			t.Errorf("%s: Stalled(%d) = %v, want %v", test.name, test.now, got, test.want)
		}
	}
}

// TestRenewed has a window that was filled with enough begin anew.
func TestRenewed(t *testing.T) {
	w := meter.Window{Stall: 10, Least: 100}
	var m meter.Meter
	m.Begin(1)
	m.End(5, 100, w)
	m.Begin(5)
	if m.Stalled(20, w) {
		t.Error("a window with enough is stalled")
	}
	if m.Stalled(30, w) {
		t.Error("the next window is stalled before it is full")
	}
	if !m.Stalled(31, w) {
		t.Error("a full window without a byte is not stalled")
	}
	m.Begin(40)
	m.Forget()
	m.Renew(45)
	if m.Stalled(55, w) || !m.Stalled(56, w) {
		t.Error("a renewed window does not begin when it was renewed")
	}
}
