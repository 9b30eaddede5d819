package unit_test

import (
	"fmt"
	"math"
	"testing"
	"time"

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

func TestChangeAndRatio(t *testing.T) {
	tests := []struct {
		ratio         float64
		change, times string
	}{
		{1.0214, "+2.1 %", "1.021×"},
		{1, "0.0 %", "1.000×"},
		{0.55, "-45.0 %", "0.550×"},
		{0.0123, "-98.8 %", "0.0123×"},
		{12.34, "+1,134.0 %", "12.3×"},
		{9.9999, "+900.0 %", "10.0×"},
		{math.Inf(1), "∞ %", "∞×"},
		{math.NaN(), "–", "–"},
	}
	for _, tt := range tests {
		if got := unit.Change(tt.ratio - 1); got != tt.change {
			t.Errorf("Change(%v) = %q, want %q", tt.ratio-1, got, tt.change)
		}
		if got := unit.Ratio(tt.ratio); got != tt.times {
			t.Errorf("Ratio(%v) = %q, want %q", tt.ratio, got, tt.times)
		}
	}
}

func TestParse(t *testing.T) {
	tests := []struct {
		text  string
		value float64
		base  string
	}{
		{"159 µs", 159_000, "ns"},
		{"159us", 159_000, "ns"},
		{"1m30s", 90e9, "ns"},
		{"1.5 h", 5400e9, "ns"},
		{".5s", 5e8, "ns"},
		{"8.2 MB", 8_200_000, "B"},
		{"124 MiB", 124 << 20, "B"},
		{"52,400/s", 52_400, "/s"},
		{"10k/s", 10_000, "/s"},
		{"50%", 0.5, "%"},
		{"0.1 %", 0.001, "%"},
		{"12k", 12_000, ""},
		{"-3", -3, ""},
		{" 1,234,567 ", 1_234_567, ""},
	}
	for _, tt := range tests {
		value, base, err := unit.Parse(tt.text)
		if value != tt.value || base != tt.base || err != nil {
			t.Errorf("Parse(%q) = %v, %q, %v, want %v, %q", tt.text, value, base, err, tt.value, tt.base)
		}
	}
	for _, text := range []string{
		"", "-", "k", "1,23", "1,2345", ",123", "1e5", "0x10", "1.2.3", "1.2,345", "5 parsecs", "12 mB", "NaN", "Inf",
		"--1", "5 %%", "1 000", "١", "1m 30", "99999999999999999999999999999999999999999999999999" +
			"99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999" +
			"99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999" +
			"9999999999999999999999999999999999999999999999999999999999999999999999999999 TiB",
	} {
		if value, base, err := unit.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, %q, want an error", text, value, base)
		}
	}
}

func TestParseOneKind(t *testing.T) {
	if got, err := unit.ParseDuration("300ms"); got != 300*time.Millisecond || err != nil {
		t.Errorf("ParseDuration(300ms) = %v, %v", got, err)
	}
	if got, err := unit.ParseBytes("64KiB"); got != 65536 || err != nil {
		t.Errorf("ParseBytes(64KiB) = %v, %v", got, err)
	}
	if got, err := unit.ParseRate("1,000"); got != 1000 || err != nil {
		t.Errorf("ParseRate(1,000) = %v, %v", got, err)
	}
	if got, err := unit.ParseShare("50 %"); got != 0.5 || err != nil {
		t.Errorf("ParseShare(50 %%) = %v, %v", got, err)
	}
	wrong := map[string]func(string) error{
		"5":        func(s string) error { _, err := unit.ParseDuration(s); return err },
		"9000000h": func(s string) error { _, err := unit.ParseDuration(s); return err },
		"5s":       func(s string) error { _, err := unit.ParseBytes(s); return err },
		"-1kB":     func(s string) error { _, err := unit.ParseBytes(s); return err },
		"50%":      func(s string) error { _, err := unit.ParseRate(s); return err },
		"-1/s":     func(s string) error { _, err := unit.ParseRate(s); return err },
		"0.5":      func(s string) error { _, err := unit.ParseShare(s); return err },
	}
	for text, parse := range wrong {
		if parse(text) == nil {
			t.Errorf("reading %q as the wrong kind or out of range: no error", text)
		}
	}
}

func TestQuantileNames(t *testing.T) {
	for name, q := range map[string]float64{
		"min": 0, "p0.1": 0.001, "p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999, "max": 1,
	} {
		if got, err := unit.ParseQuantile(name); got != q || err != nil {
			t.Errorf("ParseQuantile(%q) = %v, %v, want %v", name, got, err, q)
		}
		if got := unit.Quantile(q); got != name {
			t.Errorf("Quantile(%v) = %q, want %q", q, got, name)
		}
	}
	for _, name := range []string{"", "p", "99", "p101", "p-1", "p1e1", "pp50", "P50"} {
		if got, err := unit.ParseQuantile(name); err == nil {
			t.Errorf("ParseQuantile(%q) = %v, want an error", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"159 µs", "1m30s", "8.2 MB", "52,400/s", "50%", "12k", "", "-.", "1e5", "p99.9", "99p"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, base, err := unit.Parse(s)
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Errorf("Parse(%q) = %v %q: not finite", s, v, base)
		}
		if err == nil && unit.Format(v, base) == "" {
			t.Errorf("Format(%v, %q) is empty", v, base)
		}
		if q, err := unit.ParseQuantile(s); err == nil && !(q >= 0 && q <= 1) {
			t.Errorf("ParseQuantile(%q) = %v: not in [0,1]", s, q)
		}
		if b, err := unit.ParseBytes(s); err == nil && b < 0 {
			t.Errorf("ParseBytes(%q) = %d: negative", s, b)
		}
	})
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
		got, gotBase, err := unit.Parse(text)
		if err != nil || gotBase != base || math.Abs(got-v) > 0.00501*math.Abs(v) {
			t.Errorf("Parse(Format(%v, %q) = %q) = %v, %q, %v", v, base, text, got, gotBase, err)
		}
	})
}

func Example() {
	fmt.Println(unit.Format(37213, unit.Nanoseconds))
	fmt.Println(unit.Format(52400, unit.PerSecond))
	fmt.Println(unit.Change(0.0214), unit.Ratio(1.0214))
	value, base, _ := unit.Parse("8.2 MB")
	fmt.Println(value, base)
	// Output:
	// 37.2 µs
	// 52,400/s
	// +2.1 % 1.021×
	// 8.2e+06 B
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
