package unit_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/stats/unit"
)

func TestFormat(t *testing.T) {
	tests := []struct {
		value float64
		base  string
		want  string
	}{
		{0, "ns", "0 ns"},
		{0.25, "ns", "0.250 ns"},
		{372, "ns", "372 ns"},
		{999.4, "ns", "999 ns"},
		{999.6, "ns", "1.00 µs"},
		{37213, "ns", "37.2 µs"},
		{-37213, "ns", "-37.2 µs"},
		{999_600, "ns", "1.00 ms"},
		{2.3e6, "ns", "2.30 ms"},
		{1e9, "ns", "1.00 s"},
		{12.34e9, "ns", "12.3 s"},
		{1.5e13, "ns", "15,000 s"},
		{1023, "B", "1,023 B"},
		{1024, "B", "1.00 KiB"},
		{1023.7 * 1024, "B", "1.00 MiB"},
		{8.2 * (1 << 20), "B", "8.20 MiB"},
		{52400, "/s", "52,400/s"},
		{52413.37, "/s", "52,413/s"},
		{0.5, "/s", "0.500/s"},
		{0.5, "%", "50.0 %"},
		{0.00042, "%", "0.04 %"},
		{-0.00001, "%", "0.0 %"},
		{12, "", "12"},
		{1234567, "", "1,234,567"},
		{3.5, "", "3.50"},
		{0.01234, "", "0.0123"},
		{1e-12, "", "1.00e-12"},
		{-1234.5, "", "-1,234"},
		{7, "layers", "7 layers"},
		{math.NaN(), "ns", "–"},
		{math.NaN(), "/s", "–"},
		{math.Inf(1), "%", "∞ %"},
		{math.Inf(-1), "", "-∞"},
	}
	for _, tt := range tests {
		if got := unit.Format(tt.value, tt.base); got != tt.want {
			t.Errorf("Format(%v, %q) = %q, want %q", tt.value, tt.base, got, tt.want)
		}
	}
}

// Nothing is a dash, and no little of something is.
func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 blocks", 1: "1 block", 2: "2 blocks", 1234: "1,234 blocks"} {
		if got := unit.Plural(n, "block"); got != want {
			t.Errorf("Plural(%d): got %q, want %q", n, got, want)
		}
	}
}

func TestSome(t *testing.T) {
	for value, want := range map[float64]string{0: "–", 0.25: "0.250 ns", -3: "-3 ns"} {
		if got := unit.Some(value, unit.Nanoseconds); got != want {
			t.Errorf("Some(%v, ns) = %q, want %q", value, got, want)
		}
	}
}

func TestChange(t *testing.T) {
	tests := []struct {
		share float64
		want  string
	}{
		{0.0214, "+2.1 %"},
		{0, "0.0 %"},
		{-0.45, "-45.0 %"},
		{-0.9877, "-98.8 %"},
		{11.34, "+1,134.0 %"},
		{math.Inf(1), "∞ %"},
		{math.NaN(), "–"},
	}
	for _, tt := range tests {
		if got := unit.Change(tt.share); got != tt.want {
			t.Errorf("Change(%v) = %q, want %q", tt.share, got, tt.want)
		}
	}
}

func TestQuantileNames(t *testing.T) {
	for name, q := range map[string]float64{
		"min": 0, "p0.1": 0.001, "p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "max": 1,
	} {
		if got := unit.Quantile(q); got != name {
			t.Errorf("Quantile(%v) = %q, want %q", q, got, name)
		}
	}
}

// What is shown can be read again, and is what was shown to three digits.
func FuzzFormat(f *testing.F) {
	f.Add(37213.0, "ns")
	f.Add(-0.25, "B")
	f.Add(1e17, "/s")
	f.Fuzz(func(t *testing.T, v float64, base string) {
		if base != unit.Nanoseconds && base != unit.Bytes || math.Abs(v) > 1e14 || v != 0 && math.Abs(v) < 1e-3 || math.IsNaN(v) {
			t.Skip()
		}
		text := unit.Format(v, base)
		if got, err := read(text); err != nil || math.Abs(got-v) > 0.00501*math.Abs(v) {
			t.Errorf("Format(%v, %q) = %q, which reads as %v, %v", v, base, text, got, err)
		}
	})
}

// read is a quantity as it was shown, in its base unit.
func read(text string) (float64, error) {
	number, name, _ := strings.Cut(text, " ")
	size, ok := map[string]float64{
		"": 1, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9,
		"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}[name]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q", name)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	return v * size, err
}

func Example() {
	fmt.Println(unit.Format(37213, unit.Nanoseconds))
	fmt.Println(unit.Format(52400, unit.PerSecond))
	fmt.Println(unit.Change(0.0214))
	// Output:
	// 37.2 µs
	// 52,400/s
	// +2.1 %
}

func TestSigned(t *testing.T) {
	tests := []struct {
		value float64
		want  string
	}{
		{1500, "+1.50 µs"}, {-1500, "−1.50 µs"}, {0, "0"},
	}
	for _, tt := range tests {
		if got := unit.Signed(tt.value, unit.Nanoseconds); got != tt.want {
			t.Errorf("Signed(%v) = %q, want %q", tt.value, got, tt.want)
		}
	}
}
