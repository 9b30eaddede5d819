package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tarehq/tare/load/internal/sys"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// ErrOnlyErrors is a warning of a result: each answer has status 4xx or 5xx, and no target's
// Verify names a status.
var ErrOnlyErrors = errors.New("every answer is an error")

// Limits beyond which the generator's own behaviour shows in what it measures.
const (
	busyShare = 0.8
	lateLag   = int64(time.Millisecond)
	idleShare = 0.5 // a late generator that was less busy waited for a CPU
)

// result puts together what the recorders saw. cause is why the run ended
// early, nil if it did not.
func (c *conductor) result(cause error) *Result {
	p := c.plan
	res := &Result{
		Started: epoch.Add(time.Duration(p.measure)), Engine: p.engine, Threads: p.threads,
		Response: hist.New(), Service: hist.New(), FirstByte: hist.New(), Connect: hist.New(), Handshake: hist.New(),
		Generator:   Generator{CPU: c.cpu, MaxRSS: sys.MaxRSS(), Lag: hist.New(), Late: hist.New(), Unread: hist.New()},
		StatusAsked: p.statusAsked,
	}
	if cause != nil && p.cutShort() {
		res.Ended = endedBy(cause)
	}
	end := p.lastEnd()
	res.Elapsed = time.Duration(max(0, end-p.measure))
	var area float64
	after := hist.New()
	for _, r := range p.recorders {
		area += r.addTo(res, end)
		after.Merge(r.after)
	}
	if res.Elapsed > 0 {
		res.MeanFlight = area / float64(res.Elapsed)
		p.series.seal(max(p.sliceAt(end-1), p.series.last()) + 1)
	}
	res.Series = p.series.sealed
	p.series.past.addTo(res.Response, res.Service)
	res.FirstByte.Merge(p.series.past.alike)
	res.Window = res.Elapsed
	if p.spent.Load() == never {
		res.Window = time.Duration(max(0, p.end.Load()-p.measure))
	}
	res.countInTime(after)
	c.judge(res)
	return res
}

func endedBy(cause error) string {
	if errors.Is(cause, context.Canceled) {
		return "interrupted"
	}
	return cause.Error()
}

// lastEnd is when the measured part ended: when the last request may have begun, or
// with the last answer when that came later. Where all began at once and none was
// answered, that is with the last that failed.
func (p *plan) lastEnd() int64 {
	var answer, event int64
	for _, r := range p.recorders {
		answer, event = max(answer, r.lastAnswer), max(event, r.lastEvent)
	}
	if answer == 0 && p.spent.Load() != never {
		return event
	}
	return max(answer, p.closes())
}

// countInTime fills in what was answered within the window and in time, given the times
// since its end of what came after. In time is what is later than that by no more than
// the median response time of the fastest as many as came within, else a server that
// takes its time would never reach a rate. Of a queue that grows evenly half of what is
// left is unanswered then, however long it is waited for.
//
// Note: the mean of all response times would let a stall at the end excuse itself.
func (r *Result) countInTime(after *hist.Hist) {
	r.Within = r.Counts.Answered() - after.Count()
	var typical int64
	if r.Within > 0 {
		typical = r.Response.Quantile(float64(r.Within) / 2 / float64(r.Counts.Answered()))
	}
	r.InTime = r.Counts.Answered() - after.CountAbove(typical)
}

// addTo adds what r saw to res. It returns the integral of the requests in
// flight up to end.
func (r *recorder) addTo(res *Result, end int64) (area float64) {
	r.settle(end)
	res.Counts.add(&r.counts)
	res.WarmUp.add(&r.warmUp)
	res.Service.Merge(r.service)
	res.FirstByte.Merge(r.first)
	res.Connect.Merge(r.connect)
	res.Handshake.Merge(r.shake)
	res.Unread.Merge(r.unread)
	if r.lag != nil {
		res.Lag.Merge(r.lag)
		res.Late.Merge(r.late)
	}
	res.Carried += r.carried
	res.BytesIn += r.bytesIn
	res.BytesOut += r.bytesOut
	res.Opened += r.connect.Count()
	res.Reused += r.reused
	res.Full += r.full
	res.Resumed += r.resumed
	res.Spun += time.Duration(r.spun)
	res.PeakFlight = max(res.PeakFlight, int(r.peak))
	res.Warnings = append(res.Warnings, r.caveats...)
	r.slice = r.plan.series.exchange(r.index, r.slice)
	return r.area
}

