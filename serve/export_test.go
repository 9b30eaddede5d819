package serve

import "time"

// Internals that the external tests of time limits look at and stop at.

// only returns the server's connection, of which there must be one before long.
func (s *Server) only() *conn {
	for range 10_000 {
		s.mu.Lock()
		e := s.engine
		s.mu.Unlock()
		if e != nil {
			e.mu.Lock()
			c, last := e.first, e.last
			e.mu.Unlock()
			if c != nil && c == last {
				return c
			}
		}
		time.Sleep(time.Millisecond)
	}
	panic("there is not just one connection")
}

// SweepAround looks at the server's only connection as the sweep does, but as if
// ahead of its time, calls between, and only then acts on what was due. It reports
// whether anything was.
func SweepAround(s *Server, ahead time.Duration, between func()) bool {
	c := s.only()
	c.gate.Lock()
	defer c.gate.Unlock()
	at := c.at()
	v := c.due(at, c.e.clock.now()+int64(ahead))
	between()
	c.enforceLocked(at, v)
	return v != carryOn
}

// Ticked waits until the server's clock has gone on.
func Ticked(s *Server) {
	c := s.only()
	for was := c.e.clock.now(); c.e.clock.now() == was; {
		time.Sleep(time.Millisecond)
	}
}

// InBody reports whether the server's only connection waits for a body.
func InBody(s *Server) bool { return s.only().in.Waiting() }

// InHead reports whether the head of a request has begun to come on the server's
// only connection.
func InHead(s *Server) bool { return s.only().at().phase() == phaseHeading }

// Idle reports whether the server's only connection waits for a request.
func Idle(s *Server) bool { return s.only().at().phase() == phaseIdle }

// Glimpses has a connection go from long idleness to a request that has just come, n
// times, while it is looked at all the time, and returns how many looks took that
// request's answer for late.
func Glimpses(n int) (late int) {
	const now = int64(time.Hour)
	e := &engine{s: &Server{}, limits: limits{write: time.Minute}}
	c := &conn{e: e}
	c.begin(phaseIdle)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range n {
			e.clock.nanos.Store(1)
			c.begin(phaseIdle)
			e.clock.nanos.Store(now)
			c.begin(phaseHandling)
		}
	}()
	for {
		select {
		case <-ended:
			return late
		default:
		}
		if c.due(c.at(), now) == lapseWrite {
			late++
		}
	}
}

// Stopped locks what Shutdown and Close change the server's course under, until goOn
// is called.
func Stopped(s *Server) (goOn func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

// ShedAround sheds the server's only connection, and calls between after that is decided
// and before it is done.
func ShedAround(s *Server, between func()) {
	c := s.only()
	if !c.shedFrom(c.at()) {
		panic("the connection is no victim any more")
	}
	between()
	c.cut(false)
	if c.e.parking.end(c) {
		c.end()
	}
}
