package pace

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Forms describes what Parse takes, for messages and help.
const Forms = "1000, 1000/s, poisson:1000, ramp:100-5000/30s or steps:100,200,400/10s"

// Parse reads a schedule as a person writes it: see Forms. seed fixes random
// arrivals. The schedule returned is valid.
func Parse(text string, seed uint64) (*Schedule, error) {
	s, err := parse(text, seed)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("rate %q: %w; forms are %s", text, err, Forms)
	}
	return s, nil
}

func parse(text string, seed uint64) (*Schedule, error) {
	kind, arg, ok := strings.Cut(text, ":")
	if !ok {
		kind, arg = "constant", text
	}
	switch kind {
	case "constant", "poisson":
		r, err := rate(strings.TrimSuffix(arg, "/s"))
		if err != nil {
			return nil, err
		}
		if kind == "poisson" {
			return Poisson(r, seed), nil
		}
		return Constant(r), nil
	case "ramp":
		rates, over, err := within(arg, "-")
		if err != nil {
			return nil, err
		}
		if len(rates) != 2 {
			return nil, fmt.Errorf("a ramp has two rates")
		}
		return Ramp(rates[0], rates[1], over), nil
	case "steps":
		rates, each, err := within(arg, ",")
		if err != nil {
			return nil, err
		}
		return Steps(each, rates...), nil
	}
	return nil, fmt.Errorf("unknown kind %q", kind)
}

// within reads "r<sep>r…/duration".
func within(arg, sep string) ([]float64, time.Duration, error) {
	list, length, ok := strings.Cut(arg, "/")
	if !ok {
		return nil, 0, fmt.Errorf("no duration after a /")
	}
	d, err := time.ParseDuration(length)
	if err != nil || d <= 0 {
		return nil, 0, fmt.Errorf("%q is not a duration such as 30s", length)
	}
	var rates []float64
	for part := range strings.SplitSeq(list, sep) {
		r, err := rate(part)
		if err != nil {
			return nil, 0, err
		}
		rates = append(rates, r)
	}
	return rates, d, nil
}

// rate reads a number with an optional k or M.
func rate(text string) (float64, error) {
	digits, scale := text, 1.0
	switch {
	case strings.HasSuffix(text, "k"):
		digits, scale = text[:len(text)-1], 1e3
	case strings.HasSuffix(text, "M"):
		digits, scale = text[:len(text)-1], 1e6
	}
	r, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of requests a second", text)
	}
	return r * scale, nil
}
