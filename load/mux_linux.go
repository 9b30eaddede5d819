package load

import (
	"errors"
	"fmt"
	"io"

	"github.com/tarehq/tare/load/internal/block"
	"github.com/tarehq/tare/load/internal/check"
	"github.com/tarehq/tare/load/internal/dial"
	"github.com/tarehq/tare/load/internal/h2"
	"github.com/tarehq/tare/load/internal/nonblock"
	"github.com/tarehq/tare/load/internal/sys"
	"golang.org/x/net/http2/hpack"
)

// mux is an event loop's HTTP/2 connections.
type mux struct {
	blocks *block.Blocks
	open   []int        // sessions by endpoint
	room   [][]*session // by endpoint: took another request when they were put in; the last used last
	dirty  []*session   // may have something to send
}

// session is an HTTP/2 connection. It has a slot of its own, and each of its requests has one.
type session struct {
	slot    *conn // whose socket and link it uses
	h2      *h2.Conn
	streams int   // requests that it has, waiting ones too
	begun   int64 // when it began to be opened
	heard   int64 // when something came last
	alone   bool  // made for one request only
	dead    bool  // it takes no more requests
	carried bool  // it has had one
	idle    bool  // its slot is among the idle
	listed  bool  // in room
	dirty   bool
	feeding bool // what has come is being taken in
	fresh   bool // bytes have come that are no request's yet
}

// asked is a request on a session, as HTTP/2 sees it.
type asked struct {
	stream h2.Stream
	loop   *loop
	conn   *conn
	target int
	record []string // that fills its fields
	whole  []byte   // the body
	buf    []byte   // room for one

	idle   int   // sessions in a row that ended before they took any request
	size   int64 // of the answer's body so far
	checks bool  // it is verified
	body   check.Stream
}

// acquireStream finds a slot for a request on a session that has room, or on a new one. It
// returns nil when there may be no more.
func (l *loop) acquireStream(endpoint int, own bool) *conn {
	if l.plan.open && l.free.last == nil && len(l.conns) >= maxStreams/l.plan.threads {
		return nil // a server that stands still would take all memory
	}
	s := l.roomy(endpoint)
	if s == nil || own {
		// Where there is a session already, a request waits for that one rather than have
		// another endpoint's make room.
		full := l.open >= l.maxOpen
		if full && (!own && l.mux.open[endpoint] > 0 || !l.evict()) {
			return nil
		}
		s = l.newSession(endpoint, own)
	}
	c := l.emptySlot()
	c.endpoint, c.own = endpoint, own
	if c.asked == nil {
		c.asked = &asked{loop: l, conn: c}
		c.asked.stream.Request, c.asked.stream.Sink = c.asked, c.asked
	}
	l.join(c, s)
	return c
}

