package load

import (
	"errors"
	"os"

	"github.com/tarehq/tare/load/internal/dial"
)

// errNoMore is why requests behind another failed whose answer was whole.
var errNoMore = errors.New("the server closed the connection before it had answered all that was sent")

// draft is a request that has been drawn from the script and not begun.
type draft struct {
	drawn  bool
	own    bool // on a connection of its own
	target int
	record []string // HTTP/2: what fills its fields
	req    []byte   // without its tail
	tail   []byte
	buf    []byte // holds req, when it is not the script's own
}

// draw draws the next request, unless one has been drawn that found no
// connection.
func (l *loop) draw() *draft {
	d := &l.drawn
	if d.drawn {
		return d
	}
	d.drawn, d.own = true, l.cursor.closing()
	switch {
	case l.mux != nil:
		d.target, d.record = l.cursor.draw()
	case d.own:
		d.req, d.tail, d.target = l.cursor.nextClosing(&d.buf)
	default:
		d.req, d.tail, d.target = l.cursor.next(&d.buf)
	}
	return d
}

// launch begins what is to begin now, of the open loop's requests not more than
// most.
func (l *loop) launch(most int) {
	if l.plan.open {
		l.launchDue(most)
	} else {
		l.launchReady()
	}
	if l.mux != nil {
		l.flushSessions()
	}
}

// together is how many requests of HTTP/2 begin at what is taken for one time: a microsecond
// or two.
const together = 8

// launchReady begins the closed loop's next requests.
func (l *loop) launchReady() {
	if l.unstarted > 0 && l.now >= l.waveAt {
		n := min(l.unstarted, wave)
		l.ready, l.unstarted, l.waveAt = l.ready+n, l.unstarted-n, l.now+waveGap
	}
	if l.resting > 0 && l.now >= l.restUntil {
		l.ready, l.resting = l.ready+l.resting, 0
	}
	for begun := 1; l.ready > 0 && !l.over; begun++ {
		if l.plan.ended(l.now) || !l.plan.take(l.now) {
			l.over = true
			return
		}
		l.ready--
		l.rec.scheduled(l.now, l.now)
		l.dispatch(l.now)
		// What took this one its time is not the next one's. HTTP/2's are sent together, some
		// time after the last has begun.
		if l.ready > 0 && (l.mux == nil || begun%together == 0) {
			l.now = nanotime()
		}
	}
}

// launchDue begins open-loop requests whose time has come. After a pause there may
// be many.
func (l *loop) launchDue(most int) {
	for !l.waiting.Empty() && l.dispatch(l.waiting.First()) {
		l.waiting.Pop()
		l.now = nanotime()
	}
	for range most {
		if l.due > l.now {
			return
		}
		if intended, ok := l.arrive(); ok && (!l.waiting.Empty() || !l.dispatch(intended)) {
			l.waiting.Push(intended)
		}
		l.now = nanotime()
	}
}

// arrive takes up the open-loop request that is due. It reports false when that may
// not begin: none does any more, or too many are in flight.
func (l *loop) arrive() (intended int64, ok bool) {
	intended = l.due
	if l.plan.ended(intended) || !l.plan.take(intended) {
		l.due = never
		return intended, false
	}
	l.due = l.source.next()
	return intended, l.rec.scheduled(intended, l.now)
}

// dispatch begins a request now. It reports false, and nothing has happened,
// when there is no connection for it.
func (l *loop) dispatch(intended int64) bool {
	d := l.draw()
	c := l.acquire(l.plan.script.targets[d.target].endpoint, d.own)
	if c == nil {
		return false
	}
	d.drawn = false
	c.out = outcome{intended: intended, start: l.now, reused: c.used}
	c.ans.Begin(d.target)
	if c.on != nil {
		c.busy = true
		l.flight.push(c)
		l.ask(c, d)
		return true
	}
	c.unsent, c.tail = d.req, d.tail
	if l.plan.script.targets[d.target].dynamic() { // what comes next is drawn into the same place
		c.buf = append(c.buf[:0], d.req...)
		c.unsent = c.buf
	}
	if l.plan.opts.Pipeline > 1 {
		l.pipeline(c)
	}
	c.busy = true
	l.flight.push(c)
	l.flush(c)
	return true
}

