package whatif

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/stats"
)

// leastPairs is the number of pairs of windows below which no interval of level
// 0.95 is bounded.
const leastPairs = 6

// leastRequests is how many requests a window needs for a CPU time per request.
const leastRequests = 20

// Result is what slowing one owner down did to whole requests. Its JSON is what
// `tare whatif --json` prints.
type Result struct {
	PID      int       `json:"pid"`
	Owner    string    `json:"owner"`
	Where    string    `json:"where,omitempty"`   // file:line
	Package  string    `json:"package,omitempty"` // import path; the folder of its file where that is not known
	Slow     float64   `json:"slow_ns"`           // asked for, a call
	Pairs    int       `json:"pairs"`
	Requests float64   `json:"requests"`
	Calls    float64   `json:"calls"`         // of the owner, per request
	Taken    float64   `json:"taken_ns"`      // by the probe, per request
	Off      Level     `json:"off"`           // medians of the windows without the probe
	On       Level     `json:"on"`            // medians of the windows with it
	Effect   Estimate  `json:"effect_ns"`     // CPU per request, on minus off
	PerTaken Estimate  `json:"effect_per_ns"` // the ratio: CPU per request for each ns taken
	Rate     Estimate  `json:"rate_change"`   // requests per second, on against off; -0.1 is a tenth fewer
	Own      OwnTime   `json:"own"`
	Saved    *Estimate `json:"saved_ns,omitempty"` // by removing the owner, per request; nil: not known
	Layers   []Layer   `json:"layers,omitempty"`   // who spent the difference; empty: not sampled
	Warnings []string  `json:"warnings,omitempty"`
}

func (r *Result) warn(warnings ...error) {
	for _, w := range warnings {
		r.Warnings = append(r.Warnings, w.Error())
	}
}

// Level is what requests were like in one kind of window.
type Level struct {
	CPU  float64 `json:"cpu_ns"` // per request
	Rate float64 `json:"requests_per_second"`
}

func newLevel(r probe.Reading) Level {
	return Level{float64(r.CPU) / float64(r.Requests), float64(r.Requests) / r.Took.Seconds()}
}

// OwnTime is what the owner itself takes.
type OwnTime struct {
	CPU    float64 `json:"cpu_ns"` // per request, by sampling; 0: not sampled
	Margin float64 `json:"cpu_margin_ns"`
	P50    float64 `json:"p50_ns"` // of one call, by the clock; 0: not timed
	Mean   float64 `json:"mean_ns"`
	P99    float64 `json:"p99_ns"`
}

// perRequest is what the owner takes of a request: CPU by sampling, or else the time
// of its calls. There the median is nearest, since what interrupts a call is not the
// owner's work; but the mean includes its longer calls.
func (o *OwnTime) perRequest(calls float64) Estimate {
	if o.CPU > 0 {
		return Estimate{o.CPU, o.CPU - o.Margin, o.CPU + o.Margin}
	}
	return Estimate{o.P50 * calls, min(o.P50, o.Mean) * calls, max(o.P50, o.Mean) * calls}
}

