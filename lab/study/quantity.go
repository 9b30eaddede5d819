package study

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// magnitudes are the units that a quantity may be written in: of times ten to
// the power of ten makes the base unit.
var magnitudes = [...]struct {
	name string
	unit Unit
	of   float64
	ten  int
}{
	{"ns", Nanoseconds, 1, 0}, {"µs", Nanoseconds, 1, 3}, {"us", Nanoseconds, 1, 3},
	{"ms", Nanoseconds, 1, 6}, {"s", Nanoseconds, 1, 9},
	{"B", Bytes, 1, 0}, {"KB", Bytes, 1, 3}, {"MB", Bytes, 1, 6}, {"GB", Bytes, 1, 9},
	{"KiB", Bytes, 1 << 10, 0}, {"MiB", Bytes, 1 << 20, 0}, {"GiB", Bytes, 1 << 30, 0},
	{"/s", PerSecond, 1, 0}, {"%", Share, 1, -2}, {"", Count, 1, 0},
}

const (
	digits = `[0-9]{1,15}(\.[0-9]{1,9})?`

	durationPattern = `^([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$`
	percentPattern  = `^` + digits + ` ?%$`
	ratePattern     = `^` + digits + ` ?(/s|%)$`
	quantityPattern = `^` + digits + ` ?(ns|µs|us|ms|s|B|KB|MB|GB|KiB|MiB|GiB|/s|%)?$`
	boundPattern    = `^(<=|>=) ?` + digits + ` ?(ns|µs|us|ms|s|B|KB|MB|GB|KiB|MiB|GiB|/s|%)?$`
)

var (
	durations  = regexp.MustCompile(durationPattern)
	quantities = regexp.MustCompile(quantityPattern)
)

// quantity is a number in its base unit.
type quantity struct {
	value float64
	unit  Unit
}

func parseQuantity(s string) (quantity, error) {
	s = strings.ReplaceAll(s, "μ", "µ") // the Greek letter and the micro sign look alike
	if !quantities.MatchString(s) {
		return quantity{}, fmt.Errorf("%q is no quantity", s)
	}
	end := strings.LastIndexAny(s, "0123456789") + 1
	name := strings.TrimPrefix(s[end:], " ")
	for _, m := range magnitudes {
		if m.name != name {
			continue
		}
		// The power goes in before rounding: 8.2 MB are 8200000 B exactly.
		n, err := strconv.ParseFloat(fmt.Sprintf("%se%d", s[:end], m.ten), 64)
		if err != nil {
			return quantity{}, fmt.Errorf("reading %q: %w", s, err)
		}
		return quantity{n * m.of, m.unit}, nil
	}
	return quantity{}, fmt.Errorf("%q has no known unit", s)
}

func parseDuration(s string) (time.Duration, error) {
	if !durations.MatchString(s) {
		return 0, fmt.Errorf("%q is no duration", s)
	}
	return time.ParseDuration(s)
}

func parsePercent(s string) (float64, error) {
	q, err := parseQuantity(s)
	if err == nil && q.unit != Share {
		err = fmt.Errorf("%q is no percentage", s)
	}
	return q.value, err
}

func parseRate(s string) (Rate, error) {
	q, err := parseQuantity(s)
	switch {
	case err != nil:
		return Rate{}, err
	case q.unit == PerSecond:
		return Rate{PerSecond: q.value}, nil
	case q.unit == Share:
		return Rate{Share: q.value}, nil
	}
	return Rate{}, fmt.Errorf("%q is no rate", s)
}
