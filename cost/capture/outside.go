package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/stats/unit"
)

// outside samples from outside, and then times calls, if that is wanted. It keeps what
// was seen if it is interrupted.
func (r *run) outside(ctx context.Context) error {
	if err := r.sample(ctx); err != nil || r.Options.Calls == nil {
		return err
	}
	var m *probe.Measurement
	err := ctx.Err()
	if err == nil {
		m, err = r.timeCalls(ctx)
	}
	r.c.takeCalls(ctx, m, err)
	return nil
}

// sample takes the profile.
func (r *run) sample(ctx context.Context) error {
	o := bpf.Options{PID: r.target.PID, Cgroup: r.target.cgroup, Hz: cmp.Or(r.Hz, bpf.DefaultHz)}
	if o.PID != 0 {
		if _, err := bpf.CPU(o.PID); err != nil {
			return fmt.Errorf("looking at process %d: %w", o.PID, err)
		}
	}
	requests := &counting{end: func() {}}
	if r.Count && r.Options.Load == nil && r.Requests == 0 {
		requests = newCounting(ctx, r.target)
	}
	defer requests.close()
	if err := r.startLoad(ctx); err != nil {
		return err
	}
	r.say("sampling %s for %s at %d Hz from outside%s; expected to cost it %s", r.target.Name, r.For, o.Hz, requests.describe(), r.Price(r.target))
	call(ctx, r.Before)
	s, err := bpf.Start(o)
	if err != nil {
		if r.load != nil {
			r.load.End() // the error of the sampler is shown
		}
		return err
	}
	begun := time.Now()
	requests.run(ctx, r.For)
	if r.wait(ctx, s.Ended()) {
		r.warn(errors.New("interrupted: what was seen until then is shown"))
	}
	requests.end()
	p, err := s.Stop()
	if err != nil {
		return err
	}
	r.c.takeSamples(p, o)
	r.c.takeCount(requests, p.Processes)
	const busy = 0.01
	if o.PID != 0 && p.CPU.Seconds() < busy*p.Duration.Seconds() {
		if why := proc.Idle(o.PID); why != nil {
			r.warn(why)
		}
	}
	call(ctx, r.After)
	r.endLoad(begun, time.Time{})
	r.c.Module, r.c.Program = Module(r.c.PID)
	return nil
}

// wait lets the sampler look; it reports whether it was interrupted.
func (r *run) wait(ctx context.Context, ended <-chan struct{}) bool {
	over := time.NewTimer(r.For)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ended:
	case <-ctx.Done():
		return true
	}
	return false
}

// takeSamples takes a profile over.
func (c *Capture) takeSamples(p *bpf.Profile, o bpf.Options) {
	c.CPU = pprof.New(pprof.CPU, p.Duration, p.Stacks)
	c.Window.Duration = p.Duration
	c.Warnings = append(c.Warnings, p.Warnings...)
	if o.PID != 0 || len(p.Processes) == 1 {
		c.Source += fmt.Sprintf(" (%s)", strings.Join(describe(p.Processes[:1], o.PID == 0), ""))
	} else {
		const most = 5
		c.Source += fmt.Sprintf(", %d processes (%s)", len(p.Processes), strings.Join(describe(p.Processes[:min(most, len(p.Processes))], true), "; "))
	}
	c.Sampled = &cost.Sampled{Hz: o.Hz, Clock: p.Clock, Stacks: p.Seen, Lost: p.Lost}
	if p.Sampled > 0 { // by a timer
		c.Sampled.Late = int64(proc.Lateness(o.Hz))
	}
	if p.CPU > 0 {
		c.Sampled.Covered = p.Sampled.Seconds() / p.CPU.Seconds()
		c.Sampled.Cost = p.Watching.Seconds() / p.CPU.Seconds()
	}
}

// describe says what processes run, with their numbers if asked to.
func describe(all []bpf.Process, number bool) []string {
	var out []string
	for _, p := range all {
		text := p.Name
		if p.Go != "" {
			text += ", " + p.Go
		}
		if number {
			text = strconv.Itoa(p.PID) + " " + text
		}
		out = append(out, text)
	}
	return out
}

// timeCalls times calls under a load of their own: that slows the service down, and what
// was sampled is not to show that.
func (r *run) timeCalls(ctx context.Context) (*probe.Measurement, error) {
	const longest = 10 * time.Second
	t, err := probe.Open(r.target.PID)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := r.startLoad(ctx); err != nil {
		return nil, err
	}
	calls := *r.Options.Calls
	calls.For, calls.Progress = min(r.For, longest), r.Progress
	t.Sampled(r.c.CPU.Stacks)
	m, err := calls.Time(ctx, t)
	if r.load != nil {
		_, loadErr := r.load.End()
		err = errors.Join(err, loadErr)
	}
	return m, err
}

// takeCalls takes over what timing calls gave, or why it gave nothing: what was sampled
// is shown all the same.
func (c *Capture) takeCalls(ctx context.Context, m *probe.Measurement, err error) {
	interrupted := ctx.Err() != nil
	switch {
	case err != nil && interrupted:
		c.Warnings = append(c.Warnings, errors.New("interrupted before calls were timed: there are no counts and times of calls (--marks)"))
		return
	case err != nil:
		c.CallsErr = err
		return
	case interrupted:
		c.Warnings = append(c.Warnings, fmt.Errorf("interrupted: calls were timed for %s", unit.Format(float64(m.Attached), unit.Nanoseconds)))
	}
	c.Calls = m
	if c.Window.Requests > 0 || m.Attached <= 0 {
		return
	}
	c.Window.Requests = math.Round(m.Requests * c.Window.Duration.Seconds() / m.Attached.Seconds())
	if c.Window.Requests > 0 {
		c.Warnings = append(c.Warnings, errors.New("requests were counted after the sampling, while calls were timed: costs per request assume that the rate was the same before"))
	}
}

// addCalls adds times of calls to a bill.
func addCalls(b *cost.Bill, m *probe.Measurement) {
	w := cost.Window{Duration: m.Attached, Requests: m.Requests}
	if w.Requests == 0 {
		// Where requests begin is not known in this program: as many as otherwise.
		w = cost.Window{Duration: time.Duration(b.Seconds * float64(time.Second)), Requests: b.Requests}.Over(m.Attached)
		if b.Requests > 0 && !m.SeesRequests() {
			b.Warnings = append(b.Warnings, "where requests begin is not known in this program: calls per request assume the rate of requests before, which may have changed since")
		}
	}
	b.AddWalls(m.Walls, w)
	for _, warning := range m.Warnings {
		b.Warnings = append(b.Warnings, warning.Error())
	}
}

// Ended reports whether what was looked at ended before the capture did.
func (c *Capture) Ended() bool { return Ended(c.Warnings...) }

// Ended reports whether one of the errors is that a process or a service has ended.
func Ended(errs ...error) bool {
	return slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, bpf.ErrEnded) || errors.Is(err, pprof.ErrEnded) })
}
