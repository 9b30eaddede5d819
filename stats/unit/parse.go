package unit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Patterns of what people write, for JSON Schemas.
const (
	Digits = `[0-9]{1,15}(\.[0-9]{1,9})?`
	// Written is what [Parse] takes.
	Written = `(` + single + `|` + WrittenDuration + `)`
	// WrittenDuration is what [ParseDuration] takes.
	WrittenDuration = `([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+`

	single = Digits + ` ?(ns|µs|us|ms|s|m|h|B|KB|MB|GB|KiB|MiB|GiB|[kM]?(/s)?|%)` // of one unit
)

var (
	quantities = regexp.MustCompile(`^` + single + `$`)
	times      = regexp.MustCompile(`^` + WrittenDuration + `$`)
)

// magnitudes are what a quantity may be written in: of times ten to the power of ten
// makes the base unit.
var magnitudes = map[string]struct {
	base string
	of   float64
	ten  int
}{
	"ns": {Nanoseconds, 1, 0}, "µs": {Nanoseconds, 1, 3}, "us": {Nanoseconds, 1, 3}, "ms": {Nanoseconds, 1, 6},
	"s": {Nanoseconds, 1, 9}, "m": {Nanoseconds, 60, 9}, "h": {Nanoseconds, 3600, 9},
	"B": {Bytes, 1, 0}, "KB": {Bytes, 1, 3}, "MB": {Bytes, 1, 6}, "GB": {Bytes, 1, 9},
	"KiB": {Bytes, 1 << 10, 0}, "MiB": {Bytes, 1 << 20, 0}, "GiB": {Bytes, 1 << 30, 0},
	"/s": {PerSecond, 1, 0}, "k/s": {PerSecond, 1, 3}, "M/s": {PerSecond, 1, 6},
	"": {Count, 1, 0}, "k": {Count, 1, 3}, "M": {Count, 1, 6}, "%": {Share, 1, -2},
}

// Parse reads a quantity as people write it, and returns it in its base unit: 159 µs,
// 1m30s, 8.2 MB (10⁶), 124 MiB (2²⁰), 52400/s, 52.4k/s, 12 %, 3.8. It takes no sign
// and no exponent. The least error of a float64 is all that is lost.
func Parse(s string) (value float64, base string, err error) {
	s = strings.ReplaceAll(s, "μ", "µ") // the Greek letter and the micro sign look alike
	if !quantities.MatchString(s) {
		d, err := ParseDuration(s) // 1m30s has two units
		if err != nil && strings.HasPrefix(s, "-") {
			return 0, "", fmt.Errorf("%q is negative: a quantity is 0 or more", s)
		}
		if err != nil {
			return 0, "", fmt.Errorf("%q is not a quantity such as 50 ms, 8 MB, 1000/s, 5 %% or 3.8", s)
		}
		return float64(d), Nanoseconds, nil
	}
	end := strings.LastIndexAny(s, "0123456789") + 1
	m := magnitudes[strings.TrimPrefix(s[end:], " ")]
	// The power goes in before rounding: 8.2 MB are 8200000 B exactly.
	value, err = strconv.ParseFloat(fmt.Sprintf("%se%d", s[:end], m.ten), 64)
	return value * m.of, m.base, err
}

// ParseDuration reads a duration such as 300ms or 1m30s, without a sign.
func ParseDuration(s string) (time.Duration, error) {
	if !times.MatchString(s) {
		return 0, fmt.Errorf("%q is not a duration such as 300ms or 1m30s", s)
	}
	return time.ParseDuration(s)
}

// Describe says in words how quantities of a base unit are written.
func Describe(base string) string {
	switch base {
	case Nanoseconds:
		return "a time (ns, µs, ms, s)"
	case Bytes:
		return "an amount of bytes (B, KB, MB, GB, KiB, MiB, GiB)"
	case PerSecond:
		return "a rate (/s)"
	case Share:
		return "a share (%)"
	}
	return "a plain number"
}
