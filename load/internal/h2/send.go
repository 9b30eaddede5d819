package h2

// send sends s's request.
func (c *Conn) send(s *Stream) {
	s.id, s.window = c.next, c.initial
	if c.next += 2; c.next > lastStream {
		c.leaving = true // its numbers are used up
	}
	c.open.add(s)
	c.header(s)
	if len(s.Body) > 0 {
		c.push(s)
	}
}

// table is what s's header block may do with the server's table.
func (c *Conn) table() Table {
	switch {
	case c.bare:
		return Bare
	case c.filled:
		return Kept
	}
	c.filled = true
	return Fill
}

// header writes s's header block, in as many frames as it takes.
func (c *Conn) header(s *Stream) {
	at := len(c.Out)
	h := frameHeader{kind: frameHeaders, flags: flagEndHeaders, stream: s.id}
	if len(s.Body) == 0 {
		h.flags |= flagEndStream
	}
	c.Out = appendFrame(c.Out, h)
	if c.resized >= 0 {
		c.Out = appendInt(c.Out, 0x20, 5, c.resized)
		c.resized = -1
	}
	c.Out = s.Request.AppendHead(c.Out, c.table())
	if h.length = len(c.Out) - at - headerLen; h.length > c.maxFrame {
		c.split(at, h)
		return
	}
	appendFrame(c.Out[:at], h) // in place
}

// split makes of the one frame at Out[at:] as many as the server takes.
func (c *Conn) split(at int, h frameHeader) {
	block := append([]byte(nil), c.Out[at+headerLen:]...)
	c.Out = c.Out[:at]
	h.flags &^= flagEndHeaders
	for h.kind == frameHeaders || len(block) > 0 {
		h.length = min(len(block), c.maxFrame)
		if h.length == len(block) {
			h.flags |= flagEndHeaders
		}
		c.Out = append(appendFrame(c.Out, h), block[:h.length]...)
		block = block[h.length:]
		h.kind, h.flags = frameContinuation, 0
	}
}

// push writes s's body, as far as the windows and Out have room.
func (c *Conn) push(s *Stream) {
	for len(s.Body) > 0 && len(c.Out) < enough {
		n := int(min(int64(len(s.Body)), int64(c.maxFrame), int64(enough), c.window, s.window))
		if n <= 0 {
			break
		}
		h := frameHeader{length: n, kind: frameData, stream: s.id}
		if n == len(s.Body) {
			h.flags = flagEndStream
		}
		c.Out = append(appendFrame(c.Out, h), s.Body[:n]...)
		s.Body = s.Body[n:]
		s.window -= int64(n)
		c.window -= int64(n)
	}
	if waits := len(s.Body) > 0; waits && !s.held {
		c.bodies = append(c.bodies, s)
		s.held = true
	} else if !waits && s.held {
		c.bodies = without(c.bodies, s)
		s.held = false
	}
}

// Fill writes more of the bodies that wait, each in its turn.
func (c *Conn) Fill() {
	for n := len(c.bodies); n > 0 && len(c.Out) < enough; n-- {
		s := c.bodies[0]
		c.bodies = append(append(c.bodies[:0], c.bodies[1:]...), s) // the next begins the next time
		c.push(s)
	}
}

// windowUpdate tells the server that it may send n bytes more on a stream, or on all by 0.
func (c *Conn) windowUpdate(stream uint32, n int64) {
	c.Out = appendFrame(c.Out, frameHeader{length: 4, kind: frameWindow, stream: stream})
	c.Out = append32(c.Out, uint32(n))
}