// judge adds the caveats.
func (c *conductor) judge(res *Result) {
	warn := func(format string, args ...any) {
		res.Warnings = append(res.Warnings, fmt.Errorf(format, args...))
	}
	p := c.plan
	for k, n := range res.Counts.failures() {
		if n > 0 {
			warn("%s %v; the first: %w", ofRequests(n, res.Counts.Scheduled), failure(k), p.cause(failure(k)))
		}
	}
	if n := res.Counts.Answered(); n > 0 && !res.StatusAsked && res.Counts.Status[4]+res.Counts.Status[5] == n {
		warn("%w: %s, such as %s", ErrOnlyErrors, res.Counts.Status, p.wrongStatus())
	}
	if p.barred.Load() && p.script.proxy != nil {
		warn("the proxy answered 407: %s", p.script.proxy.Remedy(407))
	}
	if n := res.Counts.Dropped; n > 0 {
		why := "the run ended before they could begin"
		if most := p.opts.MaxInFlight; most > 0 {
			why = fmt.Sprintf("more than %d would have been in flight, or %s", most, why)
		}
		warn("%s dropped: %s", ofRequests(n, res.Counts.Scheduled), why)
	}
	if share := res.Busy(); share > busyShare {
		res.Bound = true
		warn("the generator was busy for %s of the time on %s, so it may limit the figures: give it more threads, or CPUs of its own", unit.Format(share, unit.Share), unit.Plural(res.Threads, "thread"))
	}
	if c.stopped {
		res.Stopped, res.Bound = true, true
		warn("the generator was stopped during the run, as by Ctrl-Z: it sent and read nothing until it continued, and the figures include that")
	}
	if n := res.Response.Clamped(); n > 0 {
		warn("%s not answered within an hour: such times count as one hour, the longest that is kept", ofRequests(n, res.Counts.Scheduled))
	}
	late, lag := res.Late.Quantile(0.99), res.Lag.Quantile(0.99)
	wait := lag // for a connection
	if res.IsLate() {
		wait -= late
		res.Bound = true
		why := ""
		if res.Starved() {
			why = ", although it was idle for most of the time: the server, another program or the host held the CPUs"
		}
		warn("the generator was late, by %s or more for 1 %% of the requests%s. Response times include the delay, service times do not", unit.Format(float64(late), unit.Nanoseconds), why)
	}
	if wait > lateLag {
		res.Waited = true
		warn("no connection of %d was free for some requests: 1 %% began %s or more late. Response times include the wait, service times do not", p.opts.Connections, unit.Format(float64(lag), unit.Nanoseconds))
	}
	if n, streams := p.crowded(); 100*n > res.Counts.Scheduled {
		warn("%s begun without a free stream: their connection allows %s at a time, and the wait for one is in the times, service times too; ask for fewer, on more connections", ofRequests(n, res.Counts.Scheduled), unit.Plural(streams, "stream"))
	}
}

// wrongStatus is a status 4xx or 5xx that was answered, for people.
func (p *plan) wrongStatus() string {
	status := 0
	for _, r := range p.recorders {
		status = max(status, r.wrongStatus)
	}
	return strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status)))
}

// crowded is how many requests found all streams of their connection taken, and how
// many these were.
func (p *plan) crowded() (n uint64, streams int) {
	for _, r := range p.recorders {
		n, streams = n+r.crowded, max(streams, r.streams)
	}
	return n, streams
}

// ofRequests says how many of all requests, with the verb: "1 of 8 requests was".
func ofRequests(n, all uint64) string {
	verb := "were"
	if n == 1 {
		verb = "was"
	}
	return fmt.Sprintf("%d of %s %s", n, unit.Plural(all, "request"), verb)
}

// failures are the counts by kind.
func (c *Counts) failures() [failures]uint64 {
	return [failures]uint64{c.Refused, c.Reset, c.Timeout, c.Short, c.Malformed}
}

// cause is the first cause of k seen by any worker.
func (p *plan) cause(k failure) error {
	for _, r := range p.recorders {
		if err := r.causes[k]; err != nil {
			return err
		}
	}
	return nil
}

// firstCause is a cause of the failures, the gravest first.
func (p *plan) firstCause() error {
	for k := range failures {
		if err := p.cause(k); err != nil {
			return err
		}
	}
	return nil
}
