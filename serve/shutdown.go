package serve

import (
	"context"
	"time"

	"github.com/tarehq/tare/serve/internal/listener"
)

// Shutdown ends the server without losing a request: it stops listening, answers what comes on
// open connections with "Connection: close", and closes those on which nothing comes for
// Limits.ShutdownGrace, or until half of the time to ctx's deadline is over. It returns when
// all connections have ended, or with ctx's error. Hijacked connections are not its business;
// RegisterOnShutdown is told.
func (s *Server) Shutdown(ctx context.Context) error {
	e, err := s.stopListening(ctx, true)
	s.mu.Lock()
	for _, f := range s.onShutdown {
		go f()
	}
	s.mu.Unlock()
	if e == nil {
		return err
	}
	handed := make(chan error, 1)
	go func() {
		e.greeted(ctx)
		handed <- e.shadow.Shutdown(ctx)
	}()
	if deadline, ok := ctx.Deadline(); ok {
		defer time.AfterFunc(time.Until(deadline)/2, e.hurry).Stop()
	}
	select {
	case <-e.empty():
	case <-ctx.Done():
		<-handed
		return ctx.Err()
	}
	if herr := <-handed; herr != nil {
		return herr
	}
	e.parking.close()
	return err
}

// hurry ends idle connections without a grace.
func (e *engine) hurry() {
	if !e.hurried.Swap(true) {
		e.clock.all.Store(true)
		e.clock.early <- struct{}{}
	}
}

// Close ends the server at once: listeners and connections are closed, whatever they are about.
// Hijacked connections are not its business.
func (s *Server) Close() error {
	e, err := s.stopListening(context.Background(), false)
	if e == nil {
		return err
	}
	e.shadow.Close()
	e.mu.Lock()
	var all []*conn
	for c := e.first; c != nil; c = c.next {
		all = append(all, c)
	}
	e.mu.Unlock()
	for _, c := range all {
		parked := e.parking.end(c)
		if !parked {
			c.cut(false)
			parked = e.parking.end(c) // it may have parked just before
		}
		if parked {
			c.end()
		} else {
			e.unlink(c)
		}
	}
	e.parking.close()
	return err
}

// stopListening closes the listeners and waits until nothing more is accepted. Gently, it first
// takes what connections the kernel has completed but not handed out: closing a listener resets
// them. When ctx ends it waits no longer.
func (s *Server) stopListening(ctx context.Context, gently bool) (*engine, error) {
	s.mu.Lock()
	e := s.engine
	if e != nil && !s.closed.Load() {
		e.ending.Store(0) // from the first look on that sees it closed
		e.grace.Store(int64(or(s.Limits.ShutdownGrace, defaultGrace)))
	}
	s.closed.Store(true)
	if e != nil {
		e.clock.all.Store(true)
	}
	var err error
	stop := func(l *listener.Listener) {
		if cerr := l.Close(); cerr != nil && err == nil {
			err = cerr
		}
	}
	var last, blind []*listener.Listener
	for l := range s.listeners {
		switch {
		case !gently:
			stop(l)
		case l.StopsSoon():
			last = append(last, l)
		default:
			blind = append(blind, l)
		}
	}
	s.mu.Unlock()
	for _, l := range blind {
		l.Settle(ctx)
		stop(l)
	}
	accepted := make(chan struct{})
	go func() { s.accepting.Wait(); close(accepted) }()
	for waiting := true; waiting; {
		select {
		case <-accepted:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case <-time.After(listener.LastAccepts):
			for _, l := range last {
				if l.Deaf() {
					stop(l)
				}
			}
		}
	}
	for _, l := range last {
		stop(l)
	}
	return e, err
}

// greeted waits until no connection may yet turn out to speak HTTP/2: the other server takes
// none once it is told to shut down.
func (e *engine) greeted(ctx context.Context) {
	for e.greeting() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(e.clock.tick, listener.LastAccept)):
		}
	}
}

func (e *engine) greeting() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := e.first; c != nil; c = c.next {
		switch c.at().phase() {
		case phaseOpening, phaseShaking:
			return true
		case phaseHeading: // with prior knowledge HTTP/2 begins like a head
			if e.protos.UnencryptedHTTP2() {
				return true
			}
		}
	}
	return e.handed.under.Load() > 0
}

// empty returns a channel that is closed when there is no connection left.
func (e *engine) empty() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if e.drained == nil {
		e.drained = make(chan struct{})
	}
	return e.drained
}
