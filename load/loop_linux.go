package load

import (
	"math"
	"time"

	"github.com/tarehq/tare/load/internal/fifo"
	"github.com/tarehq/tare/load/internal/http1"
	"github.com/tarehq/tare/load/internal/sys"
)

const (
	// readSize holds most answers whole.
	readSize = 64 << 10
	// wave is how many requests a loop begins at once when it starts, and again
	// after each waveGap, lest the connections of thousands arrive together at a
	// server's listen queue. Each that ends lets one more begin meanwhile; those
	// of a server that takes its time end too late to be waited for.
	wave    = 128
	waveGap = int64(10 * time.Millisecond)
	// longestWait bounds how late a loop hears of the run's end.
	longestWait = 50 * time.Millisecond
	// After a connection could not be made, the closed loop rests: else it
	// would try as fast as the machine refuses.
	shortestRest = 10 * time.Millisecond
	longestRest  = 500 * time.Millisecond
)

// loop is an event loop: some of the run's connections on one thread.
type loop struct {
	plan   *plan
	rec    *recorder
	cursor *cursor
	parser *http1.Parser
	poll   *sys.Poller
	addrs  [][]sys.Address // by endpoint; the loop's own
	best   []int           // by endpoint: the address to try first
	unix   bool
	buf    []byte
	now    int64 // as of the last look

	opener *opener // of connections that package net opens; nil: the loop itself does
	mux    *mux    // nil: HTTP/1.1

	inbox   *sys.Inbox // tells when answers arrived; nil: they count from when they are read
	arrived int64      // when what was read last did

	conns   []*conn // by slot
	free    connList
	idle    []connList // by endpoint
	flight  connList   // in the order of their starts
	open    int
	maxOpen int

	drawn draft

	// Open loop.
	source  *arrivals
	due     int64      // the next intended start; never when there is none
	waiting fifo.Queue // intended starts that found no connection

	// Closed loop: requests that may begin at once, later, and after a rest.
	ready, unstarted, resting int
	waveAt                    int64 // when the next of the unstarted may begin
	restUntil                 int64
	backoff                   time.Duration
	over                      bool // no request will begin any more
}

// newLoop is loop i of the plan.
func newLoop(p *plan, i int) (*loop, error) {
	poll, err := sys.NewPoller()
	if err != nil {
		return nil, err
	}
	l := &loop{
		plan: p, rec: p.recorder(), cursor: p.script.cursor(i),
		parser: p.script.parser(p.opts.MaxAnswer), poll: poll,
		addrs: make([][]sys.Address, len(p.addrs)), best: make([]int, len(p.addrs)), unix: p.opts.Unix != "",
		buf: make([]byte, readSize), idle: make([]connList, len(p.addrs)),
		due: never, now: nanotime(),
	}
	if p.script.https || p.opts.Protocol == HTTP2 {
		if l.opener, err = newOpener(p, poll); err != nil {
			poll.Close()
			return nil, err
		}
	}
	if p.opts.Protocol == HTTP2 {
		l.mux = &mux{blocks: p.script.blocks(), open: make([]int, len(p.addrs)), room: make([][]*session, len(p.addrs))}
	}
	for e, addrs := range p.addrs {
		for _, a := range addrs {
			l.addrs[e] = append(l.addrs[e], sys.TCP(a))
		}
		if l.unix {
			l.addrs[e] = []sys.Address{sys.Unix(p.opts.Unix)}
		}
	}
	share := p.opts.Connections / p.threads
	if i < p.opts.Connections%p.threads {
		share++
	}
	if p.open {
		l.maxOpen = share
		if !l.unix {
			l.inbox = new(sys.Inbox)
		}
		l.source = p.arrivals(i, p.threads)
		l.due = l.source.next()
	} else {
		l.maxOpen = math.MaxInt // as many requests as the share, each with one
		l.unstarted, l.waveAt = share, l.now
		if l.mux != nil {
			l.unstarted *= p.opts.Streams
		}
	}
	return l, nil
}

// close closes the connections and the poller.
func (l *loop) close() {
	for _, c := range l.conns {
		l.hangUp(c)
	}
	if l.opener != nil {
		l.opener.close()
	}
	l.poll.Close()
}

// run drives the loop's requests until the last has ended.
func (l *loop) run() {
	for n := 0; l.turn(n); n = l.await() {
	}
}

