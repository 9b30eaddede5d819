package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// leastPairs is the number of pairs of windows below which no interval of level
// 0.95 is bounded.
const leastPairs = 6

// estimate is a value with its 95 % interval; in JSON, an end that is not bounded
// is null.
type estimate struct{ Value, Low, High float64 }

// MarshalJSON implements json.Marshaler: JSON has no infinite numbers.
func (e estimate) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Value float64 `json:"value"`
		Low   bounded `json:"low"`
		High  bounded `json:"high"`
	}{e.Value, bounded(e.Low), bounded(e.High)})
}

// undecided reports whether it is not told apart from 0.
func (e estimate) undecided() bool { return e.Low <= 0 && e.High >= 0 }

// times multiplies two estimates that are independent of each other: on either
// side, what their intervals add to the product comes together as errors do.
func (e estimate) times(f estimate) estimate {
	v := e.Value * f.Value
	return estimate{v,
		v - math.Hypot(f.Value*(e.Value-e.Low), e.Value*(f.Value-f.Low)),
		v + math.Hypot(f.Value*(e.High-e.Value), e.Value*(f.High-f.Value))}
}

// centre estimates the centre of paired differences.
func centre(d []float64) estimate {
	in := stats.SignedRankInterval(d, 0.05)
	return estimate{stats.HodgesLehmann(d), in.Lo, in.Hi}
}

// whatif is what slowing one owner down did to whole requests. Its JSON is the
// form that `tare whatif --json` prints.
type whatif struct {
	PID      int       `json:"pid"`
	Owner    string    `json:"owner"`
	Where    string    `json:"where,omitempty"` // file:line
	Slow     float64   `json:"slow_ns"`         // asked for, a call
	Pairs    int       `json:"pairs"`
	Requests float64   `json:"requests"`
	Calls    float64   `json:"calls"`         // of the owner, a request
	Taken    float64   `json:"taken_ns"`      // by the slow-down, a request
	Off      level     `json:"off"`           // medians of the windows without
	On       level     `json:"on"`            // medians of the windows with
	Effect   estimate  `json:"effect_ns"`     // CPU a request, on less off
	PerTaken estimate  `json:"effect_per_ns"` // CPU a request for each ns taken
	Rate     estimate  `json:"rate_change"`   // requests a second, on against off, -0.1 is a tenth fewer
	Own      ownTime   `json:"own"`
	Saved    *estimate `json:"saved_ns,omitempty"` // that removing the owner would save, a request; nil: not known
	Layers   []layer   `json:"layers,omitempty"`   // who spent the difference; none: not looked at
	Warnings []string  `json:"warnings,omitempty"`

	cut error // why there are fewer pairs than asked for; nil: there are all
}

// level is what requests were like in one kind of window.
type level struct {
	CPU  float64 `json:"cpu_ns"` // a request
	Rate float64 `json:"requests_per_second"`
}

// ownTime is what the owner itself takes.
type ownTime struct {
	CPU    float64 `json:"cpu_ns"` // a request, by sampling; 0: not sampled
	Margin float64 `json:"cpu_margin_ns"`
	P50    float64 `json:"p50_ns"` // of one call, by the clock; 0: not watched
	Mean   float64 `json:"mean_ns"`
	P99    float64 `json:"p99_ns"`
}

// leastRequests is how many requests a window needs to tell what one costs.
const leastRequests = 20

// newWhatif compares windows pair by pair. It needs a number of pairs.
func newWhatif(pairs []pair, least int) (*whatif, error) {
	res := &whatif{}
	var effect, per, rate, cpuOff, cpuOn, rateOff, rateOn []float64
	var calls, on, taken float64
	var met, reached uint64
	for _, p := range pairs {
		met += p.off.Requests + p.on.Requests
		reached += p.off.Calls + p.on.Calls
		if min(p.off.Requests, p.on.Requests) < leastRequests || p.on.Taken == 0 {
			continue
		}
		off, with := levelOf(p.off), levelOf(p.on)
		d := with.CPU - off.CPU
		effect = append(effect, d)
		per = append(per, d*float64(p.on.Requests)/float64(p.on.Taken))
		rate = append(rate, math.Log(with.Rate/off.Rate))
		cpuOff, cpuOn = append(cpuOff, off.CPU), append(cpuOn, with.CPU)
		rateOff, rateOn = append(rateOff, off.Rate), append(rateOn, with.Rate)
		on += float64(p.on.Requests)
		calls += float64(p.on.Calls)
		taken += float64(p.on.Taken)
		res.Requests += float64(p.on.Requests + p.off.Requests)
	}
	if len(effect) < least {
		return nil, fmt.Errorf("only %d of %d pairs of windows had %d requests each that called it (%d requests and %d calls in all): load the service, or make --window longer",
			len(effect), len(pairs), leastRequests, met, reached)
	}
	if idle := len(pairs) - len(effect); idle > 0 {
		res.Warnings = append(res.Warnings, fmt.Sprintf("%d of %d pairs of windows are left out: fewer than %d requests", idle, len(pairs), leastRequests))
	}
	res.Pairs, res.Calls, res.Taken = len(effect), calls/on, taken/on
	res.Off = level{stats.Median(cpuOff), stats.Median(rateOff)}
	res.On = level{stats.Median(cpuOn), stats.Median(rateOn)}
	res.Effect, res.PerTaken = centre(effect), centre(per)
	r := centre(rate)
	res.Rate = estimate{math.Expm1(r.Value), math.Expm1(r.Low), math.Expm1(r.High)}
	return res, nil
}

