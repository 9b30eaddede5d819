package load

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/stats/hist"
)

// ErrInconclusive tells that a result holds too little to judge a threshold.
var ErrInconclusive = errors.New("too few requests to judge")

// Threshold is a comparison of one figure of a Result with a bound, such as
// p99<50ms. It is a value and safe for concurrent use.
type Threshold struct {
	text     string
	measure  measure
	quantile float64 // of measureQuantile
	less     bool
	bound    float64 // ns, share, or requests a second
}

// measure is what a threshold looks at.
type measure int

const (
	measureQuantile measure = iota
	measureMax
	measureMean
	measureErrors
	measureRate
)

// ParseThreshold reads a comparison: a measure, < or >, and a bound.
//
//	p50 … p99.999, max, mean   response time          p99<50ms
//	errors                     share of the requests   errors>0.1%
//	rate                       answers a second        rate<1000
//
// Requests without a whole answer count as slower than any bound in p…, max
// and mean. Errors are requests without a whole answer, the dropped ones, and
// the answers that failed verification or are 5xx, whichever is more, since an
// answer can be both. Bounds are durations as Go writes them; percentages, or
// shares from 0 to 1; and numbers a second, with k or M for thousands and
// millions.
func ParseThreshold(s string) (Threshold, error) {
	t := Threshold{text: strings.Join(strings.Fields(s), "")}
	i := strings.IndexAny(t.text, "<>")
	if i < 0 {
		return Threshold{}, fmt.Errorf("threshold %q: no comparison: want one such as p99<50ms", s)
	}
	t.less = t.text[i] == '<'
	if err := t.setMeasure(t.text[:i]); err != nil {
		return Threshold{}, fmt.Errorf("threshold %q: %w", s, err)
	}
	if err := t.setBound(t.text[i+1:]); err != nil {
		return Threshold{}, fmt.Errorf("threshold %q: %w", s, err)
	}
	return t, nil
}

func (t *Threshold) setMeasure(name string) error {
	switch name {
	case "max":
		t.measure = measureMax
	case "mean":
		t.measure = measureMean
	case "errors":
		t.measure = measureErrors
	case "rate":
		t.measure = measureRate
	default:
		digits, ok := strings.CutPrefix(name, "p")
		percent, err := parseDecimal(digits)
		if !ok || err != nil {
			return fmt.Errorf("%q is no measure: want p50, p99, p99.9 …, max, mean, errors or rate", name)
		}
		if percent <= 0 || percent > 99.999 {
			return fmt.Errorf("quantile %q is outside p0 to p99.999", name)
		}
		t.quantile = percent / 100
	}
	return nil
}

func (t *Threshold) setBound(s string) error {
	var err error
	switch t.measure {
	case measureErrors:
		number, percent := strings.CutSuffix(s, "%")
		t.bound, err = parseDecimal(number)
		if percent {
			t.bound /= 100
		}
		if err != nil || t.bound > 1 {
			return fmt.Errorf("bound %q is no share: want one such as 0.1%%", s)
		}
	case measureRate:
		number, factor := strings.TrimSuffix(s, "/s"), 1.0
		if n, ok := strings.CutSuffix(number, "k"); ok {
			number, factor = n, 1e3
		} else if n, ok := strings.CutSuffix(number, "M"); ok {
			number, factor = n, 1e6
		}
		t.bound, err = parseDecimal(number)
		t.bound *= factor
		if err != nil {
			return fmt.Errorf("bound %q is no rate: want one such as 1000/s", s)
		}
	default:
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return fmt.Errorf("bound %q is no duration: want one such as 50ms", s)
		}
		t.bound = float64(d)
	}
	return nil
}

// parseDecimal reads a plain decimal number: no sign, exponent, hex, Inf or NaN.
func parseDecimal(s string) (float64, error) {
	if strings.Trim(s, "0123456789.") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// String is the threshold as it was written, without spaces.
func (t Threshold) String() string { return t.text }

// Requests is how many requests a result needs for t to be judged: of a quantile
// those that [hist.Needed] tells.
func (t Threshold) Requests() uint64 {
	if t.measure != measureQuantile {
		return 1
	}
	return hist.Needed(t.quantile)
}

// Holds reports whether the comparison, as written, is true of r, and the
// value it looked at. The error wraps ErrInconclusive when r holds fewer than
// Requests requests.
func (t Threshold) Holds(r *Result) (holds bool, value string, err error) {
	if have := r.Counts.Scheduled; have < t.Requests() {
		return false, "", fmt.Errorf("judging %s by %d of %d requests: %w", t, have, t.Requests(), ErrInconclusive)
	}
	v := t.value(r)
	if t.less {
		return v < t.bound, t.format(v), nil
	}
	return v > t.bound, t.format(v), nil
}

// failsOnTime reports whether t would not hold had every request of r begun when
// intended: by the service times and what failed, in which no lateness is. How many
// were answered a second does not tell.
func (t Threshold) failsOnTime(r *Result) bool {
	if t.measure == measureRate {
		return false
	}
	onTime := *r
	onTime.Response, onTime.Counts.Dropped = r.Service, 0
	holds, _, err := t.Holds(&onTime)
	return err == nil && !holds
}

// value is t's measure of r; times are +Inf where the answers that never came
// decide.
func (t Threshold) value(r *Result) float64 {
	c := r.Counts
	switch t.measure {
	case measureErrors:
		return float64(c.Failed()+c.Dropped+max(c.Unverified, c.Status[5])) / float64(c.Scheduled)
	case measureRate:
		return answerRate(r)
	}
	unanswered := c.Failed() + c.Dropped
	switch t.measure {
	case measureQuantile:
		return quantileOfAll(r.Response, t.quantile, unanswered)
	case measureMax:
		return quantileOfAll(r.Response, 1, unanswered)
	default:
		if unanswered > 0 {
			return math.Inf(1)
		}
		return r.Response.Mean()
	}
}

// answerRate is the whole answers a second.
func answerRate(r *Result) float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Counts.Answered()) / r.Elapsed.Seconds()
}

// quantileOfAll is the quantile q of h and of unanswered requests that count
// as slower than all of h. Leaving these out would let a server look faster by
// not answering.
func quantileOfAll(h *hist.Hist, q float64, unanswered uint64) float64 {
	n := h.Count()
	if n == 0 {
		return math.Inf(1)
	}
	among := q * float64(n+unanswered) / float64(n)
	if among > 1 {
		return math.Inf(1)
	}
	return float64(h.Quantile(among))
}

func (t Threshold) format(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "no answer"
	case t.measure == measureErrors:
		return strconv.FormatFloat(v*100, 'g', 3, 64) + "%"
	case t.measure == measureRate:
		return strconv.FormatFloat(v, 'f', 1, 64) + "/s"
	default:
		return roundDuration(time.Duration(v)).String()
	}
}

// roundDuration keeps about three significant digits of d.
func roundDuration(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
