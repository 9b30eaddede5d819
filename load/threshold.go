package load

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// ErrInconclusive reports that a result holds too little to judge a threshold.
var ErrInconclusive = errors.New("too few requests to judge")

// Threshold is a comparison of one figure of a Result with a bound, such as
// p99<50ms. It is a value and safe for concurrent use.
type Threshold struct {
	text     string
	measure  string  // max, mean, errors, rate, status; "" = quantile
	class    int     // of status: 4 is 4xx
	quantile float64 // in (0, 1)
	bound    bound.Bound
}

// ParseThreshold reads a comparison: a measure, an operator (<, <=, >, >=) and a bound.
//
//	p50 … p99.999, max, mean   response time          p99<50ms
//	errors                     share of the requests   errors>0.1%
//	rate                       answers a second        rate<1000
//	status_1xx to status_5xx   share of the requests   status_4xx>0
//
// Requests without a whole answer count as slower than any bound in p…, max
// and mean. Errors are those of [Result.Errors]. Package bound reads the comparison, and
// package unit its units; a rate may be a plain number, and a share one from 0 to 1.
func ParseThreshold(s string) (Threshold, error) {
	c, err := bound.Parse(s)
	if err != nil {
		return Threshold{}, fmt.Errorf("threshold %q: %w", s, err)
	}
	t := Threshold{text: strings.Join(strings.Fields(s), "")}
	base := unit.Nanoseconds
	switch c.Measure {
	case "max", "mean":
		t.measure = c.Measure
	case "errors":
		t.measure, base = c.Measure, unit.Share
	case "rate":
		t.measure, base = c.Measure, unit.PerSecond
	case "status_1xx", "status_2xx", "status_3xx", "status_4xx", "status_5xx":
		t.measure, t.class, base = "status", int(c.Measure[len("status_")]-'0'), unit.Share
	default:
		if t.quantile, err = parseQuantile(c.Measure); err != nil {
			return Threshold{}, fmt.Errorf("threshold %q: %w", s, err)
		}
	}
	if t.bound, err = c.In(base); err != nil {
		return Threshold{}, fmt.Errorf("threshold %q: %s: %w", s, c.Measure, err)
	}
	return t, nil
}

// parseQuantile reads p50 to p99.999.
func parseQuantile(name string) (float64, error) {
	digits, ok := strings.CutPrefix(name, "p")
	percent, base, err := unit.Parse(digits)
	if !ok || err != nil || base != unit.Count {
		return 0, fmt.Errorf("%q is not a measure; take p50, p99, p99.9 …, max, mean, errors, rate or status_4xx", name)
	}
	if percent <= 0 || percent > 99.999 {
		return 0, fmt.Errorf("quantile %q is outside p0 to p99.999", name)
	}
	return percent / 100, nil
}

// String is the threshold as it was written, without spaces.
func (t Threshold) String() string { return t.text }

// Requests is how many requests a result needs for t to be judged: of a quantile
// the number that [hist.Needed] returns.
func (t Threshold) Requests() uint64 {
	if t.measure != "" {
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
	if math.IsInf(v, 1) {
		return t.bound.Holds(v), "no answer", nil
	}
	return t.bound.Holds(v), unit.Format(v, t.bound.Unit), nil
}

// BoundsTime reports whether t is an upper bound of response times, which what is fast holds.
func (t Threshold) BoundsTime() bool { return t.bound.Unit == unit.Nanoseconds && t.bound.Upper() }

// failsOnTime reports whether t would not hold had every request of r begun when
// intended: by the service times and what failed, which contain no lateness. The rate
// of answers does not show that.
func (t Threshold) failsOnTime(r *Result) bool {
	if t.measure == "rate" {
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
	case "errors":
		return float64(r.Errors()) / float64(c.Scheduled)
	case "rate":
		return answerRate(r)
	case "status":
		return float64(c.Status[t.class]) / float64(c.Scheduled)
	}
	unanswered := c.Failed() + c.Dropped
	switch {
	case t.measure == "max":
		return quantileOfAll(r.Response, 1, unanswered)
	case t.measure == "":
		return quantileOfAll(r.Response, t.quantile, unanswered)
	case unanswered > 0:
		return math.Inf(1)
	}
	return r.Response.Mean()
}

// answerRate is the whole answers a second.
func answerRate(r *Result) float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Counts.Answered()) / r.Elapsed.Seconds()
}

// quantileOfAll is the quantile q of h and of unanswered requests that count
// as slower than all of h. Without these a server would look faster by
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