// turn acts on n reports of the poller and on the time. It reports whether
// there is more to do.
func (l *loop) turn(n int) bool {
	l.rec.Lock()
	defer l.rec.Unlock()
	for i := range n {
		l.clear(i) // lest what is due begins on a connection that is known to have ended
	}
	for i := range n {
		l.handle(i)
		l.launch(1) // for there may be many reports; the next may free a connection
	}
	l.now = nanotime()
	for range 1 + len(l.conns)/sys.MostReports { // what waits to be read came in time: the loop may have been stopped
		if !l.overdue() && !l.givesUp() {
			break
		}
		for i := range l.poll.Wait(0) {
			l.clear(i)
			l.handle(i)
		}
		l.now = nanotime()
	}
	l.expire()
	l.launch(64) // at most, lest answers wait
	return !l.finished()
}

// clear acts on report i of the poller where it is of an idle connection: closed by the
// server, or an answer to no request.
func (l *loop) clear(i int) {
	slot, generation, ready := l.poll.Event(i)
	if slot == openedSlot {
		return
	}
	c := l.conns[slot]
	if c.generation != generation || c.busy || ready&^sys.Writable == 0 {
		return
	}
	if c.session != nil {
		c.session.dead = c.session.dead || ready&sys.Hangup != 0
		return
	}
	if c.link == nil || ready&sys.Hangup != 0 || !l.silent(c) {
		l.idle[c.endpoint].remove(c)
		l.discard(c)
	}
}

// handle acts on report i of the poller where it is of a connection that carries a
// request.
func (l *loop) handle(i int) {
	slot, generation, ready := l.poll.Event(i)
	if slot == openedSlot {
		l.takeOpened()
		return
	}
	c := l.conns[slot]
	if c.generation == generation && c.session != nil {
		l.handleSession(c.session, ready)
		return
	}
	if c.generation != generation || !c.busy {
		return // gone, or idle
	}
	incoming := ready&^sys.Writable != 0
	c.ending = c.ending || ready&sys.Hangup != 0
	if c.sending() {
		l.flush(c)
	}
	if incoming && c.busy && c.generation == generation {
		l.receive(c)
	}
}

// await waits for reports or the time for something else, and returns the
// number of reports.
func (l *loop) await() int {
	spin := int64(l.plan.opts.Spin)
	if l.due-l.now <= spin {
		return l.spin()
	}
	return l.poll.Wait(time.Duration(min(l.due-spin, l.wake()) - l.now))
}

// spin looks for reports without waiting.
func (l *loop) spin() int {
	n := l.poll.Wait(0)
	before := l.now
	l.now = nanotime()
	if n == 0 && before >= l.plan.measure {
		l.rec.spun += l.now - before
	}
	return n
}

// wake is when the loop has to look at the time again, if nothing is due.
func (l *loop) wake() int64 {
	t := min(l.now+int64(longestWait), l.plan.giveUp())
	if !l.plan.ended(l.now) {
		t = min(t, l.plan.end.Load())
	}
	if l.resting > 0 {
		t = min(t, l.restUntil)
	}
	if l.unstarted > 0 && !l.over {
		t = min(t, l.waveAt)
	}
	if c := l.flight.first; c != nil && l.plan.opts.Timeout > 0 {
		t = min(t, c.out.start+int64(l.plan.opts.Timeout))
	}
	return max(t, l.now)
}

// givesUp reports whether requests in flight are about to be given up.
func (l *loop) givesUp() bool { return l.flight.first != nil && l.now >= l.plan.giveUp() }

// finished reports whether every request has ended and none will begin. When
// patience is at its end, it ends them.
func (l *loop) finished() bool {
	if l.now >= l.plan.giveUp() {
		l.abandon()
	}
	if l.flight.first != nil || !l.waiting.Empty() {
		return false
	}
	if l.plan.open {
		return l.due >= l.plan.closes()
	}
	return l.over || l.plan.ended(l.now)
}

// abandon ends what is due, waits or is in flight.
func (l *loop) abandon() {
	for _, t := range l.waiting.Drain() {
		l.rec.dropped(t, l.now)
	}
	for l.due <= l.now {
		if t, ok := l.arrive(); ok {
			l.rec.dropped(t, l.now)
		}
	}
	l.due = never
	for l.flight.first != nil {
		l.fail(l.flight.first, failTimeout, errGivenUp)
	}
}
