package load

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/load/pace"
)

// never is a time that does not come.
const never = math.MaxInt64

// plan is a run worked out from Options: when it begins and ends, what it
// sends, and where the workers record. Times are nanotime's.
type plan struct {
	opts        *Options // with the defaults filled in
	script      *script
	statusAsked bool // a target says which status is right
	engine      Engine
	drive       driver
	threads     int
	open        bool               // open loop
	addrs       [][]netip.AddrPort // by endpoint; none for a Unix socket

	begin, measure int64 // of the warm-up and of the measured part
	planned        int64 // end of the measured part; never when only requests bound it
	end            atomic.Int64
	quit           atomic.Int64
	hurried        bool         // an interruption has brought quit forward
	budget         atomic.Int64 // measured requests that may still begin
	barred         atomic.Bool  // an answer had status 407
	spent          atomic.Int64 // when the budget was used up; never before

	flight    atomic.Int64 // requests in flight, warm-up included
	maxFlight int64

	mu        sync.Mutex
	recorders []*recorder
	series    *series
}

// start fixes the times: the warm-up begins now.
func (p *plan) start(now int64) {
	p.begin = now
	p.measure = now + int64(p.opts.WarmUp)
	p.planned = never
	if p.opts.Duration > 0 {
		p.planned = p.measure + int64(p.opts.Duration)
	}
	if p.open {
		if length, ok := p.opts.Schedule.Length(); ok {
			p.planned = min(p.planned, p.measure+int64(length))
		}
	}
	p.end.Store(p.planned)
	p.spent.Store(never)
	p.quit.Store(never)
	if p.planned != never {
		p.quit.Store(p.planned + p.patience())
	}
}

// patience is how long requests in flight at a planned end are waited for.
func (p *plan) patience() int64 {
	if p.opts.Timeout > 0 {
		return int64(p.opts.Timeout)
	}
	return int64(defaultTimeout)
}

// interrupt ends the run early. What is in flight has a second to be answered.
func (p *plan) interrupt(now int64) {
	if soon := now + int64(time.Second); soon < p.quit.Load() {
		p.quit.Store(soon)
		p.hurried = true
	}
	p.end.Store(min(p.end.Load(), now))
}

// cutShort reports whether an interruption has changed how the run ended: requests were
// still to begin, or what was in flight was given up for it.
func (p *plan) cutShort() bool {
	return p.end.Load() < p.planned || p.hurried &&
		slices.ContainsFunc(p.recorders, func(r *recorder) bool { return r.lastEvent >= p.quit.Load() })
}

// ended reports whether a request may no longer begin at t.
func (p *plan) ended(t int64) bool { return t >= p.end.Load() }

// closes is when, as far as is known, the last measured request may begin.
func (p *plan) closes() int64 { return min(p.end.Load(), p.spent.Load()) }

// giveUp is when requests in flight are given up as timed out and waiting ones
// as dropped.
func (p *plan) giveUp() int64 { return p.quit.Load() }

// deadline is when a request that began at start has taken too long; the zero
// time is never.
func (p *plan) deadline(start int64) time.Time {
	if p.opts.Timeout == 0 {
		return time.Time{}
	}
	return epoch.Add(time.Duration(start) + p.opts.Timeout)
}

// bounded is ctx, ended with the request that began at start.
func (p *plan) bounded(ctx context.Context, start int64) (context.Context, context.CancelFunc) {
	if t := p.deadline(start); !t.IsZero() {
		return context.WithDeadline(ctx, t)
	}
	return context.WithCancel(ctx)
}

// take uses up one measured request. False means that there is none left and
// no request is to be scheduled any more.
func (p *plan) take(intended int64) bool {
	if p.opts.Requests == 0 || intended < p.measure {
		return true
	}
	left := p.budget.Add(-1)
	if left == 0 {
		now := nanotime()
		p.spent.Store(now)
		if p.opts.Timeout > 0 { // else all that was asked for is waited for
			p.quit.Store(min(p.quit.Load(), now+p.patience()))
		}
	}
	return left >= 0
}

// sliceAt is the index of the slice in which t lies. What ends after the
// measured part belongs to its last slice.
func (p *plan) sliceAt(t int64) int {
	if end := p.end.Load(); t >= end {
		t = end - 1
	}
	return int(max(0, t-p.measure) / int64(p.opts.Slice))
}

// sliceEnd is when slice i ends.
func (p *plan) sliceEnd(i int) int64 {
	t := p.measure + int64(i+1)*int64(p.opts.Slice)
	if t >= p.end.Load() {
		return never
	}
	return t
}

// arrivals are one worker's intended starts. The warm-up keeps the rate at
// which the schedule begins.
type arrivals struct {
	plan   *plan
	warm   *pace.Cursor // nil when over
	main   *pace.Cursor
	offset int64 // of the cursor in use
}

// arrivals returns share k of n of the open loop's intended starts.
func (p *plan) arrivals(k, n int) *arrivals {
	s := p.opts.Schedule
	a := &arrivals{plan: p, main: s.Cursor(k, n), offset: p.measure}
	if rate := s.RateAt(0); p.opts.WarmUp > 0 && rate > 0 {
		warm := *s
		warm.Phases = []pace.Phase{{From: rate, To: rate, For: p.opts.WarmUp}}
		warm.Seed++ // not the arrivals that are measured
		a.warm, a.offset = warm.Cursor(k, n), p.begin
	}
	return a
}

// next is the coming intended start; never when there is none.
func (a *arrivals) next() int64 {
	if a.warm != nil {
		if at, ok := a.warm.Next(); ok && a.offset+int64(at) < a.plan.measure {
			return a.offset + int64(at)
		}
		a.warm, a.offset = nil, a.plan.measure
	}
	at, ok := a.main.Next()
	if t := a.offset + int64(at); ok && !a.plan.ended(t) {
		return t
	}
	return never
}
