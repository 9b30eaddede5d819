package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/load/pace"
)

// SearchOptions say how FindMax searches. The zero value of every field but
// Threshold works.
type SearchOptions struct {
	// Threshold is what a rate must hold: an upper bound of a response time or of
	// errors, such as p99<50ms; see ParseThreshold.
	Threshold string
	// From is the lowest rate tried, in requests a second; 0 means 10, or as
	// many as give Threshold enough requests in one Step.
	From float64
	// To is the highest rate tried; 0 means ten million.
	To float64
	// Step is how long each rate is measured; 0 means 5 s. A probe lasts
	// longer where its rate needs that to give Threshold enough requests.
	Step time.Duration
	// Report, if set, is called after each probe.
	Report func(Probe)
}

// Probe is one rate tried.
type Probe struct {
	Rate    float64 `json:"rate"`    // offered, requests a second
	Held    bool    `json:"held"`    // the threshold held, and the rate was reached
	Confirm bool    `json:"confirm"` // the probe repeats a rate that had held
	Value   string  `json:"value"`   // what the threshold looked at, formatted
	Reason  string  `json:"reason"`  // why it did not hold; "" when it did
	Bound   bool    `json:"bound"`   // the generator, not the target, may be why it did not hold
	Result  *Result `json:"result"`
}

// SearchResult is what FindMax found.
type SearchResult struct {
	Threshold string   `json:"threshold"`
	Rate      float64  `json:"rate"`      // highest that held, requests a second; 0 when none did, or none again
	Confirmed bool     `json:"confirmed"` // held again in a fresh probe after the search
	Ended     string   `json:"ended"`     // "" or why the search ended early, such as "interrupted"
	Probes    []Probe  `json:"probes"`    // in order
	Warnings  Warnings `json:"warnings"`  // caveats of this result, to be shown with it
}

const (
	// precision is the ratio of the lowest rate that fails to the highest that
	// holds at which the search is done: finer steps drown in the noise
	// between two probes of one rate.
	precision = 1.05
	// maxProbes bounds a search: doubling from 10/s to 10 M/s takes 20 probes,
	// bisecting a factor of two takes 4.
	maxProbes = 40
	// reached is the least share of the offered rate that must be answered.
	reached = 0.98
)

// FindMax finds the highest constant rate at which a threshold holds: it
// doubles the rate until it does not hold, bisects, and confirms the best in a
// fresh probe. Each probe is a Run of o at that rate; o's Schedule, Duration
// and Requests are not used. A probe in which less than 98 % of the
// offered rate is answered while requests begin, or within a typical response time
// after, does not hold, whatever the threshold says.
//
// When ctx is cancelled FindMax returns what was found so far, without error.
// An error means that a probe could not be run at all, or that the first got
// no answer whatever; the result then still holds the probes so far.
func FindMax(ctx context.Context, o Options, so SearchOptions) (*SearchResult, error) {
	return findMax(ctx, o, so, Run)
}

// runner is Run, or what stands for it in tests.
type runner func(context.Context, Options) (*Result, error)

func findMax(ctx context.Context, o Options, so SearchOptions, run runner) (*SearchResult, error) {
	s, err := newSearch(o, so)
	if err != nil {
		return nil, err
	}
	s.measure = run
	err = s.run(ctx)
	if errors.Is(err, errSearchEnded) {
		err = nil
	}
	return s.result, err
}

// errSearchEnded unwinds a search that result.Ended explains.
var errSearchEnded = errors.New("search ended")

type search struct {
	base      Options
	so        SearchOptions
	threshold Threshold
	measure   runner
	result    *SearchResult
}

func newSearch(o Options, so SearchOptions) (*search, error) {
	t, err := ParseThreshold(so.Threshold)
	if err != nil {
		return nil, err
	}
	if !t.bound.Upper() || t.measure == "rate" {
		return nil, fmt.Errorf("threshold %q does not end as the rate grows: want an upper bound of a response time or of errors, such as p99<50ms", so.Threshold)
	}
	if so.Step == 0 {
		so.Step = 5 * time.Second
	}
	if so.Step < 0 {
		return nil, fmt.Errorf("checking search: step %v is negative", so.Step)
	}
	if so.From == 0 {
		so.From = max(10, math.Ceil(float64(t.Requests())/so.Step.Seconds()))
	}
	if so.To == 0 {
		so.To = max(1e7, so.From)
	}
	if !(so.From > 0 && so.From <= so.To) || math.IsInf(so.To, 1) {
		return nil, fmt.Errorf("checking search: rates from %g to %g are no range above 0", so.From, so.To)
	}
	return &search{base: o, so: so, threshold: t, result: &SearchResult{Threshold: t.String(), Probes: []Probe{}}}, nil
}

