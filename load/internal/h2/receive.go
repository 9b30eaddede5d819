package h2

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// input is what has been read of a frame or a header block that is not whole.
type input struct {
	begun [headerLen]byte // of a frame's header
	have  int             // of begun

	frame frameHeader
	part  bool   // of a frame other than DATA, held has the beginning
	held  []byte // payload

	left   int     // of a DATA frame
	padded bool    // its first byte is the length of its padding
	pad    int     // of left
	stream *Stream // whose it is; nil if that has ended

	continued bool // a header block goes on in the next frame
	head      frameHeader
	block     []byte
	parts     int
}

// Feed takes what came from the server, in pieces of any size, and keeps no reference to
// it. An error ends the connection and has ended all its streams.
func (c *Conn) Feed(b []byte) error {
	if c.err != nil {
		return c.err
	}
	for len(b) > 0 {
		n, err := c.step(b)
		if err == nil && len(c.Out) > flooded {
			err = breach(codeCalm, "it asks for more than it reads")
		}
		if err != nil {
			return c.fail(err)
		}
		b = b[n:]
	}
	return nil
}

// step takes a part of b, which is not empty, and returns its length.
func (c *Conn) step(b []byte) (int, error) {
	in := &c.in
	switch {
	case in.left > 0:
		return c.data(b)
	case in.part:
		n := min(in.frame.length-len(in.held), len(b))
		if in.held = append(in.held, b[:n]...); len(in.held) < in.frame.length {
			return n, nil
		}
		in.part = false
		err := c.act(in.frame, in.held)
		in.held = in.held[:0]
		return n, err
	}
	n := headerLen
	if in.have == 0 && len(b) >= headerLen {
		in.frame = parseFrame(b)
	} else {
		n = copy(in.begun[in.have:], b)
		if in.have += n; in.have < headerLen {
			return n, nil
		}
		in.frame, in.have = parseFrame(in.begun[:]), 0
	}
	if err := c.allow(in.frame); err != nil {
		return n, err
	}
	if in.frame.kind == frameData {
		return n, c.beginData(in.frame)
	}
	if rest := b[n:]; len(rest) >= in.frame.length {
		return n + in.frame.length, c.act(in.frame, rest[:in.frame.length])
	}
	in.part = true
	return n, nil
}

// allow refuses a frame that may not come now, or is too large.
func (c *Conn) allow(h frameHeader) error {
	in := &c.in
	switch {
	case !c.settled && (h.kind != frameSettings || h.has(flagAck)):
		return ErrNotHTTP2
	case h.length > ownFrame:
		return breach(codeSize, "a frame of %d bytes is longer than the %d allowed", h.length, ownFrame)
	case in.continued && (h.kind != frameContinuation || h.stream != in.head.stream):
		return breach(codeProtocol, "a header block is not continued")
	case !in.continued && h.kind == frameContinuation:
		return breach(codeProtocol, "a continuation comes without a header")
	}
	return nil
}

// act acts on a whole frame other than DATA.
func (c *Conn) act(h frameHeader, p []byte) error {
	switch h.kind {
	case frameHeaders:
		return c.beginHead(h, p)
	case frameContinuation:
		return c.continueHead(h, p)
	case frameReset:
		return c.onReset(h, p)
	case frameSettings:
		return c.onSettings(h, p)
	case framePing:
		return c.onPing(h, p)
	case frameGoAway:
		return c.onGoAway(h, p)
	case frameWindow:
		return c.onWindow(h, p)
	case framePush:
		return breach(codeProtocol, "it pushes, which was not allowed")
	}
	return nil // of the others nothing follows for a client
}

// known returns the stream with that number: nil if it has ended. It is an error if it
// never was.
func (c *Conn) known(id uint32) (*Stream, error) {
	if s := c.open.find(id); s != nil {
		return s, nil
	}
	if id == 0 || id%2 == 0 || id >= c.next {
		return nil, breach(codeProtocol, "a frame is for stream %d, which was not opened", id)
	}
	return nil, nil
}

// beginData takes the beginning of a DATA frame.
func (c *Conn) beginData(h frameHeader) error {
	s, err := c.known(h.stream)
	if err != nil {
		return err
	}
	if c.unacked += int64(h.length); c.unacked > connWindow {
		return breach(codeFlow, "it sends more than the window allows")
	}
	if s != nil {
		if s.unacked += int64(h.length); s.unacked > streamWindow {
			return breach(codeFlow, "it sends more on a stream than its window allows")
		}
		if !s.headed {
			c.abort(s, errors.New("a body comes before the header"))
			s = nil
		}
	}
	in := &c.in
	in.stream, in.left, in.pad, in.padded = s, h.length, 0, h.has(flagPadded)
	if h.length == 0 {
		if in.padded {
			return breach(codeSize, "a padded frame is empty")
		}
		c.endData()
	}
	return nil
}

