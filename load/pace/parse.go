package pace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Forms describes what Parse takes, for messages and help.
const Forms = "1000, 1000/s, poisson:1000, ramp:100-5000/30s or steps:100,200,400/10s"

// Parse reads a schedule as a person writes it: see Forms. Rates are requests a
// second and may end in k or M. seed fixes random arrivals. The schedule
// returned is valid.
func Parse(text string, seed uint64) (*Schedule, error) {
	s, err := parse(text, seed)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("reading rate %q: %w; write it as %s", text, err, Forms)
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
		r, err := parseRate(strings.TrimSuffix(arg, "/s"))
		if err != nil {
			return nil, err
		}
		if kind == "poisson" {
			return Poisson(r, seed), nil
		}
		return Constant(r), nil
	case "ramp":
		rates, over, err := parseRates(arg, "-")
		if err != nil {
			return nil, err
		}
		if len(rates) != 2 {
			return nil, errors.New("a ramp goes from one rate to another")
		}
		return Ramp(rates[0], rates[1], over), nil
	case "steps":
		rates, each, err := parseRates(arg, ",")
		if err != nil {
			return nil, err
		}
		return Steps(each, rates...), nil
	}
	return nil, fmt.Errorf("%q is not a kind of schedule", kind)
}

// parseRates reads rates set apart by sep, a slash and a duration.
func parseRates(text, sep string) ([]float64, time.Duration, error) {
	list, length, ok := strings.Cut(text, "/")
	if !ok {
		return nil, 0, errors.New("the duration is missing")
	}
	d, err := time.ParseDuration(length)
	if err != nil || d <= 0 {
		return nil, 0, fmt.Errorf("%q is not a duration such as 30s", length)
	}
	var rates []float64
	for part := range strings.SplitSeq(list, sep) {
		r, err := parseRate(part)
		if err != nil {
			return nil, 0, err
		}
		rates = append(rates, r)
	}
	return rates, d, nil
}

func parseRate(text string) (float64, error) {
	number, scale := text, 1.0
	if digits, ok := strings.CutSuffix(text, "k"); ok {
		number, scale = digits, 1e3
	} else if digits, ok := strings.CutSuffix(text, "M"); ok {
		number, scale = digits, 1e6
	}
	r, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of requests a second", text)
	}
	return r * scale, nil
}
