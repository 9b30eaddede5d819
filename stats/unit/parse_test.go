package unit_test

import (
	"testing"
	"time"

	"github.com/tarehq/tare/stats/unit"
)

func TestParse(t *testing.T) {
	for give, want := range map[string]struct {
		value float64
		base  string
	}{
		"159 µs": {159e3, unit.Nanoseconds}, "159us": {159e3, unit.Nanoseconds}, "1.5ms": {1.5e6, unit.Nanoseconds}, "159 μs": {159e3, unit.Nanoseconds},
		"2m": {120e9, unit.Nanoseconds}, "1h": {3600e9, unit.Nanoseconds}, "1m30s": {90e9, unit.Nanoseconds}, "0.5ns": {.5, unit.Nanoseconds},
		"8.2 MB": {8_200_000, unit.Bytes}, "124 MiB": {124 << 20, unit.Bytes}, "3 KiB": {3 << 10, unit.Bytes}, "7B": {7, unit.Bytes},
		"52400/s": {52400, unit.PerSecond}, "52.4k/s": {52400, unit.PerSecond}, "1M/s": {1e6, unit.PerSecond},
		"12%": {.12, unit.Share}, "0.1 %": {.001, unit.Share}, "3.8": {3.8, unit.Count}, "2k": {2000, unit.Count}, "0": {0, unit.Count},
	} {
		if value, base, err := unit.Parse(give); value != want.value || base != want.base || err != nil {
			t.Errorf("Parse(%q): got %v %q, %v; want %v %q", give, value, base, err, want.value, want.base)
		}
	}
	for _, give := range []string{"", "-1", "1e3", "1.", ".5", "1  ms", "1 kg", "NaN", "0x10", "1k%", "1m 30s", "1234567890123456", "1ms "} {
		if value, base, err := unit.Parse(give); err == nil {
			t.Errorf("Parse(%q): got %v %q, want an error", give, value, base)
		}
	}
}

func TestParseDuration(t *testing.T) {
	if d, err := unit.ParseDuration("1m30s"); d != 90*time.Second || err != nil {
		t.Errorf("got %v, %v", d, err)
	}
	for _, give := range []string{"", "5", "-1s", "+1s", "999999999h", ".5s"} {
		if d, err := unit.ParseDuration(give); err == nil {
			t.Errorf("ParseDuration(%q): got %v, want an error", give, d)
		}
	}
}
