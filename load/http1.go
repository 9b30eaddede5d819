package load

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"time"

	"github.com/tarehq/tare/load/internal/dial"
	"github.com/tarehq/tare/load/internal/http1"
)

const (
	// maxRead is how much of an answer is read at once.
	maxRead = 16 << 10
	// lookAfter is how long after a request the next on its connection comes late
	// enough that the server may have closed it in between: a look then takes a
	// thousandth of that time.
	lookAfter = int64(time.Millisecond)
)

// http1Exchanger sends one worker's requests.
type http1Exchanger struct {
	engine *netEngine
	rec    *recorder
	cursor *cursor
	parser *http1.Parser
	pool   *http1Pool // closed loop: its own; open loop: all workers'
	req    []byte     // room for a request with fields
	buf    []byte     // what is read
	answer http1.Answer
}

// http1Conn is a connection and whether it has carried a request.
type http1Conn struct {
	*dial.Link
	carried bool
	begun   int64       // its last request
	cut     bool        // within a request: what is still to be sent will not be
	forget  func() bool // ends the watch for the run's end
}

// runGoroutines is the engine for HTTP/1.1 over package net.
func runGoroutines(p *plan) (closeAll func(), err error) {
	e := newNetEngine(p)
	pool := func() *http1Pool { return newHTTP1Pool(len(e.script.endpoints), math.MaxInt) }
	if p.open {
		shared := newHTTP1Pool(len(e.script.endpoints), e.workers)
		pool = func() *http1Pool { return shared }
	}
	e.exchanger = func(k int, rec *recorder) exchanger {
		return &http1Exchanger{
			engine: e, rec: rec, cursor: e.script.cursor(k), parser: e.script.parser(p.opts.MaxAnswer),
			pool: pool(), buf: make([]byte, maxRead),
		}
	}
	return e.drive(), nil
}

func (x *http1Exchanger) close() { x.pool.close() }

// shut closes the connection; in order only after a whole answer to a whole
// request, for the TLS layer says goodbye and waits up to five seconds for a peer
// that does not read.
func (c *http1Conn) shut(inOrder bool) {
	c.forget()
	if inOrder && !c.cut {
		c.Close()
	}
	c.Wire.Close()
}

// exchange implements exchanger.
func (x *http1Exchanger) exchange(o *outcome) (failure, error) {
	alone := x.cursor.closing()
	var req, tail []byte
	var target int
	if alone {
		req, tail, target = x.cursor.nextClosing(&x.req)
	} else {
		req, tail, target = x.cursor.next(&x.req)
	}
	i := x.engine.script.targets[target].endpoint
	c := x.pool.take(i, alone, o.start)
	if c == nil {
		var err error
		if c, err = x.open(i, o.start); err != nil {
			x.pool.leave()
			return connectFailure(err), dial.Explain(x.engine.script.endpoints[i], err)
		}
	}
	o.reused, c.carried, c.begun = c.carried, true, o.start
	x.answer.Begin(target)
	kind, err := x.converse(c, [2][]byte{req, tail}, o)
	o.bytesIn, o.bytesOut = c.Wire.Take()
	if err == nil && x.answer.Keep && !alone {
		x.pool.put(i, c)
	} else {
		c.shut(err == nil)
		x.pool.leave()
	}
	return kind, err
}

// open connects to endpoint i for a request that began at start.
func (x *http1Exchanger) open(i int, start int64) (*http1Conn, error) {
	ctx, cancel := x.engine.bounded(start)
	defer cancel()
	l, err := x.engine.dialer.Dial(ctx, i)
	if err != nil {
		return nil, err
	}
	x.engine.opened(x.rec, l)
	c := &http1Conn{Link: l}
	c.forget = context.AfterFunc(x.engine.abandoned, func() { l.Wire.SetDeadline(time.Unix(1, 0)) })
	return c, nil
}

// converse sends the parts of a request on c and reads the answer.
func (x *http1Exchanger) converse(c *http1Conn, req [2][]byte, o *outcome) (failure, error) {
	c.Wire.SetDeadline(x.engine.plan.deadline(o.start))
	if err := x.engine.abandoned.Err(); err != nil {
		return failTimeout, err // the watch may have come before SetDeadline
	}
	if len(req[0])+len(req[1]) >= longBody {
		return x.converseLong(c, req, o)
	}
	unsent := c.send(req)
	if unsent != nil && dial.IsTimeout(unsent) {
		return x.broken(unsent)
	}
	kind, err := x.receive(c, o)
	return x.conclude(kind, err, unsent)
}

// converseLong reads while it sends: a server may answer before it has read all of
// a request, and read no more of it. What is unsent then stays so.
func (x *http1Exchanger) converseLong(c *http1Conn, req [2][]byte, o *outcome) (failure, error) {
	sent := make(chan error, 1)
	go func() { sent <- c.send(req) }()
	kind, err := x.receive(c, o)
	c.Wire.SetWriteDeadline(time.Unix(1, 0))
	unsent := <-sent
	c.cut = unsent != nil
	if err != nil && unsent != nil && dial.IsTimeout(unsent) {
		unsent = nil // it was ended by what ended the reading
	}
	return x.conclude(kind, err, unsent)
}

// conclude is how a request ended, of which unsent kept a part from being sent.
func (x *http1Exchanger) conclude(kind failure, err, unsent error) (failure, error) {
	x.answer.Keep = x.answer.Keep && unsent == nil
	if err != nil && unsent != nil && kind != failMalformed {
		return x.broken(unsent)
	}
	return kind, err
}

// send sends the parts of a request.
func (c *http1Conn) send(req [2][]byte) error {
	_, err := c.Write(req[0])
	if err == nil && len(req[1]) > 0 {
		_, err = c.Write(req[1])
	}
	return err
}

// receive reads an answer. A server may answer and close before it has read all of
// a request.
func (x *http1Exchanger) receive(c *http1Conn, o *outcome) (failure, error) {
	a := &x.answer
	for {
		n, err := c.Read(x.buf)
		if n > 0 && o.firstByte == 0 {
			o.firstByte = nanotime()
		}
		used, done, bad := x.parser.Feed(a, x.buf[:n])
		if bad != nil {
			return failMalformed, bad
		}
		if !done && err == io.EOF {
			done = x.parser.EOF(a)
		}
		if done {
			a.Keep = a.Keep && used == n && err == nil
			o.status, o.verified = a.Status, a.Verified
			return 0, nil
		}
		if err != nil {
			return x.broken(err)
		}
	}
}

// broken sorts err, with which the conversation ended.
func (x *http1Exchanger) broken(err error) (failure, error) {
	if dial.IsTimeout(err) {
		return failTimeout, lateAnswer(x.engine.plan.opts.Timeout)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return broken(&x.answer), x.answer.Cause(err)
}
