package load

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tarehq/tare/load/internal/http1"
	"github.com/tarehq/tare/stats/hist"
)

// failure is a way in which a request that was begun can end without an
// answer.
type failure uint8

const (
	failRefused   failure = iota // no connection
	failReset                    // broken before any byte of an answer
	failTimeout                  // no whole answer in time
	failShort                    // broken within the answer
	failMalformed                // not HTTP, or beyond a limit
	failures                     // how many there are
)

// String is what happened to a request, as in "3 requests were refused".
func (k failure) String() string {
	return [failures]string{"refused", "reset", "not answered in time", "cut short", "answered by something malformed"}[k]
}

// broken is what became of a request whose connection ended or broke before
// the answer was whole.
func broken(a *http1.Answer) failure {
	if a.Started {
		return failShort
	}
	return failReset
}

// lateAnswer tells of a request that timed out.
func lateAnswer(timeout time.Duration) error {
	return fmt.Errorf("no whole answer within %v", timeout)
}

// errGivenUp tells of a request that was in flight when the run ended.
var errGivenUp = errors.New("no whole answer when the run ended")

// nanotime is the monotonic time in nanoseconds since the process started.
func nanotime() int64 { return int64(time.Since(epoch)) }

var epoch = time.Now()

// outcome is one request's history, in nanotime. Of one that failed, what did
// not happen is zero.
type outcome struct {
	intended, start, firstByte, end int64
	bytesIn, bytesOut               int64
	status                          int
	reused                          bool // the connection had carried a request before
	verified                        bool // the answer is as the target asks
	streams                         int  // of the connection, all taken when it began; 0: one was free
}

// recorder is what one worker of a run saw. Its methods are called with the
// lock held; a worker holds it over a batch, and the run takes it a few times
// a second to look.
type recorder struct {
	sync.Mutex
	plan *plan

	counts, warmUp Counts
	carried        uint64     // of the warm-up, answered in the measured part
	service, first *hist.Hist // of answers whose times are not all alike
	lag, late      *hist.Hist // open loop only
	unread         *hist.Hist // of answers whose arrival is known
	after          *hist.Hist // of answers that came after the end, the time since it
	connect, shake *hist.Hist

	bytesIn, bytesOut     uint64
	reused, full, resumed uint64
	crowded               uint64          // requests that found all streams of their connection taken
	streams               int             // how many these were for the last of them
	causes                [failures]error // the first of each kind
	wrongStatus           int             // of the last answer with 4xx or 5xx
	caveats               []error         // of the worker itself
	spun                  int64           // time spent polling in the measured part, ns

	// The integral of the requests in flight over time is kept apart from
	// their response times, so that Little's law can hold one against the
	// other.
	flight     int64 // of the measured part, in flight
	peak       int64
	area       float64 // request-nanoseconds up to the end or the last answer
	tail       float64 // from there up to changed
	changed    int64
	lastAnswer int64
	lastEvent  int64

	slice  *slicePart
	index  int   // of slice
	turnAt int64 // when the next slice begins
}

