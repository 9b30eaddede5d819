package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// suffixes are the units that Parse reads: the number times ten to exp, times
// by. Shifting the point in the text, where it will do, reads 8.2 MB as exactly
// 8,200,000. Spelling counts: "mB" and "KS" are mistakes.
var suffixes = map[string]struct {
	base string
	exp  int
	by   float64
}{
	"":    {Count, 0, 1},
	"k":   {Count, 3, 1},
	"M":   {Count, 6, 1},
	"ns":  {Nanoseconds, 0, 1},
	"us":  {Nanoseconds, 3, 1},
	"µs":  {Nanoseconds, 3, 1}, // micro sign
	"μs":  {Nanoseconds, 3, 1}, // Greek mu
	"ms":  {Nanoseconds, 6, 1},
	"s":   {Nanoseconds, 9, 1},
	"m":   {Nanoseconds, 9, 60},
	"min": {Nanoseconds, 9, 60},
	"h":   {Nanoseconds, 9, 3600},
	"B":   {Bytes, 0, 1},
	"kB":  {Bytes, 3, 1},
	"KB":  {Bytes, 3, 1},
	"MB":  {Bytes, 6, 1},
	"GB":  {Bytes, 9, 1},
	"TB":  {Bytes, 12, 1},
	"KiB": {Bytes, 0, 1 << 10},
	"MiB": {Bytes, 0, 1 << 20},
	"GiB": {Bytes, 0, 1 << 30},
	"TiB": {Bytes, 0, 1 << 40},
	"/s":  {PerSecond, 0, 1},
	"k/s": {PerSecond, 3, 1},
	"M/s": {PerSecond, 6, 1},
	"%":   {Share, -2, 1},
}

// Parse reads a quantity such as "159 µs", "1m30s", "8.2 MB", "52,400/s",
// "50%" or "12k" as a value in its base unit. Commas may separate thousands, a
// space the unit; durations of several parts are read as time.ParseDuration
// does. A value that is not finite is an error.
func Parse(s string) (value float64, base string, err error) {
	text := strings.TrimSpace(s)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, name := text[:end], strings.TrimSpace(text[end:])
	u, known := suffixes[name]
	if !known {
		return 0, "", fmt.Errorf("reading %q: unknown unit %q: use ns, us, ms, s, m, h; B, kB, KiB, MB, MiB, …; /s, k/s; %%; k, M", s, name)
	}
	v, err := parseNumber(number, u.exp)
	v *= u.by
	if errors.Is(err, strconv.ErrRange) || math.IsInf(v, 0) {
		return 0, "", fmt.Errorf("reading %q: out of range", s)
	}
	if err == nil {
		return v, u.base, nil
	}
	if d, err := time.ParseDuration(strings.ReplaceAll(text, " ", "")); err == nil {
		return float64(d), Nanoseconds, nil
	}
	return 0, "", fmt.Errorf("reading %q: %q is not a number", s, number)
}

// parseNumber reads a decimal number, with commas between thousands only, times
// ten to exp.
func parseNumber(s string, exp int) (float64, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	if strings.Trim(fraction, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	groups := strings.Split(strings.TrimLeft(whole, "+-"), ",")
	for i, g := range groups {
		first := i == 0 && (len(groups) == 1 || len(g) >= 1 && len(g) <= 3)
		if !first && len(g) != 3 || strings.Trim(g, "0123456789") != "" {
			return 0, strconv.ErrSyntax
		}
	}
	return strconv.ParseFloat(strings.ReplaceAll(s, ",", "")+"e"+strconv.Itoa(exp), 64)
}

// parseAs reads a quantity of one base unit.
func parseAs(s, base, what string) (float64, error) {
	v, got, err := Parse(s)
	if err == nil && got != base {
		return 0, fmt.Errorf("reading %q: not %s", s, what)
	}
	return v, err
}

// ParseDuration reads a duration such as "300ms", "1.5 s" or "1m30s". A number
// without a unit is an error.
func ParseDuration(s string) (time.Duration, error) {
	v, err := parseAs(s, Nanoseconds, `a duration, such as "300ms"`)
	if err == nil && math.Abs(v) > math.MaxInt64/2 {
		return 0, fmt.Errorf("reading %q: out of range", s)
	}
	return time.Duration(math.Round(v)), err
}

// ParseBytes reads a size in bytes such as "64KiB", "8.2 MB" or "512"; kB, MB
// are decimal, KiB, MiB binary.
func ParseBytes(s string) (int64, error) {
	v, base, err := Parse(s)
	switch {
	case err != nil:
		return 0, err
	case base != Bytes && base != Count:
		return 0, fmt.Errorf(`reading %q: not a size, such as "64KiB"`, s)
	case v < 0 || v > math.MaxInt64/2:
		return 0, fmt.Errorf("reading %q: out of range", s)
	}
	return int64(math.Round(v)), nil
}

// ParseRate reads a number a second such as "10k/s", "1,000/s" or "500"; it is
// at least 0.
func ParseRate(s string) (perSecond float64, err error) {
	v, base, err := Parse(s)
	switch {
	case err != nil:
		return 0, err
	case base != PerSecond && base != Count:
		return 0, fmt.Errorf(`reading %q: not a rate, such as "10k/s"`, s)
	case v < 0:
		return 0, fmt.Errorf("reading %q: a rate cannot be negative", s)
	}
	return v, nil
}

// ParseShare reads a share such as "50%" as 0.5. Shares beyond 100 % are read
// as they are.
func ParseShare(s string) (float64, error) {
	return parseAs(s, Share, `a share, such as "50%"`)
}

// ParseQuantile reads the display name of a quantile, "p50", "p99.9", "max" or
// "min", as q in [0,1].
func ParseQuantile(s string) (q float64, err error) {
	switch s {
	case "min":
		return 0, nil
	case "max":
		return 1, nil
	case "median":
		return 0.5, nil
	}
	digits, named := strings.CutPrefix(s, "p")
	q, err = parseNumber(digits, -2)
	if !named || err != nil || math.Signbit(q) || q > 1 {
		return 0, fmt.Errorf(`reading %q: not a quantile, such as "p99.9", "min" or "max"`, s)
	}
	return q, nil
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
