package serve

import (
	"context"
	"syscall"
	"time"

	"github.com/tarehq/tare/serve/internal/sys"
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
	}
	s.closed.Store(true)
	var err error
	stop := func(l *onceListener) {
		if cerr := l.Close(); cerr != nil && err == nil {
			err = cerr
		}
	}
	var last, blind []*onceListener
	for l := range s.listeners {
		switch {
		case !gently:
			stop(l)
		case l.stopsSoon():
			last = append(last, l)
		default:
			blind = append(blind, l)
		}
	}
	s.mu.Unlock()
	for _, l := range blind {
		l.settle(ctx)
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
		case <-time.After(lastAccepts):
			for _, l := range last {
				if l.deaf() {
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

// Closing a listener resets the connections that the kernel has completed and nobody has
// accepted. So Accept is first told to time out, and goes on while there are any, but not for
// ever: clients may come again as they are answered. Those that are there at that moment are
// accepted however long it takes.
const (
	lastAccept  = 5 * time.Millisecond
	lastAccepts = 250 * time.Millisecond
	deafAccept  = time.Second
)

// stopsSoon has Accept fail after a moment, if the listener can do that, and it can be seen
// then whether there are connections yet.
func (l *onceListener) stopsSoon() bool {
	l.until.Store(time.Now().Add(lastAccepts).UnixNano())
	l.owed.Store(int64(l.backlog()))
	return sys.TellsReadable && l.raw() != nil && l.expire(0) // pending looks for more
}

// deaf reports whether one Accept has gone on for much longer than it was told: it takes a
// time-out for nothing, as that of a listener which looks now and then at a channel of its own,
// or goes by another clock. Only Close ends it.
func (l *onceListener) deaf() bool {
	asked := l.asked.Load()
	return asked != 0 && time.Now().UnixNano()-max(asked, l.until.Load()) > int64(deafAccept)
}

// settle waits until l, which cannot be told to stop, has accepted nothing for a while: then
// what the kernel had for it is taken. It looks several times, so that Accept has had its turn
// on a busy machine, too.
func (l *onceListener) settle(ctx context.Context) {
	const looks = 5
	for quiet := 0; quiet < looks && ctx.Err() == nil && time.Now().UnixNano() < l.until.Load(); {
		before := l.owed.Load()
		time.Sleep(lastAccept)
		if quiet++; l.owed.Load() != before {
			quiet = 0
		}
	}
}

// backlog returns how many connections nobody has accepted; 0 where that is not known.
func (l *onceListener) backlog() (n int) {
	if raw := l.raw(); raw != nil {
		raw.Control(func(fd uintptr) { n, _ = sys.Backlog(fd) })
	}
	return n
}

// raw returns the listener's socket, nil if it shows none.
func (l *onceListener) raw() syscall.RawConn {
	s, ok := l.socket.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

func (l *onceListener) expire(after time.Duration) bool {
	t, ok := l.socket.(interface{ SetDeadline(time.Time) error })
	return ok && t.SetDeadline(time.Now().Add(after)) == nil
}

// pending reports whether the listener has connections yet that Accept, whose time was up, will
// return now. When there are none, or there is no time for more, it has the kernel complete no
// further ones: none may come between the last look and the listener's end, however long the
// processors are busy with something else.
func (l *onceListener) pending() (yes bool) {
	raw := l.raw()
	if raw == nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		due := l.owed.Load() > 0 || !l.sealed.Load() && time.Now().UnixNano() <= l.until.Load()
		yes = due && sys.Readable(fd)
		if yes || l.sealed.Load() || sys.Seal(fd) != nil {
			return
		}
		l.sealed.Store(true)
		n, _ := sys.Backlog(fd)
		l.owed.Store(int64(n))
		yes = n > 0
	})
	return yes && l.expire(lastAccept)
}

// unseal leaves the socket as it was: another process may have it, too.
func (l *onceListener) unseal() {
	if raw := l.raw(); raw != nil && l.sealed.Load() {
		raw.Control(func(fd uintptr) { sys.Unseal(fd) })
	}
}

// greeted waits until no connection may yet turn out to speak HTTP/2: the other server takes
// none once it is told to shut down.
func (e *engine) greeted(ctx context.Context) {
	for e.greeting() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(e.clock.tick, lastAccept)):
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
