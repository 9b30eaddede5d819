package load

import (
	"fmt"
	"syscall"
	"time"

	"github.com/tarehq/tare/load/internal/dial"
	"github.com/tarehq/tare/load/internal/http1"
	"github.com/tarehq/tare/load/internal/nonblock"
	"github.com/tarehq/tare/load/internal/sys"
)

// conn is a slot for a connection and for the request that it carries; in HTTP/2 for one of
// the two.
type conn struct {
	ans http1.Answer
	out outcome

	slot, generation int32 // what the poller's reports carry
	fd               int   // negative: none
	endpoint         int
	at               int // of the endpoint's addresses, the one that is used
	tried            int // addresses that could not be reached

	opening *opening       // on its way; nil: none, or open
	link    *dial.Link     // what is sent and read goes through it; nil: it goes as it is
	sock    *nonblock.Conn // that link runs on

	session *session // HTTP/2: the connection
	on      *session // HTTP/2: what carries the request
	asked   *asked   // the request as on has it

	disordered uint32 // segments that had come out of order when that was last asked

	connecting bool
	blocked    bool // the poller is to report when it is writable again
	ending     bool // the server has closed its side
	own        bool // made for one request only
	used       bool // has carried a request before
	busy       bool // carries a request
	unsent     []byte
	tail       []byte // to be sent after it
	buf        []byte // the request, when it is not the script's own
	behind     []int  // targets of the requests sent with it, pipelined, whose answers come after

	prev, next *conn // in the one list that the connection is in
}

// connList is a list of connections by the links in them, so that moving one
// from list to list costs no allocation and no search.
type connList struct{ first, last *conn }

func (l *connList) push(c *conn) {
	c.prev, c.next = l.last, nil
	if l.last != nil {
		l.last.next = c
	} else {
		l.first = c
	}
	l.last = c
}

func (l *connList) remove(c *conn) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.last = c.prev
	}
	c.prev, c.next = nil, nil
}

// acquire finds a connection for a request: the one used last, for its caches
// are warm and the fewest connections are kept; or a slot for a new one. It
// returns nil when there may be no more.
func (l *loop) acquire(endpoint int, own bool) *conn {
	if l.mux != nil {
		return l.acquireStream(endpoint, own)
	}
	if c := l.idle[endpoint].last; c != nil && !own {
		l.idle[endpoint].remove(c)
		return c
	}
	if l.open >= l.maxOpen && !l.evict() {
		return nil
	}
	c := l.emptySlot()
	c.endpoint, c.own, c.at = endpoint, own, l.best[endpoint]
	l.open++
	return c
}

// evict closes an idle connection to make room for one that is asked for.
func (l *loop) evict() bool {
	for i := range l.idle {
		if c := l.idle[i].first; c != nil {
			l.idle[i].remove(c)
			l.discard(c)
			return true
		}
	}
	return false
}

func (l *loop) emptySlot() *conn {
	if c := l.free.last; c != nil {
		l.free.remove(c)
		return c
	}
	c := &conn{slot: int32(len(l.conns)), fd: -1}
	l.conns = append(l.conns, c)
	return c
}

// discard closes c, which is in no list, and frees its slot.
func (l *loop) discard(c *conn) {
	if c.on != nil {
		l.leave(c)
		return
	}
	if c.session != nil {
		c.session.dead, c.session = true, nil
		l.mux.open[c.endpoint]--
	}
	l.hangUp(c)
	c.used, c.tried = false, 0
	l.free.push(c)
	l.open--
}

// hangUp closes c's socket. The poller's reports of it may still be on their
// way: they are known by their generation.
func (l *loop) hangUp(c *conn) {
	if c.opening != nil {
		c.opening.cancel()
	}
	if c.link != nil {
		c.sayGoodbye()
	}
	if c.fd >= 0 {
		sys.Close(c.fd)
	}
	c.opening, c.link, c.sock = nil, nil, nil
	c.fd, c.connecting, c.blocked, c.ending, c.disordered = -1, false, false, false, 0
	c.generation++
}

// dial begins to connect c.
func (l *loop) dial(c *conn) error {
	fd, err := sys.Connect(&l.addrs[c.endpoint][c.at])
	if err != nil {
		return err
	}
	c.fd, c.connecting = fd, true
	return l.watch(c)
}

// watch has the poller report c's socket.
func (l *loop) watch(c *conn) error {
	if l.inbox != nil {
		if err := sys.Stamp(c.fd); err != nil { // a sandbox refuses, say: answers count from when they are read
			l.inbox = nil
			l.rec.caveats = append(l.rec.caveats, fmt.Errorf("having the kernel note when answers arrive: %w: they count from when the generator reads them", err))
		}
	}
	return l.poll.Add(c.fd, l.interest(c), c.slot, c.generation)
}

// interest is what the poller is to report of c. A TCP socket is writable but
// for rare moments, and the poller reports changes only, so asking for both
// costs nothing and saves a call. A Unix socket becomes writable anew each
// time the server reads: it is asked only when that is waited for.
func (l *loop) interest(c *conn) uint32 {
	if l.unix && !c.blocked {
		return sys.Readable
	}
	return sys.Readable | sys.Writable
}

// flush connects c if need be and sends what can be sent of its request.
func (l *loop) flush(c *conn) {
	if l.opener != nil {
		l.flushLink(c)
		return
	}
	for {
		err := l.attempt(c)
		if err == nil {
			return
		}
		if c.fd >= 0 && !c.connecting {
			l.receiveEarly(c)
			return
		}
		l.hangUp(c)
		if !l.elsewhere(c) {
			l.fail(c, failRefused, err)
			return
		}
	}
}