// Estimate is a value with its 95 % interval. An end that is not bounded is infinite,
// and null in JSON.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// MarshalJSON implements [json.Marshaler]: JSON has no infinite numbers.
func (e Estimate) MarshalJSON() ([]byte, error) {
	finite := func(v float64) *float64 {
		if math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	return json.Marshal(struct {
		Value float64  `json:"value"`
		Low   *float64 `json:"low"`
		High  *float64 `json:"high"`
	}{e.Value, finite(e.Low), finite(e.High)})
}

// Between shows the interval as "low to high".
func (e Estimate) Between(show func(float64) string) string {
	if math.IsInf(e.Low, 0) || math.IsInf(e.High, 0) {
		return "interval not bounded"
	}
	return show(e.Low) + " to " + show(e.High)
}

// Undecided reports whether the interval includes 0.
func (e Estimate) Undecided() bool { return e.Low <= 0 && e.High >= 0 }

// times multiplies two independent estimates: on either side, what their intervals
// add to the product adds up in quadrature.
func (e Estimate) times(f Estimate) Estimate {
	v := e.Value * f.Value
	return Estimate{v,
		v - math.Hypot(f.Value*(e.Value-e.Low), e.Value*(f.Value-f.Low)),
		v + math.Hypot(f.Value*(e.High-e.Value), e.Value*(f.High-f.Value))}
}

// estimateCentre estimates the centre of paired differences.
func estimateCentre(d []float64) Estimate {
	in := stats.SignedRankInterval(d, 0.05)
	return Estimate{stats.HodgesLehmann(d), in.Lo, in.Hi}
}

// newResult compares windows pair by pair. It is an error if fewer than so many pairs
// can be used.
func newResult(pairs []pair, least int) (*Result, error) {
	res := &Result{}
	var effect, per, rate, cpuOff, cpuOn, rateOff, rateOn []float64
	var calls, on, taken float64
	var requests, called uint64
	for _, p := range pairs {
		requests += p.off.Requests + p.on.Requests
		called += p.off.Calls + p.on.Calls
		if min(p.off.Requests, p.on.Requests) < leastRequests || p.on.Taken == 0 {
			continue
		}
		without, with := newLevel(p.off), newLevel(p.on)
		d := with.CPU - without.CPU
		effect = append(effect, d)
		per = append(per, d*float64(p.on.Requests)/float64(p.on.Taken))
		rate = append(rate, math.Log(with.Rate/without.Rate))
		cpuOff, cpuOn = append(cpuOff, without.CPU), append(cpuOn, with.CPU)
		rateOff, rateOn = append(rateOff, without.Rate), append(rateOn, with.Rate)
		on += float64(p.on.Requests)
		calls += float64(p.on.Calls)
		taken += float64(p.on.Taken)
		res.Requests += float64(p.on.Requests + p.off.Requests)
	}
	if len(effect) < least {
		return nil, fmt.Errorf("only %d of %d pairs of windows had %d requests each that called it (%d requests and %d calls in all): load the service, or make the windows longer",
			len(effect), len(pairs), leastRequests, requests, called)
	}
	if idle := len(pairs) - len(effect); idle > 0 {
		res.warn(fmt.Errorf("%d of %d pairs of windows are excluded: fewer than %d requests", idle, len(pairs), leastRequests))
	}
	res.Pairs, res.Calls, res.Taken = len(effect), calls/on, taken/on
	res.Off = Level{stats.Median(cpuOff), stats.Median(rateOff)}
	res.On = Level{stats.Median(cpuOn), stats.Median(rateOn)}
	res.Effect, res.PerTaken = estimateCentre(effect), estimateCentre(per)
	logs := estimateCentre(rate)
	res.Rate = Estimate{math.Expm1(logs.Value), math.Expm1(logs.Low), math.Expm1(logs.High)}
	return res, nil
}

// addLayers adds who spent the difference.
func (r *Result) addLayers(off, on *cost.Bill, err error) {
	if err != nil {
		r.warn(err)
		return
	}
	r.Layers = compareLayers(off, on)
	for _, it := range off.Items {
		if it.Owner == r.Owner && it.Where == r.Where {
			r.Package, r.Own.CPU, r.Own.Margin = it.Package, it.Self, it.Margin
		}
	}
}

// addOwnTime adds what the owner's calls take by the clock, and what removing the
// owner would save.
func (r *Result) addOwnTime(m *probe.Measurement, err error, o cost.Owner) {
	if err == nil {
		for _, wall := range m.Walls {
			if wall.Owner == o && wall.Seen > 0 {
				r.Own.P50, r.Own.Mean, r.Own.P99 = wall.P50, wall.Self/wall.Seen, wall.P99
			}
		}
		r.warn(m.Warnings...)
	} else {
		r.warn(fmt.Errorf("its own time by the clock is not known: %w", err))
	}
	own := r.Own.perRequest(r.Calls)
	if saved := own.times(r.PerTaken); own.Value > 0 && !saved.Undecided() {
		r.Saved = &saved
	}
}