func (s *search) run(ctx context.Context) error {
	low, high, err := s.double(ctx)
	if err != nil {
		return err
	}
	if low == 0 {
		says := "%s does not hold at %g/s, the lowest rate tried"
		if s.result.Probes[0].Bound {
			says = "whether %s holds at %g/s, the lowest rate tried, is not known: the generator was the limit"
		}
		s.result.Warnings = append(s.result.Warnings, fmt.Errorf(says, s.threshold, s.so.From))
		return nil
	}
	if low == s.so.To {
		s.result.Warnings = append(s.result.Warnings, fmt.Errorf(
			"%s holds at %g/s, the highest rate tried: the limit lies above", s.threshold, s.so.To))
	}
	for high/low > precision {
		mid := math.Sqrt(low * high)
		held, err := s.probe(ctx, mid, false)
		if err != nil {
			return err
		}
		if held {
			low, s.result.Rate = mid, mid
		} else {
			high = mid
		}
	}
	return s.confirm(ctx, low)
}

// double raises the rate by factors of two. low is the highest that held, 0
// for none; high the one that did not, or low when To held.
func (s *search) double(ctx context.Context) (low, high float64, err error) {
	for rate := s.so.From; ; rate = min(rate*2, s.so.To) {
		held, err := s.probe(ctx, rate, false)
		if err != nil {
			return 0, 0, err
		}
		if !held {
			return low, rate, nil
		}
		low, s.result.Rate = rate, rate
		if rate == s.so.To {
			return low, low, nil
		}
	}
}

// confirm asks the best rate to hold once more, and steps down from it until
// one does: the best of many noisy probes is likely a lucky one.
func (s *search) confirm(ctx context.Context, rate float64) error {
	for ; rate >= s.so.From; rate /= precision {
		held, err := s.probe(ctx, rate, true)
		if err != nil {
			return err
		}
		if held {
			s.result.Rate, s.result.Confirmed = rate, true
			return nil
		}
		s.result.Rate = 0
	}
	s.result.Warnings = append(s.result.Warnings, fmt.Errorf(
		"no rate from %g/s held %s a second time: the machine or the target is too unsteady", s.so.From, s.threshold))
	return nil
}

// probe measures one rate.
func (s *search) probe(ctx context.Context, rate float64, confirm bool) (bool, error) {
	if ctx.Err() != nil {
		return false, s.end("interrupted")
	}
	if len(s.result.Probes) == maxProbes {
		return false, s.end(fmt.Sprintf("no answer after %d probes", maxProbes))
	}
	o := s.base
	o.Schedule, o.Requests = pace.Constant(rate), 0
	enough := time.Duration(1.1 * float64(s.threshold.Requests()) / rate * float64(time.Second))
	o.Duration = max(s.so.Step, enough)
	r, err := s.measure(ctx, o)
	if r == nil {
		return false, fmt.Errorf("probing %g/s: %w", rate, err)
	}
	if ctx.Err() != nil {
		return false, s.end("interrupted")
	}
	p := s.judge(rate, float64(r.InTime)/o.Duration.Seconds(), r, err)
	p.Confirm = confirm
	s.result.Probes = append(s.result.Probes, p)
	if s.so.Report != nil {
		s.so.Report(p)
	}
	if err != nil && len(s.result.Probes) == 1 {
		return false, fmt.Errorf("probing %g/s: %w", rate, err)
	}
	return p.Held, nil
}

func (s *search) end(why string) error {
	s.result.Ended = why
	return errSearchEnded
}

// judge decides whether rate held in r, where got were answered in time, a second.
func (s *search) judge(rate, got float64, r *Result, runErr error) Probe {
	p := Probe{Rate: rate, Result: r}
	holds, value, err := s.threshold.Holds(r)
	p.Value = value
	bound := r.Bound && (r.Busy() > busyShare || !s.threshold.failsOnTime(r))
	switch {
	case runErr != nil:
		p.Reason = runErr.Error()
	case err != nil:
		p.Reason = err.Error()
	case got < reached*rate && bound && mayMiss(r, rate):
		p.Bound, p.Reason = true, fmt.Sprintf("the generator was the bottleneck: %.1f/s answered", got)
	case got < reached*rate:
		p.Reason = fmt.Sprintf("the rate was not reached: %.1f/s answered", got)
	case !holds && bound:
		p.Bound, p.Reason = true, "threshold not held, but the generator was late"
	case !holds:
		p.Reason = "threshold not held"
	default:
		p.Held = true
	}
	return p
}

// mayMiss reports whether the generator may be why r missed rate: it was busy, or so
// late at the end that what it had yet to begin is more than may be missing.
func mayMiss(r *Result, rate float64) bool {
	missing := (1 - reached) * float64(r.Counts.Scheduled)
	return r.Busy() > busyShare || rate*float64(r.Late.Max())/1e9 > missing
}
