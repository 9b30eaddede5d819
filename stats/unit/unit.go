// Package unit writes quantities for people.
//
// A quantity is a float64 in a base unit: nanoseconds "ns", bytes "B", a
// number a second "/s", a share "%" (0 to 1, shown as per cent), or a plain
// count "". [Format] scales it and shows three significant digits, so that
// rows of a table agree in how much they promise. That rounds: files keep base
// units, and only display comes through here.
package unit

import (
	"math"
	"strconv"
	"strings"
)

// The base units.
const (
	Nanoseconds = "ns"
	Bytes       = "B"
	PerSecond   = "/s"
	Share       = "%" // 0 to 1
	Count       = ""
)

// scale is a multiple of a base unit.
type scale struct {
	name string
	size float64
}

// What is shown, ascending.
var (
	durations = [...]scale{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}
	sizes     = [...]scale{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}
)

// Format is value, counted in a base unit, for people: "37.2 µs", "1.50 MiB",
// "52,400/s", "2.1 %", "1,234". What it does not know as a base unit is
// written after the number as it is. NaN is "–".
func Format(value float64, unit string) string {
	switch unit {
	case Nanoseconds:
		return scaled(value, durations[:])
	case Bytes:
		return scaled(value, sizes[:])
	case PerSecond:
		return Number(value) + suffix(value, "/s")
	case Share:
		return percent(value*100, "")
	case Count:
		return Number(value)
	}
	return Number(value) + suffix(value, " "+unit)
}

// Some formats a value as Format does, and 0 as a dash: there is none.
func Some(value float64, unit string) string {
	if value == 0 {
		return "–"
	}
	return Format(value, unit)
}

// Change is a relative change with its sign, such as 0.021 → "+2.1 %".
func Change(share float64) string { return percent(share*100, "+") }

// Signed formats a difference as Format does, with its sign, + as well.
func Signed(value float64, unit string) string {
	switch {
	case value > 0:
		return "+" + Format(value, unit)
	case value < 0:
		return "−" + Format(-value, unit)
	}
	return "0"
}

// Number is a plain number: thousands separated, at least three significant
// digits where it is no whole number ("0.0123", "3.50", "1,234", "12").
func Number(v float64) string {
	if s, odd := oddity(v); odd {
		return s
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return thousands(significant(v))
}

// Plural is a number of things: "1 block", "2 blocks", "1,234 requests".
func Plural[N ~int | ~int64 | ~uint64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Number(float64(n)) + " " + noun
}

// scaled shows v in the largest of the scales that leaves at least 1, after
// rounding: 999.6 µs is 1.00 ms.
func scaled(v float64, scales []scale) string {
	if s, odd := oddity(v); odd {
		return s
	}
	i := len(scales) - 1
	for i > 0 && rounded(v/scales[i].size) < 1 {
		i--
	}
	n := v / scales[i].size
	if i == 0 && n == math.Trunc(n) { // whole ns and bytes promise no decimals
		return thousands(strconv.FormatFloat(n, 'f', 0, 64)) + " " + scales[i].name
	}
	return thousands(significant(n)) + " " + scales[i].name
}

// percent shows p per cent, to a tenth, or to a hundredth below a tenth.
func percent(p float64, plus string) string {
	if s, odd := oddity(p); odd {
		return s + suffix(p, " %")
	}
	digits := 1
	if a := math.Abs(p); a < 0.095 && a >= 0.005 {
		digits = 2
	}
	s := strconv.FormatFloat(p, 'f', digits, 64)
	if strings.Trim(s, "-0.") == "" {
		return "0.0 %" // neither −0 nor +0
	}
	if p > 0 {
		s = plus + s
	}
	return thousands(s) + " %"
}

// oddity is the text of a value that is no number of anything.
func oddity(v float64) (text string, odd bool) {
	switch {
	case math.IsNaN(v):
		return "–", true
	case math.IsInf(v, 1):
		return "∞", true
	case math.IsInf(v, -1):
		return "-∞", true
	}
	return "", false
}

// suffix is s, or nothing after the text of a missing value.
func suffix(v float64, s string) string {
	if math.IsNaN(v) {
		return ""
	}
	return s
}

// rounded is |v| to three significant digits.
func rounded(v float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(math.Abs(v), 'e', 2, 64), 64)
	return r
}

// significant is v with three significant digits, and all digits before the
// point; from a trillionth down it is scientific.
func significant(v float64) string {
	a := rounded(v)
	if a == 0 {
		return "0"
	}
	before := int(math.Floor(math.Log10(a))) + 1 // digits before the point; ≤ 0 for 0.0…
	if before < -8 || before > 15 {
		return strconv.FormatFloat(v, 'e', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', max(0, 3-before), 64)
}

// thousands puts commas between the thousands of a decimal number.
func thousands(s string) string {
	start := strings.IndexAny(s, "0123456789")
	end := strings.IndexByte(s, '.')
	if end < 0 {
		end = len(s)
	}
	if strings.ContainsRune(s, 'e') {
		return s
	}
	for at := end - 3; at > start; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// Quantile is the display name of q in [0,1]: 0.999 is "p99.9", 0 "min", 1
// "max".
func Quantile(q float64) string {
	switch {
	case q <= 0:
		return "min"
	case q >= 1:
		return "max"
	}
	return "p" + strconv.FormatFloat(math.Round(q*1e10)/1e8, 'f', -1, 64)
}
