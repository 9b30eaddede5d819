package serve

import "time"

// NoPoller has the server do as if there were no poller to be had.
func NoPoller(s *Server) { s.only().e.parking.failed.Store(true) }

// ParkingStopped keeps the server's connection from being parked, or taken out of the
// parking, until goOn is called. Who waits for that goes on by turns, as in a mutex that
// was not to be had for a millisecond.
func ParkingStopped(s *Server) (goOn func()) {
	p := s.only().e.parking
	p.mu.Lock()
	return func() {
		p.mu.Unlock()
		p.mu.Lock()
		time.Sleep(5 * time.Millisecond)
		p.mu.Unlock()
	}
}

// ParkSoon has the server's connection find that it has been idle for long, unless the
// clock is set meanwhile.
func ParkSoon(s *Server) {
	s.only().e.clock.nanos.Add(int64(time.Hour))
	SweepAround(s, 0, func() {})
}