func levelOf(r probe.Reading) level {
	return level{float64(r.CPU) / float64(r.Requests), float64(r.Requests) / r.Took.Seconds()}
}

// own adds what the owner itself takes, by sampling or else by the clock, and
// with it what removing the owner would save.
func (w *whatif) own(m *probe.Measurement, err error, o cost.Owner) {
	if err == nil {
		for _, wall := range m.Walls {
			if wall.Owner == o && wall.Seen > 0 {
				w.Own.P50, w.Own.Mean, w.Own.P99 = wall.P50, wall.Self/wall.Seen, wall.P99
			}
		}
		w.Warnings = append(w.Warnings, cli.Texts(m.Warnings)...)
	} else {
		w.Warnings = append(w.Warnings, "its own time by the clock is not known: "+err.Error())
	}
	own := w.Own.aRequest(w.Calls)
	if saved := own.times(w.PerTaken); own.Value > 0 && !saved.undecided() {
		w.Saved = &saved
	}
}

// aRequest is what the owner takes of a request: CPU by sampling, or else what its
// calls take by the clock. There the median is nearest, since what interrupts a
// call is none of the owner's doing; but the mean has its longer calls.
func (o *ownTime) aRequest(calls float64) estimate {
	if o.CPU > 0 {
		return estimate{o.CPU, o.CPU - o.Margin, o.CPU + o.Margin}
	}
	return estimate{o.P50 * calls, min(o.P50, o.Mean) * calls, max(o.P50, o.Mean) * calls}
}

// sampled adds who spent the difference.
func (w *whatif) sampled(off, on *cost.Bill, err error) {
	if err != nil {
		w.Warnings = append(w.Warnings, err.Error())
		return
	}
	w.Layers = compareLayers(off, on)
	for _, it := range off.Items {
		if it.Owner == w.Owner && it.Where == w.Where {
			w.Own.CPU, w.Own.Margin = it.Self, it.Margin
		}
	}
}

// text shows what a microsecond costs, and what that comes from.
func (w *whatif) text(t *cli.Terminal) error {
	out := bufio.NewWriter(t.Out)
	ns := func(v float64) string { return unit.Format(v, unit.Nanoseconds) }
	fmt.Fprintf(out, "what if %s", report.Printable(w.Owner))
	if w.Where != "" {
		fmt.Fprintf(out, " (%s)", report.Printable(w.Where))
	}
	fmt.Fprintf(out, " took %s longer? process %d, %d pairs of windows, %s requests\n\n", ns(w.Slow), w.PID, w.Pairs, unit.Number(w.Requests))
	fmt.Fprintf(out, "  %-22s %12s %12s   %s\n", "", "as it is", "slowed down", "effect, 95 % interval")
	fmt.Fprintf(out, "  %-22s %12s %12s   %s, %s\n", "CPU per request", ns(w.Off.CPU), ns(w.On.CPU), unit.Signed(w.Effect.Value, unit.Nanoseconds), w.Effect.between(ns))
	fmt.Fprintf(out, "  %-22s %12s %12s   %s, %s\n\n", "requests a second", unit.Number(w.Off.Rate), unit.Number(w.On.Rate), unit.Change(w.Rate.Value), w.Rate.between(unit.Change))
	fmt.Fprintf(out, "It was called %s times a request, and slowed down by %s a request in all.\n", unit.Number(w.Calls), ns(w.Taken))
	plain := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	fmt.Fprintf(out, "1 µs in it costs a request %s µs of CPU, %s.\n", plain(w.PerTaken.Value), w.PerTaken.between(plain))
	if w.PerTaken.undecided() {
		fmt.Fprintf(out, "That is not told apart from chance: a longer --for or a quieter machine narrows it.\n")
	}
	w.printOwn(out)
	if w.Layers != nil {
		printLayers(out, w.Layers)
	}
	for _, warning := range w.Warnings {
		fmt.Fprintf(out, "warning: %s\n", report.Printable(warning))
	}
	return out.Flush()
}

// printOwn shows what the owner itself takes, and what removing it would save.
func (w *whatif) printOwn(out io.Writer) {
	ns := func(v float64) string { return unit.Format(v, unit.Nanoseconds) }
	switch {
	case w.Own.CPU > 0:
		fmt.Fprintf(out, "It takes %s ± %s of CPU a request itself", ns(w.Own.CPU), ns(w.Own.Margin))
	case w.Own.P50 > 0:
		fmt.Fprintf(out, "It takes %s of a request itself by the clock, median (mean %s),\nwaiting included", ns(w.Own.P50*w.Calls), ns(w.Own.Mean*w.Calls))
	default:
		return
	}
	if w.Saved != nil {
		fmt.Fprintf(out, ": without it one would cost about\n%s less, %s.\n", ns(w.Saved.Value), w.Saved.between(ns))
	} else {
		fmt.Fprintf(out, ".\nWhat removing it would save cannot be told.\n")
	}
	if w.Own.P50 > 0 {
		fmt.Fprintf(out, "A call by the clock: p50 %s, p99 %s.\n", ns(w.Own.P50), ns(w.Own.P99))
	}
}

func (e estimate) between(show func(float64) string) string {
	if math.IsInf(e.Low, 0) || math.IsInf(e.High, 0) {
		return "interval not bounded"
	}
	return show(e.Low) + " to " + show(e.High)
}