// receiveEarly reads what has come on c, on which nothing more can be sent: servers answer
// what they refuse to read, and close.
func (l *loop) receiveEarly(c *conn) {
	c.unsent, c.tail = nil, nil
	l.receive(c)
}

// elsewhere turns c to the next address of its endpoint, and with it who connects
// from now on, unless another connection found out before that c's cannot be reached:
// many may try one address at a time. It reports false when c has tried all.
func (l *loop) elsewhere(c *conn) bool {
	n, best := len(l.addrs[c.endpoint]), &l.best[c.endpoint]
	next := (c.at + 1) % n
	if *best == c.at {
		*best = next
	}
	c.at = next
	c.tried++
	return c.tried < n
}

// attempt is one try at flush, with one of the endpoint's addresses.
func (l *loop) attempt(c *conn) error {
	if c.fd < 0 {
		if err := l.dial(c); err != nil {
			return err
		}
	}
	for len(c.unsent) > 0 {
		n, e := sys.Send(c.fd, c.unsent)
		switch e {
		case 0:
		case syscall.EAGAIN:
			return l.block(c)
		case syscall.EINTR:
			continue
		default:
			return e
		}
		if c.connecting {
			c.connecting = false
			l.rec.connected(nanotime() - c.out.start)
		}
		c.out.bytesOut += int64(n)
		if c.unsent = c.unsent[n:]; len(c.unsent) == 0 {
			c.unsent, c.tail = c.tail, nil
		}
	}
	return nil
}

// block waits for c to become writable.
func (l *loop) block(c *conn) error {
	if !l.unix || c.blocked {
		return nil
	}
	c.blocked = true
	return l.poll.Rearm(c.fd, l.interest(c), c.slot, c.generation)
}

// receive reads what has come on c, a bounded part at a time.
func (l *loop) receive(c *conn) {
	if c.link != nil {
		l.receiveLink(c)
		return
	}
	const turn = 16 // reads, until the other connections have theirs
	for range turn {
		n, e := l.read(c, l.buf)
		switch {
		case e == syscall.EAGAIN:
			return
		case e == syscall.EINTR:
			continue
		case e != 0:
			l.fail(c, broken(&c.ans), c.ans.Cause(e))
			return
		case n == 0:
			l.ended(c)
			return
		}
		if l.feed(c, l.buf[:n]) || n < len(l.buf) && !c.ending {
			return // over, or the poller will report more
		}
	}
	if err := l.poll.Rearm(c.fd, l.interest(c), c.slot, c.generation); err != nil {
		l.fail(c, broken(&c.ans), err)
	}
}

// read reads what has come on c, and notes when the last of it did.
//
// Note: in the open loop that is when the kernel had it. Behind a server that took
// 1 ms, on a machine whose host was busy, the loop got the processor late enough to
// read one answer in a hundred 0.2 to 2 ms after it had come, and the response
// times said so of the server. In the closed loop nothing is sent before an answer
// is read, so that is where its time ends, and a plain read takes less.
func (l *loop) read(c *conn, b []byte) (int, syscall.Errno) {
	if l.inbox == nil {
		n, e := sys.Recv(c.fd, b)
		l.now = nanotime()
		l.arrived = l.now
		return n, e
	}
	n, stamp, e := l.inbox.Recv(c.fd, b)
	now := time.Now()
	l.now = int64(now.Sub(epoch))
	l.arrived = l.now
	// A clock that was set meanwhile puts the stamp anywhere.
	at := l.now - (now.UnixNano() - stamp)
	if stamp > 0 && at > c.out.start && at < l.now && (l.now-at < soonRead || !disordered(c)) {
		l.arrived = at
	}
	return n, e
}

// soonRead is how late an answer may be read without a look at whether its
// segments came in order.
const soonRead = int64(100 * time.Microsecond)

// disordered reports whether segments on c may have come before one that goes
// before them, since the last call. The stamp is the last one's: behind a segment
// that was lost and sent again it tells of a time when the answer was not whole.
func disordered(c *conn) bool {
	n, ok := sys.Disordered(c.fd)
	if ok && n == c.disordered {
		return false
	}
	c.disordered = n
	return true
}

// feed reads an answer on, and those of the requests behind it. It reports
// whether c's requests are over.
func (l *loop) feed(c *conn, b []byte) bool {
	for {
		if c.out.firstByte == 0 {
			c.out.firstByte = l.arrived
		}
		n, done, err := l.parser.Feed(&c.ans, b)
		exact, more := n == len(b), done && c.ans.Keep && len(c.behind) > 0
		if !more {
			n = len(b) // what comes behind the last answer belongs to it
		}
		c.out.bytesIn += int64(n)
		switch {
		case err != nil:
			l.fail(c, failMalformed, err)
			return true
		case !done:
			return false
		case !more:
			l.complete(c, exact)
			return true
		}
		l.proceed(c)
		if b = b[n:]; len(b) == 0 {
			return false
		}
	}
}

// ended acts on the end of a connection that carries a request.
func (l *loop) ended(c *conn) {
	if l.parser.EOF(&c.ans) {
		l.complete(c, false)
		return
	}
	l.fail(c, broken(&c.ans), c.ans.Cause(nil))
}