// data takes a part of a DATA frame's payload.
func (c *Conn) data(b []byte) (n int, err error) {
	in := &c.in
	switch body := in.left - in.pad; {
	case in.padded:
		n, in.padded, in.pad = 1, false, int(b[0])
		if in.pad >= in.left {
			return n, breach(codeProtocol, "a frame's padding is longer than the frame")
		}
	case body > 0:
		n = min(body, len(b))
		if in.stream != nil {
			c.take(in.stream, b[:n])
		}
	default:
		n = min(in.left, len(b))
		in.pad -= n
	}
	if in.left -= n; in.left == 0 {
		c.endData()
	}
	return n, nil
}

// take passes a part of s's body on.
func (c *Conn) take(s *Stream, p []byte) {
	var err error
	if s.left >= 0 {
		if int64(len(p)) > s.left {
			p, err = p[:s.left], errors.New("the body is longer than its Content-Length")
		}
		s.left -= int64(len(p))
	}
	if refused := s.Sink.Body(p); refused != nil {
		err = refused
	}
	if err != nil && s.id != 0 {
		c.abort(s, err)
	}
}

// endData acts on the end of a DATA frame.
func (c *Conn) endData() {
	in := &c.in
	s := in.stream
	in.stream = nil
	if s != nil && in.frame.has(flagEndStream) {
		c.finish(s)
	} else if s != nil && s.unacked >= streamWindow/2 {
		c.windowUpdate(s.id, s.unacked)
		s.unacked = 0
	}
	if c.unacked >= connWindow/2 {
		c.windowUpdate(0, c.unacked)
		c.unacked = 0
	}
}

// finish ends s, whose answer is whole.
func (c *Conn) finish(s *Stream) {
	if s.left > 0 && !s.Bodiless {
		c.end(s, &BrokenError{errors.New("the answer ends before its Content-Length")})
		return
	}
	if len(s.Body) > 0 { // the server has answered without the rest
		c.reset(s, codeCancel)
		s.Sink.End(nil)
		return
	}
	c.end(s, nil)
}

// beginHead takes a HEADERS frame.
func (c *Conn) beginHead(h frameHeader, p []byte) error {
	pad := 0
	if h.has(flagPadded) {
		if len(p) == 0 {
			return breach(codeSize, "a padded frame is empty")
		}
		pad, p = int(p[0]), p[1:]
	}
	if h.has(flagPriority) {
		if len(p) < 5 {
			return breach(codeSize, "a header frame is too short for its priority")
		}
		p = p[5:]
	}
	if pad > len(p) {
		return breach(codeProtocol, "a frame's padding is longer than the frame")
	}
	p = p[:len(p)-pad]
	if h.has(flagEndHeaders) {
		return c.head(h, p)
	}
	in := &c.in
	in.continued, in.head, in.parts = true, h, 0
	in.block = append(in.block[:0], p...)
	return nil
}

// continueHead takes a CONTINUATION frame. Empty ones count too, lest they come without end.
func (c *Conn) continueHead(h frameHeader, p []byte) error {
	in := &c.in
	in.block = append(in.block, p...)
	if in.parts++; len(in.block)+in.parts*headerLen > maxHead {
		return breach(codeCalm, "a header is longer than %d bytes", maxHead)
	}
	if !h.has(flagEndHeaders) {
		return nil
	}
	in.continued = false
	return c.head(in.head, in.block)
}

// head acts on a whole header block.
func (c *Conn) head(h frameHeader, block []byte) error {
	s, err := c.known(h.stream)
	if err != nil {
		return err
	}
	a, err := c.dec.decode(block) // in any case: later blocks refer to it
	if err != nil || s == nil {
		return err
	}
	end := h.has(flagEndStream)
	switch {
	case a.bad != nil:
		c.abort(s, a.bad)
	case s.headed:
		c.trailer(s, a, end)
	case a.status == 0:
		c.abort(s, errors.New("the header has no status"))
	case a.status == 101 || a.status < 200 && end:
		c.abort(s, fmt.Errorf("an answer cannot have status %d", a.status))
	case a.status < 200: // the answer is yet to come
	default:
		s.headed, s.left = true, a.length
		if a.status == 204 || a.status == 304 {
			s.left = -1
		}
		if err := s.Sink.Head(a.status, a.fields); err != nil {
			c.abort(s, err)
		} else if end {
			c.finish(s)
		}
	}
	return nil
}

// trailer acts on the fields behind a body.
func (c *Conn) trailer(s *Stream, a *answer, end bool) {
	switch {
	case !end:
		c.abort(s, errors.New("a trailer does not end the answer"))
	case a.status != 0:
		c.abort(s, errors.New("a trailer has a status"))
	default:
		c.finish(s)
	}
}

