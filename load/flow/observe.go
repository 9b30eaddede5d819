package flow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/load/internal/sys"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// observe ends slices and reports progress until stop is closed.
func (r *run) observe(stop <-chan struct{}) {
	const period = 250 * time.Millisecond
	tick := time.NewTicker(min(period, r.o.Slice))
	defer tick.Stop()
	cpu, measuring := sys.CPUTime(), false
	var before uint64 // answered at the last look
	var looked int64
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-stop:
			over = true
		}
		now := r.now()
		if now >= r.begin && !measuring {
			cpu, measuring = sys.CPUTime(), true
		}
		r.seal(now, over)
		if r.o.Progress != nil {
			s := r.snapshot(now)
			answered := s.Counts.Answered()
			if elapsed := float64(now-looked) / 1e9; elapsed > 0 {
				s.Rate = float64(answered-before) / elapsed
			}
			before, looked = answered, now
			r.o.Progress(s)
		}
	}
	r.res.Generator.CPU = sys.CPUTime() - cpu
	r.res.Generator.MaxRSS = sys.MaxRSS()
}

// seal ends the slices that are over by now; the last one in any case.
func (r *run) seal(now int64, last bool) {
	for {
		r.mu.Lock()
		until := r.begin + int64(len(r.res.Series)+1)*int64(r.o.Slice)
		if now < until && !(last && r.rec.Count()+r.slice.Failed+r.slice.Dropped > 0) {
			r.mu.Unlock()
			return
		}
		s := r.slice
		s.At = time.Duration(len(r.res.Series)) * r.o.Slice
		s.P50, s.P99, s.Max = time.Duration(r.rec.Quantile(.5)), time.Duration(r.rec.Quantile(.99)), time.Duration(r.rec.Max())
		r.rec.Reset()
		r.slice.Answered, r.slice.Failed, r.slice.Dropped = 0, 0, 0
		r.res.Series = append(r.res.Series, s)
		r.mu.Unlock()
		var memory uint64
		if r.o.Memory != nil {
			memory = r.o.Memory()
		}
		r.res.Memory = append(r.res.Memory, memory)
		if now < until {
			return
		}
	}
}

func (r *run) snapshot(now int64) Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{
		Elapsed: time.Duration(now - r.begin), Total: r.length, Users: r.users, Thinking: len(r.thinking),
		Sessions: r.res.Sessions, Counts: r.res.Requests.Counts,
	}
	s.Sessions.Waited, s.Sessions.Whole = nil, nil
	if n := len(r.res.Series); n > 0 {
		s.P50, s.P99 = r.res.Series[n-1].P50, r.res.Series[n-1].P99
	}
	return s
}

// The bounds beyond which the generator counts as the bottleneck, as package load has them.
const (
	busyShare = 0.8
	lateShare = 0.1
	lateLag   = int64(time.Millisecond)
)

// finish sums up and warns.
func (r *run) finish() {
	res := &r.res
	end := r.end
	if res.Ended != "" {
		end = min(end, r.now())
	}
	res.Elapsed = time.Duration(max(0, max(end, r.last)-r.begin))
	res.Window = r.length
	s := &res.Sessions
	s.Unfinished = s.Begun - s.Completed - s.Failed
	if s.Unfinished > 0 && res.Ended == "" {
		r.warn(fmt.Errorf("%s had not ended: a longer drain follows them", unit.Plural(s.Unfinished, "session")))
	}
	if s.Dropped > 0 {
		r.warn(fmt.Errorf("%s arrived when the most allowed were there: raise most, or lower the rate", unit.Plural(s.Dropped, "user")))
	}
	g := &res.Generator
	if busy := g.CPU.Seconds() / max(1e-9, res.Elapsed.Seconds()) / float64(r.o.Threads()); busy > busyShare {
		g.Bound = true
		r.warn(fmt.Errorf("the generator was busy for %s of the time: the figures may be its own", unit.Format(busy, unit.Share)))
	}
	if late := g.Lag; late.Count() >= hist.Needed(.99) {
		p99 := late.Quantile(.99)
		if p99 > lateLag && float64(p99) > lateShare*float64(res.Requests.Response.Quantile(.99)) {
			g.Bound = true
			r.warn(fmt.Errorf("the generator began requests late: p99 %s", unit.Format(float64(p99), unit.Nanoseconds)))
		}
	}
	if n := res.Requests.Counts; n.Scheduled > 0 && n.Answered() == 0 && res.Ended == "" {
		r.warn(errors.New("no request was answered"))
	}
	// Set-up and tear-down are not among the steps that are counted.
	res.Steps = slices.DeleteFunc(res.Steps, func(o Operation) bool { return o.Flow == "" })
}

func (r *run) warn(err error) { r.res.Warnings = append(r.res.Warnings, err) }
