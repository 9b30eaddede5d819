package script

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/stats/unit"
)

// Think is how long a user thinks: a law of chance. The zero value is not at all.
type Think struct {
	law   law
	a, b  time.Duration // fixed: a; uniform: from a to b; exponential: mean a; log-normal: median a
	sigma float64       // log-normal: deviation of the logarithm
}

type law uint8

const (
	fixed law = iota
	uniform
	exponential
	logNormal
)

// thinkForms describes what ParseThink takes.
const thinkForms = "2s, uniform:1s-3s, exponential:2s (its mean) or lognormal:2s/0.5 (median, deviation of the logarithm)"

// mostThink bounds a time drawn: the tails of the laws have no end.
const mostThink = time.Hour

// ParseThink reads a time to think as a person writes it: 2s, uniform:1s-3s,
// exponential:2s, lognormal:2s/0.5. Times are up to an hour.
func ParseThink(s string) (Think, error) {
	name, arg, named := strings.Cut(s, ":")
	var t Think
	var err error
	switch {
	case !named:
		t.a, err = unit.ParseDuration(s)
	case name == "uniform":
		from, to, _ := strings.Cut(arg, "-")
		t.law = uniform
		if t.a, err = unit.ParseDuration(from); err == nil {
			t.b, err = unit.ParseDuration(to)
		}
		if err == nil && t.b < t.a {
			err = fmt.Errorf("%v is before %v", t.b, t.a)
		}
	case name == "exponential":
		t.law = exponential
		t.a, err = unit.ParseDuration(arg)
	case name == "lognormal":
		median, sigma, _ := strings.Cut(arg, "/")
		t.law = logNormal
		if t.a, err = unit.ParseDuration(median); err == nil {
			t.sigma, err = strconv.ParseFloat(sigma, 64)
		}
		if err == nil && !(t.sigma > 0 && t.sigma <= 4) {
			err = fmt.Errorf("deviation %q is not within 0 and 4", sigma)
		}
	default:
		err = fmt.Errorf("%q is not a law", name)
	}
	if err == nil && max(t.a, t.b) > mostThink {
		err = fmt.Errorf("more than %v", mostThink)
	}
	if err != nil {
		return Think{}, fmt.Errorf("reading think time %q: %w; write it as %s", s, err, thinkForms)
	}
	return t, nil
}

// Draw is one time to think, at most an hour.
func (t Think) Draw(rng *rand.Rand) time.Duration {
	switch t.law {
	case uniform:
		return t.a + time.Duration(rng.Float64()*float64(t.b-t.a))
	case exponential:
		return min(mostThink, time.Duration(min(rng.ExpFloat64(), 1e3)*float64(t.a)))
	case logNormal:
		return time.Duration(min(float64(mostThink), float64(t.a)*math.Exp(t.sigma*rng.NormFloat64())))
	}
	return t.a
}
