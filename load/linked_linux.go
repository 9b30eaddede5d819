package load

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/tarehq/tare/load/internal/dial"
	"github.com/tarehq/tare/load/internal/nonblock"
	"github.com/tarehq/tare/load/internal/sys"
)

// openedSlot is what the poller's reports carry that tell of opened connections.
const openedSlot = -1

// onePiece is how much of a request is encrypted at once: the rest of a long body waits
// until that is sent.
const onePiece = 32 << 10

// opener opens an event loop's connections on goroutines of their own, for a TLS handshake
// waits. The loop then drives what crypto/tls made.
//
// Note: a goroutine a connection, that waits for each answer too, took a third more CPU time
// a request.
type opener struct {
	dialer *dial.Dialer
	waker  *sys.Waker
	ctx    context.Context
	stop   context.CancelFunc
	going  sync.WaitGroup

	mu   sync.Mutex
	done []*opening
}

// opening is a connection that is being opened. done has taken it when its fields are the
// loop's.
type opening struct {
	slot, generation int32
	link             *dial.Link
	cancel           context.CancelFunc
	fd               int
	err              error
}

func newOpener(p *plan, poll *sys.Poller) (*opener, error) {
	waker, err := sys.NewWaker(poll, openedSlot)
	if err != nil {
		return nil, err
	}
	o := &opener{dialer: newDialer(p), waker: waker}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o, nil
}

// start begins to open a connection to endpoint i.
func (o *opener) start(ctx context.Context, to *opening, i int) {
	o.going.Go(func() {
		defer to.cancel()
		if to.err = o.dialer.Open(ctx, to.link, i); to.err == nil {
			to.fd, to.err = sys.Detach(to.link.Wire.Conn)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.done = append(o.done, to)
		o.waker.Wake()
	})
}

// take returns what has been opened, or could not be, since the last call.
func (o *opener) take() []*opening {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := o.done
	o.done = nil
	return done
}

// close gives up what is being opened.
func (o *opener) close() {
	o.stop()
	o.going.Wait()
	for _, to := range o.take() {
		to.discard()
	}
	o.waker.Close()
}

// discard closes what nobody waits for any more.
func (to *opening) discard() {
	if to.err == nil {
		sys.Close(to.fd)
	}
}

// late is that the opening took too long, and what it was waiting for.
func (to *opening) late() error {
	if to.link.Reached.Load() {
		return &dial.HandshakeError{Err: os.ErrDeadlineExceeded}
	}
	return os.ErrDeadlineExceeded
}

// openLink begins to open c, for its request.
func (l *loop) openLink(c *conn) {
	ctx, cancel := l.plan.bounded(l.opener.ctx, c.out.start)
	c.opening = &opening{slot: c.slot, generation: c.generation, link: new(dial.Link), cancel: cancel}
	l.opener.start(ctx, c.opening, c.endpoint)
}

// takeOpened takes the connections over that have been opened.
func (l *loop) takeOpened() {
	l.now = nanotime()
	for _, to := range l.opener.take() {
		c := l.conns[to.slot]
		if c.generation != to.generation {
			to.discard()
			continue
		}
		c.opening = nil
		err := l.takeOver(c, to)
		if c.session != nil {
			l.openedSession(c.session, err)
			continue
		}
		if err != nil {
			k := connectFailure(err)
			if k != failRefused {
				err = dial.Explain(l.plan.script.endpoints[c.endpoint], err)
			}
			l.fail(c, k, err)
			continue
		}
		l.flush(c)
	}
}

// takeOver makes c the connection that was opened.
func (l *loop) takeOver(c *conn, to *opening) error {
	if to.err != nil {
		return to.err
	}
	l.rec.connected(int64(to.link.Connect))
	if to.link.Handshake > 0 {
		l.rec.handshaken(int64(to.link.Handshake), to.link.Resumed)
	}
	c.fd, c.link = to.fd, to.link
	c.sock = nonblock.New(socket{l, c}, c.link.Wire.Conn)
	c.link.Wire.Conn = c.sock
	return l.watch(c)
}

// socket is a connection's socket as its link uses it.
type socket struct {
	l *loop
	c *conn
}

// Recv implements nonblock.Socket.
func (s socket) Recv(p []byte) (int, syscall.Errno) { return s.l.read(s.c, p) }

// Send implements nonblock.Socket.
func (s socket) Send(p []byte) (int, syscall.Errno) { return sys.Send(s.c.fd, p) }

// sending reports whether a part of c's request has not been sent.
func (c *conn) sending() bool {
	return len(c.unsent) > 0 || c.sock != nil && c.sock.Unsent() > 0
}

// countBytes takes what passed over c's link as its request's.
func (c *conn) countBytes() {
	link := c.link
	if c.on != nil {
		link, c.on.fresh = c.on.slot.link, false
	}
	if link != nil {
		c.out.bytesIn, c.out.bytesOut = link.Wire.Take()
	}
}

// sayGoodbye tells the server of c's end, in order: not within a request. It waits for
// nothing.
func (c *conn) sayGoodbye() {
	if tc, ok := c.link.Conn.(*tls.Conn); ok && !c.sending() {
		tc.CloseWrite()
		c.sock.Flush()
	}
}

// flushLink opens c's link if need be and sends what can be sent of its request.
func (l *loop) flushLink(c *conn) {
	if c.link == nil {
		if c.opening == nil {
			l.openLink(c)
		}
		return
	}
	for {
		err := c.sock.Flush()
		if err == nil && c.sock.Unsent() > 0 {
			err = l.block(c)
			if err == nil {
				return
			}
		}
		if err == nil && len(c.unsent) == 0 {
			return
		}
		if err == nil {
			n := min(len(c.unsent), onePiece)
			_, err = c.link.Write(c.unsent[:n])
			if c.unsent = c.unsent[n:]; len(c.unsent) == 0 {
				c.unsent, c.tail = c.tail, nil
			}
		}
		if err != nil {
			c.ending = true // it carries no other
			c.sock.Drop()
			l.receiveEarly(c)
			return
		}
	}
}

// receiveLink reads what has come on c.
func (l *loop) receiveLink(c *conn) {
	c.sock.Ready(c.ending)
	l.arrived = l.now // of what was read and not decrypted before
	for {
		n, err := c.link.Read(l.buf)
		c.ending = c.ending || err == io.EOF
		if n > 0 && l.feed(c, l.buf[:n]) {
			return
		}
		switch {
		case err == nil:
			continue
		case err == nonblock.ErrWait:
			l.awaitMore(c)
		case err == io.EOF:
			l.ended(c)
		default:
			if op, ok := err.(*net.OpError); ok { // an alert
				err = op.Err
			}
			l.fail(c, broken(&c.ans), c.ans.Cause(err))
		}
		return
	}
}

// awaitMore has the poller report c when more of its answer is there, and sends what
// reading had its link write.
func (l *loop) awaitMore(c *conn) {
	if c.sock.More() {
		if err := l.poll.Rearm(c.fd, l.interest(c), c.slot, c.generation); err != nil {
			l.fail(c, broken(&c.ans), err)
			return
		}
	}
	if c.sock.Unsent() > 0 {
		l.flush(c)
	}
}

// silent reports whether nothing has come on c, which is idle, but what TLS says to keep
// the connection.
func (l *loop) silent(c *conn) bool {
	c.sock.Ready(false)
	n, err := c.link.Read(l.buf)
	return n == 0 && err == nonblock.ErrWait && c.sock.Flush() == nil
}