// onReset acts on a stream that the server ends.
func (c *Conn) onReset(h frameHeader, p []byte) error {
	s, err := c.known(h.stream)
	if err != nil {
		return err
	}
	if len(p) != 4 {
		return breach(codeSize, "a stream's end has %d bytes instead of 4", len(p))
	}
	if s == nil {
		return nil
	}
	code := errorCode(binary.BigEndian.Uint32(p))
	err = fmt.Errorf("the server reset the stream: %v", code)
	if code == codeRefused {
		err = ErrRefused
	}
	c.end(s, &BrokenError{err})
	return nil
}

// onSettings acts on what the server says of itself.
func (c *Conn) onSettings(h frameHeader, p []byte) error {
	switch {
	case h.stream != 0:
		return breach(codeProtocol, "settings are for a stream")
	case h.has(flagAck) && len(p) > 0, len(p)%6 != 0:
		return breach(codeSize, "settings have %d bytes", len(p))
	case h.has(flagAck):
		return nil
	}
	if !c.settled {
		c.settled, c.allowed = true, lastStream // no limit unless it names one
	}
	for ; len(p) > 0; p = p[6:] {
		if err := c.set(binary.BigEndian.Uint16(p), binary.BigEndian.Uint32(p[2:])); err != nil {
			return err
		}
	}
	c.Out = appendFrame(c.Out, frameHeader{kind: frameSettings, flags: flagAck})
	c.admit()
	c.Fill()
	return nil
}

// set acts on one setting.
func (c *Conn) set(id uint16, v uint32) error {
	switch id {
	case settingTable:
		if v < tableSize {
			c.bare = c.bare || int64(v) < int64(c.need)
			c.resized = int(v)
			if c.bare {
				c.resized = 0
			}
		}
	case settingStreams:
		c.allowed = int(min(v, lastStream))
	case settingWindow:
		if v > maxWindow {
			return breach(codeFlow, "a window of %d is too large", v)
		}
		for _, s := range c.open.all() {
			if s.window += int64(v) - c.initial; s.window > maxWindow {
				return breach(codeFlow, "a window grows too large")
			}
		}
		c.initial = int64(v)
	case settingFrame:
		if v < ownFrame || v > 1<<24-1 {
			return breach(codeProtocol, "frames of up to %d bytes are not to be", v)
		}
		c.maxFrame = int(v)
	}
	return nil
}

// onPing answers a PING.
func (c *Conn) onPing(h frameHeader, p []byte) error {
	switch {
	case h.stream != 0:
		return breach(codeProtocol, "a ping is for a stream")
	case len(p) != 8:
		return breach(codeSize, "a ping has %d bytes instead of 8", len(p))
	case !h.has(flagAck):
		c.Out = append(appendFrame(c.Out, frameHeader{length: 8, kind: framePing, flags: flagAck}), p...)
	}
	return nil
}

// onGoAway acts on the server's wish to end the connection. What it will not answer ends.
func (c *Conn) onGoAway(h frameHeader, p []byte) error {
	switch {
	case h.stream != 0:
		return breach(codeProtocol, "a farewell is for a stream")
	case len(p) < 8:
		return breach(codeSize, "a farewell has %d bytes, fewer than 8", len(p))
	}
	last, code := binary.BigEndian.Uint32(p)&lastStream, errorCode(binary.BigEndian.Uint32(p[4:]))
	c.leaving = true
	err := fmt.Errorf("the server ended the connection: %v", code)
	if code == codeNone {
		err = errors.New("the server ended the connection before it read the request")
	}
	for _, s := range c.open.all() {
		if s.id > last && c.open.find(s.id) == s { // an earlier one's end may have cancelled it
			c.forget(s)
			s.Sink.End(&BrokenError{err})
		}
	}
	c.dismiss(ErrUnsent)
	return nil
}

// onWindow acts on leave to send more.
func (c *Conn) onWindow(h frameHeader, p []byte) error {
	if len(p) != 4 {
		return breach(codeSize, "a window's growth has %d bytes instead of 4", len(p))
	}
	n := int64(binary.BigEndian.Uint32(p) & maxWindow)
	if h.stream == 0 {
		if c.window += n; n == 0 || c.window > maxWindow {
			return breach(codeFlow, "the window grows by %d to %d", n, c.window)
		}
		c.Fill()
		return nil
	}
	s, err := c.known(h.stream)
	if err != nil || s == nil {
		return err
	}
	if s.window += n; n == 0 || s.window > maxWindow {
		c.abort(s, fmt.Errorf("a stream's window grows by %d to %d", n, s.window))
		return nil
	}
	if s.held {
		c.push(s)
	}
	return nil
}