// roomy is a session that takes another request; nil: there is none.
func (l *loop) roomy(endpoint int) *session {
	list := l.mux.room[endpoint]
	for len(list) > 0 {
		s := list[len(list)-1]
		if l.hasRoom(s) {
			break
		}
		s.listed = false
		list = list[:len(list)-1]
	}
	l.mux.room[endpoint] = list
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// hasRoom reports whether s takes another request.
func (l *loop) hasRoom(s *session) bool {
	return !s.dead && !s.alone && !s.h2.Leaving() && s.streams < l.plan.opts.Streams
}

// newSession is a session that will be opened for its first request.
func (l *loop) newSession(endpoint int, own bool) *session {
	c := l.emptySlot()
	s := &session{slot: c, h2: h2.New(l.mux.blocks.Need()), alone: own, begun: l.now}
	c.endpoint, c.session = endpoint, s
	c.out.start = l.now // its opening has as much time as a request
	l.open++
	l.mux.open[endpoint]++
	l.list(s)
	return s
}

// list puts s among those with room, if it has.
func (l *loop) list(s *session) {
	if e := s.slot.endpoint; !s.listed && l.hasRoom(s) {
		s.listed = true
		l.mux.room[e] = append(l.mux.room[e], s)
	}
}

// join makes c a request of s.
func (l *loop) join(c *conn, s *session) {
	if s.idle {
		s.idle = false
		l.idle[c.endpoint].remove(s.slot)
	}
	s.streams++
	c.on = s
}

// leave ends c's part in its session and frees its slot.
func (l *loop) leave(c *conn) {
	s := c.on
	s.h2.Cancel(&c.asked.stream)
	c.on = nil
	l.free.push(c)
	s.streams--
	l.mark(s)
	l.settle(s)
}

// settle acts on what has become of s: without requests it is idle, or ends.
func (l *loop) settle(s *session) {
	c := s.slot
	switch {
	case s.feeding || c.session != s: // it will be settled, or is gone
	case s.streams > 0:
		l.list(s)
	case s.dead || s.alone || s.h2.Leaving() || c.opening != nil:
		if s.idle {
			l.idle[c.endpoint].remove(c)
		}
		if c.sock != nil && c.sock.Unsent() == 0 { // a last word, if it can be
			c.link.Write(s.h2.Out)
			c.sock.Flush()
		}
		l.discard(c)
	case !s.idle:
		s.idle = true
		l.idle[c.endpoint].push(c)
		l.list(s)
	}
}

// ask begins c's request on its session.
func (l *loop) ask(c *conn, d *draft) {
	a, b := c.asked, l.plan.script.targets[d.target]
	a.target, a.record, a.whole, a.stream.Bodiless = d.target, d.record, b.tail, b.head
	a.size, a.idle = 0, 0
	if len(b.body) > 0 {
		a.buf = b.body.AppendTo(a.buf[:0], d.record)
		a.whole = a.buf
	}
	l.send(c)
}

// send gives c's request to its session, which sends it as soon as the server allows.
func (l *loop) send(c *conn) {
	s := c.on
	c.out.reused, s.carried = s.carried, true
	c.out.streams = 0
	if s.h2.Full() {
		c.out.streams = s.h2.Allowed()
	}
	c.asked.stream.Body = c.asked.whole
	if !s.h2.Start(&c.asked.stream) {
		l.move(c)
		return
	}
	l.mark(s)
}

// move takes c's request, which has not been sent, to another session: a new one if need be,
// as if the last had closed.
func (l *loop) move(c *conn) {
	c.on.streams--
	s := l.roomy(c.endpoint)
	if s == nil || c.own {
		s = l.newSession(c.endpoint, c.own)
	}
	l.join(c, s)
	l.send(c)
}

// mark has what s wrote be sent with what others of its requests write.
func (l *loop) mark(s *session) {
	if !s.dirty {
		s.dirty = true
		l.mux.dirty = append(l.mux.dirty, s)
	}
}

// flushSessions sends what sessions wrote.
func (l *loop) flushSessions() {
	for i := 0; i < len(l.mux.dirty); i++ { // more may come meanwhile
		s := l.mux.dirty[i]
		s.dirty = false
		if s.slot.session == s {
			l.flushSession(s)
		}
	}
	l.mux.dirty = l.mux.dirty[:0]
}

// flushSession opens s if need be and sends what can be sent.
func (l *loop) flushSession(s *session) {
	c := s.slot
	if c.link == nil {
		if c.opening == nil {
			l.openLink(c)
		}
		return
	}
	for {
		if c.sock.Unsent() == 0 {
			if len(s.h2.Out) == 0 {
				s.h2.Fill()
			}
			if len(s.h2.Out) == 0 {
				return
			}
			c.link.Write(s.h2.Out) // an error of TLS's comes with the next reading, too
			s.h2.Out = s.h2.Out[:0]
		}
		err := c.sock.Flush()
		if err == nil && c.sock.Unsent() > 0 {
			if err = l.block(c); err == nil {
				return
			}
		}
		if err != nil { // there may be answers all the same
			s.dead, c.ending = true, true
			c.sock.Drop()
			s.h2.Out = s.h2.Out[:0]
			l.receiveSession(s)
			return
		}
	}
}

// handleSession acts on a report of s's socket.
func (l *loop) handleSession(s *session, ready uint32) {
	c := s.slot
	if c.sock == nil {
		return
	}
	c.ending = c.ending || ready&sys.Hangup != 0
	if c.sock.Unsent() > 0 {
		l.mark(s)
	}
	if ready&^sys.Writable != 0 {
		l.receiveSession(s)
	}
}

// receiveSession reads what has come on s.
func (l *loop) receiveSession(s *session) {
	c := s.slot
	c.sock.Ready(c.ending)
	l.arrived = l.now
	s.feeding = true
	for {
		n, err := c.link.Read(l.buf)
		if n > 0 {
			s.heard, s.fresh = l.now, true
			if s.h2.Feed(l.buf[:n]) != nil {
				s.dead = true
				break
			}
		}
		if err == nil {
			continue
		}
		if err == nonblock.ErrWait && c.sock.More() {
			err = l.poll.Rearm(c.fd, l.interest(c), c.slot, c.generation)
		}
		if err != nil && err != nonblock.ErrWait {
			s.dead = true
			s.h2.Close(&h2.BrokenError{Err: cutBy(err)})
		}
		break
	}
	s.feeding = false
	l.mark(s)
	l.settle(s)
}

// cutBy is err, or what stands for it when the connection just ended.
func cutBy(err error) error {
	if err == io.EOF {
		return errors.New("the server closed the connection")
	}
	return dial.BareCause(err)
}

// openedSession takes over the connection that was opened for s, or could not be.
func (l *loop) openedSession(s *session, err error) {
	if err != nil {
		s.dead = true
		s.h2.Close(&connectError{err})
		l.settle(s)
		return
	}
	l.receiveSession(s) // the server may have said what it allows
	if s.slot.session == s {
		s.h2.Begin()
	}
}

// AppendHead implements h2.Request.
func (a *asked) AppendHead(dst []byte, t h2.Table) []byte {
	return a.loop.mux.blocks.Append(dst, a.target, t, block.Filling{Record: a.record, Size: len(a.whole)})
}

// Head implements h2.Sink.
func (a *asked) Head(status int, fields []hpack.HeaderField) error {
	ans, c := &a.conn.ans, &a.loop.plan.script.verify[a.target]
	a.conn.out.firstByte = a.loop.when(a.conn)
	ans.Started, ans.Status = true, status
	ans.Verified = c.ListOK(status, fields)
	if a.checks = c.NeedsBody(); a.checks {
		a.body.Reset(c)
	}
	return nil
}

// Body implements h2.Sink.
func (a *asked) Body(p []byte) error {
	if a.size += int64(len(p)); a.size > a.loop.plan.opts.MaxAnswer {
		return errAnswerTooLong
	}
	if a.checks {
		a.body.Write(p)
	}
	return nil
}

// End implements h2.Sink.
func (a *asked) End(err error) {
	l, c := a.loop, a.conn
	switch {
	case err == nil:
		c.ans.Verified = c.ans.Verified && (!a.checks || a.body.OK())
		l.complete(c, true)
	case err == h2.ErrUnsent && c.on.h2.Used():
		a.idle = 0
		l.move(c)
	case err == h2.ErrUnsent && a.idle+1 < idleConns:
		a.idle++
		l.move(c)
	case err == h2.ErrUnsent:
		l.failStream(c, &h2.BrokenError{Err: err})
	default:
		l.failStream(c, err)
	}
}

// failStream ends c's request, which err ended.
func (l *loop) failStream(c *conn, err error) {
	ep := l.plan.script.endpoints[c.endpoint]
	if ce, ok := errors.AsType[*connectError](err); ok {
		k := connectFailure(ce)
		switch {
		case k == failTimeout && c.out.start > c.on.begun: // its own time is not up
			l.move(c)
		case k == failRefused: // which fail explains
			l.fail(c, k, ce.error)
		default:
			l.fail(c, k, dial.Explain(ep, ce.error))
		}
		return
	}
	k := failMalformed
	if _, ok := errors.AsType[*h2.BrokenError](err); ok {
		k = broken(&c.ans)
	}
	switch {
	case errors.Is(err, h2.ErrRefused):
		err = fmt.Errorf("%w: if the server allows fewer streams at a time, ask for fewer", err)
	case !c.on.h2.Settled() && !ep.TLS: // by TLS HTTP/2 was agreed on
		err = fmt.Errorf("%w: if the server does not speak HTTP/2 on this port, use the other HTTP version", err)
	}
	l.fail(c, k, err)
}
