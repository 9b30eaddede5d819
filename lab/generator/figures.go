package generator

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/tarehq/tare/lab/study"
)

// said is what a generator reports.
type said struct {
	requests uint64
	times    map[string]float64 // ns, by metric
	missing  []string           // metrics that were looked for in vain
}

// quantile is a response time that generators report and servers know.
type quantile struct {
	at            float64
	reported, off string // metrics
	expr          func(study.Reports) string
}

func quantiles() []quantile {
	return []quantile{
		{.5, "response_p50", "p50_error", func(r study.Reports) string { return r.P50 }},
		{.9, "response_p90", "p90_error", func(r study.Reports) string { return r.P90 }},
		{.99, "response_p99", "p99_error", func(r study.Reports) string { return r.P99 }},
		{.999, "response_p999", "p999_error", func(r study.Reports) string { return r.P999 }},
		{1, "response_max", "max_error", func(r study.Reports) string { return r.Max }},
	}
}

// figures finds in a generator's output what it reports.
func figures(out []byte, r study.Reports) (said, error) {
	s := said{times: map[string]float64{}}
	text, err := lastMatch(out, r.Requests)
	if err != nil {
		return s, fmt.Errorf("requests: %w", err)
	}
	if s.requests, err = strconv.ParseUint(text, 10, 64); err != nil {
		return s, fmt.Errorf("requests: %q is not a number of requests", text)
	}
	times := []quantile{{reported: "lag_p99", expr: func(r study.Reports) string { return r.LagP99 }}}
	for _, q := range append(times, quantiles()...) {
		expr := q.expr(r)
		if expr == "" {
			continue
		}
		text, err := lastMatch(out, expr)
		if err != nil { // nothing is late in a closed loop, and a tool may not show a p99.9 of few
			s.missing = append(s.missing, q.reported)
			continue
		}
		if s.times[q.reported], err = nanoseconds(text, r.Unit); err != nil {
			return s, fmt.Errorf("%s: %w", q.reported, err)
		}
	}
	return s, nil
}

// lastMatch is the group of the expression's last match.
func lastMatch(out []byte, expr string) (string, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return "", err
	}
	all := re.FindAllSubmatch(out, -1)
	if len(all) == 0 || re.NumSubexp() != 1 {
		return "", fmt.Errorf("%q matches nothing in its output, which ends in %q", expr, out[max(0, len(out)-200):])
	}
	return string(all[len(all)-1][1]), nil
}

// nanoseconds reads a time such as 1.2ms or 0.5 secs; a number without a unit
// is in the given one.
func nanoseconds(text, unit string) (float64, error) {
	number := strings.TrimRightFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsSpace(r) })
	if u := strings.TrimSpace(text[len(number):]); u != "" {
		unit = u
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time", text)
	}
	switch unit {
	case "ns":
		return v, nil
	case "us", "µs":
		return v * 1e3, nil
	case "ms":
		return v * 1e6, nil
	case "s", "sec", "secs", "second", "seconds":
		return v * 1e9, nil
	case "m", "min":
		return v * 60e9, nil
	}
	return 0, fmt.Errorf("%q is a time in no known unit", text)
}