// recorder adds a worker's recorder to the run.
func (p *plan) recorder() *recorder {
	r := &recorder{
		plan: p, service: hist.New(), first: hist.New(), connect: hist.New(), shake: hist.New(), unread: hist.New(), after: hist.New(),
		changed: p.measure, slice: newSlicePart(), turnAt: p.sliceEnd(0),
	}
	if p.open {
		r.lag, r.late = hist.New(), hist.New()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recorders = append(p.recorders, r)
	return r
}

// scheduled takes up a request. It reports whether the request may begin; if
// not, too many are in flight and it has been counted as dropped.
func (r *recorder) scheduled(intended, now int64) bool {
	n := r.plan.flight.Add(1)
	if intended < r.plan.measure {
		r.warmUp.Scheduled++
	} else {
		r.counts.Scheduled++
		r.settle(now)
		if r.late != nil {
			r.late.Record(now - intended)
		}
		r.flight++
	}
	if n > r.plan.maxFlight {
		r.dropped(intended, now)
		return false
	}
	if intended >= r.plan.measure {
		r.tail += float64(now - intended) // due since then, as its response time counts it
		r.peak = max(r.peak, n)
	}
	return true
}

// leave ends a request that was taken up. It returns the counts that the
// request belongs to and whether it is of the measured part.
func (r *recorder) leave(intended, now int64) (c *Counts, measured bool) {
	r.plan.flight.Add(-1)
	if intended < r.plan.measure {
		return &r.warmUp, false
	}
	r.settle(now)
	r.flight--
	r.lastEvent = max(r.lastEvent, now)
	if now >= r.turnAt {
		r.turn(now)
	}
	return &r.counts, true
}

// settle brings the integral of the requests in flight up to now. When no request
// begins any more, what is only waiting for its time-out does not count.
func (r *recorder) settle(now int64) {
	if now <= r.changed {
		return
	}
	if till := min(now, r.plan.closes()); r.changed < till {
		r.area += r.tail + float64(r.flight)*float64(till-r.changed)
		r.tail, r.changed = 0, till
	}
	r.tail += float64(r.flight) * float64(now-r.changed)
	r.changed = now
}

// answered ends a request with a whole answer, which is seen now and may have come
// before.
func (r *recorder) answered(o *outcome, now int64) {
	c, measured := r.leave(o.intended, o.end)
	c.Status[o.status/100]++
	if !o.verified {
		c.Unverified++
	}
	if o.status >= http.StatusBadRequest {
		r.wrongStatus = o.status
		if o.status == http.StatusProxyAuthRequired {
			r.plan.barred.Store(true)
		}
	}
	if !measured {
		if o.end >= r.plan.measure && o.end < r.plan.end.Load() {
			r.carried++
		}
		return
	}
	r.sent(o)
	if unread := now - o.end; unread > 0 {
		r.unread.Record(unread)
	}
	if after := o.end - r.plan.end.Load(); after > 0 {
		r.after.Record(after)
	}
	r.tail -= float64(max(0, r.changed-o.end)) // taken for in flight before it was seen
	r.area, r.tail = r.area+r.tail, 0
	r.slice.answered++
	r.lastAnswer = max(r.lastAnswer, o.end)
	if o.start == o.intended && o.firstByte == o.end {
		r.slice.alike.Record(o.end - o.start)
		return
	}
	r.slice.others.Record(o.end - o.intended)
	r.service.Record(o.end - o.start)
	r.first.Record(o.firstByte - o.start)
}

// sent records what answered and failed requests have in common.
func (r *recorder) sent(o *outcome) {
	if r.lag != nil {
		r.lag.Record(o.start - o.intended)
	}
	if o.reused {
		r.reused++
	}
	if o.streams > 0 {
		r.crowded, r.streams = r.crowded+1, o.streams
	}
	r.bytesIn += uint64(o.bytesIn)
	r.bytesOut += uint64(o.bytesOut)
	r.slice.bytesIn += uint64(o.bytesIn)
}

// failed ends a request that was begun, without a whole answer. The first
// cause of each kind is kept; err may be nil where one is.
func (r *recorder) failed(k failure, o *outcome, err error) {
	if r.causes[k] == nil {
		r.causes[k] = err
	}
	c, measured := r.leave(o.intended, o.end)
	switch k {
	case failRefused:
		c.Refused++
	case failReset:
		c.Reset++
	case failTimeout:
		c.Timeout++
	case failShort:
		c.Short++
	default:
		c.Malformed++
	}
	if measured {
		r.sent(o)
		r.slice.failed++
	}
}

// dropped ends a request that was taken up and is not sent.
func (r *recorder) dropped(intended, now int64) {
	c, measured := r.leave(intended, now)
	c.Dropped++
	if measured {
		r.slice.dropped++
	}
}

// connected records a connection that was opened, in the warm-up too.
func (r *recorder) connected(ns int64) { r.connect.Record(ns) }

// handshaken records a TLS handshake, in the warm-up too.
func (r *recorder) handshaken(ns int64, resumed bool) {
	r.shake.Record(ns)
	if resumed {
		r.resumed++
	} else {
		r.full++
	}
}

// turn hands the slices over that have ended by now.
func (r *recorder) turn(now int64) {
	if now < r.turnAt {
		return
	}
	r.slice = r.plan.series.exchange(r.index, r.slice)
	r.index = r.plan.sliceAt(now)
	r.turnAt = r.plan.sliceEnd(r.index)
}