// pipeline puts more requests behind c's, to be sent with it.
func (l *loop) pipeline(c *conn) {
	c.buf = append(c.buf[:0], c.unsent...)
	for len(c.behind) < l.plan.opts.Pipeline-1 && l.plan.take(l.now) {
		l.rec.scheduled(l.now, l.now)
		req, _, target := l.cursor.next(&l.drawn.buf)
		c.buf, c.behind = append(c.buf, req...), append(c.behind, target)
	}
	c.unsent = c.buf
}

// proceed ends c's request with its answer and turns to the one behind it.
func (l *loop) proceed(c *conn) {
	l.answered(c)
	begun := c.out.start
	c.out = outcome{intended: begun, start: begun, reused: true}
	c.ans.Begin(c.behind[0])
	c.behind = append(c.behind[:0], c.behind[1:]...)
}

// answered records that c's request ended with its answer.
func (l *loop) answered(c *conn) {
	c.out.end, c.out.status, c.out.verified = l.when(c), c.ans.Status, c.ans.Verified
	if c.on == nil || c.on.fresh { // the first answer of a reading has all its bytes
		c.countBytes()
	}
	l.rec.answered(&c.out, l.now)
}

// when is when what was read last for c arrived. With other streams' in flight, that may
// seem to have been before c's request began.
func (l *loop) when(c *conn) int64 {
	if l.arrived < c.out.start {
		return l.now
	}
	return l.arrived
}

// forsake ends the requests behind c's, whose answers will not come.
func (l *loop) forsake(c *conn, k failure, err error) {
	for range c.behind {
		l.rec.failed(k, &outcome{intended: c.out.start, start: c.out.start, end: l.now, reused: true}, err)
	}
	c.behind = c.behind[:0]
}

// complete ends c's request with its answer. exact tells that nothing came
// behind the answer.
func (l *loop) complete(c *conn, exact bool) {
	l.answered(c)
	l.forsake(c, failReset, errNoMore)
	l.flight.remove(c)
	c.busy = false
	if c.on == nil && c.ans.Keep && exact && !c.own && !c.ending && !c.sending() {
		c.used = true
		l.idle[c.endpoint].push(c)
	} else {
		l.discard(c)
	}
	l.backoff = 0
	l.release(false)
}

// fail ends c's request without an answer.
func (l *loop) fail(c *conn, k failure, err error) {
	l.now = nanotime()
	c.out.end = l.now
	c.countBytes()
	if k == failRefused && l.rec.causes[k] == nil {
		err = dial.Explain(l.plan.script.endpoints[c.endpoint], err)
	}
	l.rec.failed(k, &c.out, err)
	if k != failTimeout && k != failRefused {
		k = failReset // of those behind, no answer has begun
	}
	l.forsake(c, k, err)
	l.flight.remove(c)
	c.busy, c.unsent, c.tail = false, nil, nil
	hopeless := !c.out.reused && !c.ans.Started && k != failTimeout
	l.discard(c)
	l.release(hopeless)
}

// release lets the closed loop begin another request, after a rest if another
// try would likely fail the same way.
func (l *loop) release(rest bool) {
	if l.plan.open {
		return
	}
	if l.unstarted > 0 {
		l.unstarted--
		l.ready++
	}
	if !rest {
		l.ready++
		return
	}
	if l.resting == 0 {
		l.backoff = min(max(2*l.backoff, shortestRest), longestRest)
		l.restUntil = l.now + int64(l.backoff)
	}
	l.resting++
}

// overdue reports whether a request's time is up.
func (l *loop) overdue() bool {
	c, timeout := l.flight.first, int64(l.plan.opts.Timeout)
	return c != nil && timeout > 0 && l.now-c.out.start >= timeout
}

// expire ends the requests whose time is up. The list is in the order of their
// starts, and all have the same time.
func (l *loop) expire() {
	for l.overdue() {
		c := l.flight.first
		err := lateAnswer(l.plan.opts.Timeout)
		switch {
		case c.connecting:
			l.elsewhere(c)
			err = dial.Explain(l.plan.script.endpoints[c.endpoint], os.ErrDeadlineExceeded)
		case c.opening != nil:
			err = dial.Explain(l.plan.script.endpoints[c.endpoint], c.opening.late())
		case c.on != nil && c.on.slot.opening != nil:
			err = dial.Explain(l.plan.script.endpoints[c.endpoint], c.on.slot.opening.late())
		case c.on != nil && c.on.heard < c.out.start: // its peer may be lost
			c.on.dead = true
		}
		l.fail(c, failTimeout, err)
	}
}
