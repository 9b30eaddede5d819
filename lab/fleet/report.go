package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// Report is what a load by agents came to.
type Report struct {
	Result *load.Result  `json:"-"`       // of the whole
	Agents []Share       `json:"agents"`  // in the order of Options.Agents
	Skew   time.Duration `json:"skew_ns"` // between the starts of the first agent's measured part and the last's
	Unfit  []string      `json:"unfit"`   // why the whole cannot be trusted: agents that were late or busy
}

// Share is what one agent measured.
type Share struct {
	Name   string        `json:"name"`
	Start  time.Duration `json:"start_ns"`         // of its measured part, after it was due
	RTT    time.Duration `json:"rtt_ns"`           // of the exchange by which clocks were compared: Start is off by half of it at most
	Unlike string        `json:"unlike,omitempty"` // how its answers differ from those of the other agents; "": not noticeably
	Result *load.Result  `json:"result"`
}

// report puts the agents' results together.
func (r *run) report(ctx context.Context, all []gathered) (*Report, error) {
	rep := &Report{Unfit: []string{}}
	series := make([][]load.Slice, len(all))
	due := r.fleet.base.Add(time.Duration(r.measure))
	for k, g := range all {
		m, a := r.fleet.members[k], &r.merged.agents[k]
		if n := g.result.Response.Count(); n != a.values {
			return nil, r.lost(m, fmt.Errorf("its parts have %d answers and its result %d", a.values, n))
		}
		g.result.Series, series[k] = a.series, a.series
		rep.Agents = append(rep.Agents, Share{Name: m.name, Start: g.result.Started.Sub(due), RTT: m.rtt, Result: g.result})
	}
	for k, text := range findUnlike(series) {
		rep.Agents[k].Unlike = text
	}
	rep.Skew = skew(rep.Agents)
	rep.Result = mergeResults(rep.Agents)
	rep.Result.Series = r.merged.finish()
	rep.judge()
	if rep.Result.Ended != "" && ctx.Err() != nil {
		rep.Result.Ended = endedBy(context.Cause(ctx))
	}
	return rep, rep.unanswered(all)
}

// unanswered is load.Run's error where all agents had one. The errors of some are warnings.
func (rep *Report) unanswered(all []gathered) error {
	if !slices.ContainsFunc(all, func(g gathered) bool { return g.text == "" }) {
		return errors.New(all[0].text)
	}
	for k, g := range all {
		if g.text != "" {
			rep.warn(k, errors.New(g.text))
		}
	}
	return nil
}

func endedBy(cause error) string {
	if errors.Is(cause, context.Canceled) {
		return "interrupted"
	}
	return cause.Error()
}

func skew(all []Share) time.Duration {
	first, last := all[0].Start, all[0].Start
	for _, a := range all {
		first, last = min(first, a.Start), max(last, a.Start)
	}
	return last - first
}

// mergeResults adds results up. Series and warnings are left out.
func mergeResults(all []Share) *load.Result {
	first := all[0].Result
	sum := &load.Result{Started: first.Started, Engine: first.Engine}
	for _, h := range wire.HistsOf(sum) {
		*h = hist.New()
	}
	var end time.Time
	for _, a := range all {
		if r := a.Result; r.Started.Before(sum.Started) {
			sum.Started = r.Started
		}
		if e := a.Result.Started.Add(a.Result.Elapsed); e.After(end) {
			end = e
		}
		addResult(sum, a.Result)
	}
	sum.Elapsed = end.Sub(sum.Started)
	if sum.Elapsed > 0 {
		sum.MeanFlight /= float64(sum.Elapsed)
	}
	return sum
}

// addResult adds r to sum, of which MeanFlight is the integral meanwhile.
func addResult(sum, r *load.Result) {
	for i, into := range wire.HistsOf(sum) {
		(*into).Merge(*wire.HistsOf(r)[i])
	}
	sum.Counts, sum.WarmUp = add(sum.Counts, r.Counts), add(sum.WarmUp, r.WarmUp)
	sum.Window = max(sum.Window, r.Window)
	sum.Ended = cmp.Or(sum.Ended, r.Ended)
	sum.Threads += r.Threads
	sum.BytesIn += r.BytesIn
	sum.BytesOut += r.BytesOut
	sum.Opened += r.Opened
	sum.Reused += r.Reused
	sum.Full += r.Full
	sum.Resumed += r.Resumed
	sum.MeanFlight += r.MeanFlight * float64(r.Elapsed)
	sum.PeakFlight += r.PeakFlight // at most: the peaks need not meet
	sum.Within += r.Within
	sum.Carried += r.Carried
	sum.InTime += r.InTime
	sum.CPU += r.CPU
	sum.Spun += r.Spun
	sum.MaxRSS += r.MaxRSS
	sum.Waited = sum.Waited || r.Waited
	sum.Bound = sum.Bound || r.Bound
	sum.Stopped = sum.Stopped || r.Stopped
	sum.StatusAsked = sum.StatusAsked || r.StatusAsked
}

func add(a, b load.Counts) load.Counts {
	t, u := wire.TallyOf(a), wire.TallyOf(b)
	for i := range t {
		t[i] += u[i]
	}
	return t.Counts()
}

// warn adds a warning of an agent's.
func (rep *Report) warn(k int, why error) {
	rep.Result.Warnings = append(rep.Result.Warnings, fmt.Errorf("agent %s: %w", rep.Agents[k].Name, why))
}

// mostWarned is the number of agents whose own warnings are shown: they are often alike.
const mostWarned = 3

// judge adds the agents' warnings, and finds those that were late or busy.
func (rep *Report) judge() {
	res := rep.Result
	if n := res.Counts.Answered(); n > 0 && !res.StatusAsked && res.Counts.Status[4]+res.Counts.Status[5] == n {
		res.Warnings = append(res.Warnings, fmt.Errorf("%w: %s", load.ErrOnlyErrors, res.Counts.Status))
	}
	warned := 0
	for k, a := range rep.Agents {
		if len(a.Result.Warnings) > 0 {
			warned++
		}
		for _, w := range a.Result.Warnings {
			if warned <= mostWarned {
				rep.warn(k, w)
			}
		}
		if a.Unlike != "" {
			rep.warn(k, errors.New(a.Unlike))
		}
		why := unfit(a)
		if why == "" {
			continue
		}
		rep.Unfit = append(rep.Unfit, fmt.Sprintf("agent %s %s", a.Name, why))
		if !a.Result.Bound { // else its own warnings say so
			rep.warn(k, errors.New("it "+why))
			res.Bound = true
		}
	}
	if more := warned - mostWarned; more > 0 {
		res.Warnings = append(res.Warnings, fmt.Errorf("%s more have warnings of their own, in their results", unit.Plural(more, "agent")))
	}
}

// unfit is why an agent's share does not count; "" if it does.
func unfit(a Share) string {
	switch r := a.Result; {
	case a.Start > mostLate:
		return fmt.Sprintf("began %s late", unit.Format(float64(a.Start), unit.Nanoseconds))
	case r.Stopped:
		return "was stopped during the load"
	case r.Busy() > mostBusy:
		return fmt.Sprintf("was busy for %s of the time on %s", unit.Format(r.Busy(), unit.Share), unit.Plural(r.Threads, "thread"))
	case r.Bound:
		return fmt.Sprintf("was late by %s or more for 1 %% of the requests", unit.Format(float64(r.Late.Quantile(.99)), unit.Nanoseconds))
	}
	return ""
}
