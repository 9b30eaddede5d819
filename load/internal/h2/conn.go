// Package h2 speaks HTTP/2 as a client, without input and output of its own: the caller
// feeds a connection what came, and sends what it wrote.
//
// It follows RFC 9113 and RFC 7541. What breaks them ends the connection, or the one
// request where that is enough.
package h2

import (
	"errors"
	"fmt"

	"golang.org/x/net/http2/hpack"
)

const (
	// streamWindow is what a server may send on a stream ahead of what was read, and
	// connWindow on all of a connection together.
	streamWindow = 4 << 20
	connWindow   = 1 << 30
	firstWindow  = 1<<16 - 1 // before anything is said
	maxWindow    = 1<<31 - 1

	// maxHead bounds an answer's header, encoded and decoded.
	maxHead = 64 << 10
	// ownFrame is the largest frame that is taken, which is the least that may be.
	ownFrame = 16 << 10
	// unknownStreams is how many streams begin before the server has said how many it
	// allows: as few as RFC 9113 recommends at least.
	unknownStreams = 100
	// enough is how much is written ahead of what is sent: the rest of a body waits. With one
	// frame more it fits what a socket's buffer keeps.
	enough = 16 << 10
	// flooded is how much is written to a server that asks for it and does not read.
	flooded = 1 << 20

	lastStream = 1<<31 - 1
	tableSize  = 4096 // of the header table, unless the server says less
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// ErrNotHTTP2 tells that the server's first bytes are not HTTP/2's.
var ErrNotHTTP2 = errors.New("the server does not begin with HTTP/2's settings")

// ErrUnsent ends a request that was not sent, because the connection takes no more.
var ErrUnsent = errors.New("the connection takes no more requests")

// ErrRefused is within a BrokenError when the server did not read the request.
var ErrRefused = errors.New("the server refused the stream")

// BrokenError ends a request whose stream or connection ended before its answer was whole.
type BrokenError struct{ Err error }

func (e *BrokenError) Error() string { return e.Err.Error() }
func (e *BrokenError) Unwrap() error { return e.Err }

// Sink takes in an answer. Its methods are called within those of the connection.
type Sink interface {
	// Head takes the status, 200 to 599, and the fields, which are not the sink's to keep.
	// An error ends the stream.
	Head(status int, fields []hpack.HeaderField) error
	// Body takes the next part of the body, which is not the sink's to keep. An error ends
	// the stream.
	Body(p []byte) error
	// End tells that the stream has ended, with a whole answer if err is nil.
	End(err error)
}

// Table says what a header block may do with the connection's table of fields.
type Table uint8

// What a block does with the table.
const (
	Bare Table = iota // nothing
	Fill              // puts the fields in that requests share
	Kept              // refers to them
)

// Request is what is asked for.
type Request interface {
	// AppendHead appends the header block to dst.
	AppendHead(dst []byte, t Table) []byte
}

// Stream is a request and its answer. A connection has it from Start to the sink's End, or
// to Cancel; then it may be used again.
type Stream struct {
	Request  Request
	Sink     Sink
	Body     []byte // of the request; kept until the stream has ended
	Bodiless bool   // the answer has no body whatever its header says, as one to HEAD

	id      uint32 // 0: not open
	waits   bool   // for the server to allow one more
	held    bool   // among those whose body waits
	headed  bool   // the answer's header has come
	window  int64  // what may be sent
	unacked int64  // what came since the server was last told that it was read
	left    int64  // of the answer's body by Content-Length; negative: unknown
}

// Conn is a connection. It is for one goroutine.
type Conn struct {
	// Out is what is to be sent, from the first byte on. The caller empties it, and then
	// calls Fill.
	Out []byte

	open    openStreams
	waiting []*Stream // for the server to allow more, in their order
	bodies  []*Stream // whose bodies wait for a window, or for Out
	next    uint32    // stream
	err     error     // what ended the connection
	leaving bool      // no more requests begin

	begun    bool // requests are sent
	settled  bool // the server has said what follows
	allowed  int  // streams at a time
	initial  int64
	maxFrame int

	window  int64 // what may be sent, on all streams
	unacked int64 // what came since the server was last told that it was read

	need    int  // what Fill takes of the server's table, in bytes
	filled  bool // it has been sent
	bare    bool // the server's table is too small
	resized int  // to what the table is to be set with the next header; negative: as it is

	in  input
	dec *decoder
}

// New is a connection whose requests put need bytes into the server's table of fields.
func New(need int) *Conn {
	c := &Conn{
		next: 1, allowed: unknownStreams, initial: firstWindow, maxFrame: ownFrame,
		window: firstWindow, need: need, bare: need > tableSize, resized: -1, dec: newDecoder(),
	}
	c.Out = append(c.Out, preface...)
	c.Out = appendFrame(c.Out, frameHeader{length: 18, kind: frameSettings})
	c.Out = appendSetting(c.Out, settingPush, 0)
	c.Out = appendSetting(c.Out, settingWindow, streamWindow)
	c.Out = appendSetting(c.Out, settingHead, maxHead)
	c.windowUpdate(0, connWindow-firstWindow)
	return c
}

// Settled reports whether the server has said that it speaks HTTP/2.
func (c *Conn) Settled() bool { return c.settled }

// Leaving reports whether the connection takes no more requests.
func (c *Conn) Leaving() bool { return c.leaving }

// Used reports whether a request was sent.
func (c *Conn) Used() bool { return c.next > 1 }

// Full reports whether the next request will wait for another to end.
func (c *Conn) Full() bool { return c.begun && c.open.n >= c.allowed }

// Begin has the requests that were started, and will be, be sent. Until then they wait: what
// the server allows may come before.
func (c *Conn) Begin() {
	c.begun = true
	c.admit()
}

// Allowed is how many streams the server allows at a time, as far as is known.
func (c *Conn) Allowed() int { return c.allowed }

// Start sends s's request, or has it wait until the server allows one more stream. It
// reports false, and has done nothing, if the connection takes no more.
func (c *Conn) Start(s *Stream) bool {
	if c.leaving {
		return false
	}
	s.id, s.waits, s.held, s.headed, s.unacked, s.left = 0, false, false, false, 0, -1
	if !c.begun || c.Full() || len(c.waiting) > 0 {
		s.waits = true
		c.waiting = append(c.waiting, s)
		return true
	}
	c.send(s)
	return true
}

// Cancel ends s, without the sink's End. Of one that has ended it does nothing.
func (c *Conn) Cancel(s *Stream) {
	switch {
	case s.waits:
		s.waits = false
		c.waiting = without(c.waiting, s)
	case s.id != 0:
		c.reset(s, codeCancel)
	}
}

// Close ends all streams with err, for the connection has ended or could not be opened.
func (c *Conn) Close(err error) {
	if c.err == nil {
		c.err = err
	}
	c.leaving = true
	for _, s := range c.open.all() {
		if c.open.find(s.id) == s { // an earlier one's end may have cancelled it
			c.forget(s)
			s.Sink.End(err)
		}
	}
	if c.begun {
		err = ErrUnsent
	}
	c.dismiss(err)
}

// dismiss ends what waits for a stream: none comes.
func (c *Conn) dismiss(err error) {
	waiting := c.waiting
	c.waiting = nil
	for _, s := range waiting {
		if s.waits { // an earlier one's end may have cancelled it
			s.waits = false
			s.Sink.End(err)
		}
	}
}

// forget removes s, which has ended, from the connection.
func (c *Conn) forget(s *Stream) {
	c.open.remove(s)
	if s.held {
		s.held = false
		c.bodies = without(c.bodies, s)
	}
	if c.in.stream == s {
		c.in.stream = nil
	}
	s.id = 0
}

// end ends s and lets another begin that waits.
func (c *Conn) end(s *Stream, err error) {
	c.forget(s)
	s.Sink.End(err)
	c.admit()
}

// reset ends s and tells the server why. The sink is not told.
func (c *Conn) reset(s *Stream, code errorCode) {
	c.Out = appendFrame(c.Out, frameHeader{length: 4, kind: frameReset, stream: s.id})
	c.Out = append32(c.Out, uint32(code))
	c.forget(s)
	c.admit()
}

// abort ends s, whose answer the sink refuses or breaks the protocol.
func (c *Conn) abort(s *Stream, err error) {
	c.reset(s, codeProtocol)
	s.Sink.End(err)
}

// admit begins what waits, as far as the server allows it.
func (c *Conn) admit() {
	for len(c.waiting) > 0 && c.begun && !c.Full() && !c.leaving {
		s := c.waiting[0]
		c.waiting = append(c.waiting[:0], c.waiting[1:]...)
		s.waits = false
		c.send(s)
	}
}

// without is list without s, in its order.
func without(list []*Stream, s *Stream) []*Stream {
	for i := range list {
		if list[i] == s {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// fail ends the connection for err, of which the server is told.
func (c *Conn) fail(err error) error {
	code := codeProtocol
	if e, ok := errors.AsType[*violation](err); ok {
		code = e.code
	}
	c.Out = appendFrame(c.Out, frameHeader{length: 8, kind: frameGoAway})
	c.Out = append32(append32(c.Out, 0), uint32(code))
	c.Close(err)
	return err
}

// violation is what the server did against the protocol.
type violation struct {
	code errorCode
	text string
}

func (v *violation) Error() string { return "the server breaks HTTP/2: " + v.text }

// breach is a violation.
func breach(code errorCode, format string, args ...any) error {
	return &violation{code, fmt.Sprintf(format, args...)}
}
