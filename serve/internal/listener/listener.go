// Package listener ends a listener without a reset of the connections that the kernel has
// completed and nobody has accepted.
package listener

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarehq/tare/serve/internal/sys"
)

// Closing a listener resets the connections that the kernel has completed and nobody has
// accepted. So Accept is first told to time out, and goes on while there are any, but not for
// ever: clients may come again as they are answered. Those that are there at that moment are
// accepted however long it takes.
const (
	// LastAccept is how long one of the last calls of Accept waits.
	LastAccept = 5 * time.Millisecond
	// LastAccepts is for how long more connections may come.
	LastAccepts = 250 * time.Millisecond

	deafAccept = time.Second
)

// Listener may be closed more than once, and be told to end. It is safe for concurrent use.
type Listener struct {
	net.Listener
	socket net.Listener // beneath all that wraps it
	until  atomic.Int64 // when the last connections must be accepted, Unix nanoseconds
	owed   atomic.Int64 // connections that are accepted even later
	asked  atomic.Int64 // when Accept was called that has not returned, Unix nanoseconds, 0 = none
	sealed atomic.Bool  // no more connections come than there are
	once   sync.Once
	err    error
}

// New returns l, whose connections come from socket: what is beneath all that wraps it.
func New(l, socket net.Listener) *Listener { return &Listener{Listener: l, socket: socket} }

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	l.asked.Store(time.Now().UnixNano())
	defer l.asked.Store(0)
	nc, err := l.Listener.Accept()
	if err == nil {
		l.owed.Add(-1)
	}
	return nc, err
}

// Close closes the listener, and returns what the first call did.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.unseal()
		l.err = l.Listener.Close()
	})
	return l.err
}

// StopsSoon has Accept fail after a moment, if the listener can do that, and it can be seen
// then whether there are connections yet.
func (l *Listener) StopsSoon() bool {
	l.until.Store(time.Now().Add(LastAccepts).UnixNano())
	l.owed.Store(int64(l.backlog()))
	return sys.TellsReadable && l.raw() != nil && l.expire(0) // Pending looks for more
}

// Deaf reports whether one Accept has gone on for much longer than it was told: it takes a
// time-out for nothing, as that of a listener which looks now and then at a channel of its own,
// or goes by another clock. Only Close ends it.
func (l *Listener) Deaf() bool {
	asked := l.asked.Load()
	return asked != 0 && time.Now().UnixNano()-max(asked, l.until.Load()) > int64(deafAccept)
}

// Settle waits until l, which cannot be told to stop, has accepted nothing for a while: then
// what the kernel had for it is taken. It looks several times, so that Accept has had its turn
// on a busy machine, too. When ctx ends it waits no longer.
func (l *Listener) Settle(ctx context.Context) {
	const looks = 5
	for quiet := 0; quiet < looks && ctx.Err() == nil && time.Now().UnixNano() < l.until.Load(); {
		before := l.owed.Load()
		time.Sleep(LastAccept)
		if quiet++; l.owed.Load() != before {
			quiet = 0
		}
	}
}

// Pending reports whether the listener has connections yet that Accept, whose time was up, will
// return now. When there are none, or there is no time for more, it has the kernel complete no
// further ones: none may come between the last look and the listener's end, however long the
// processors are busy with something else.
func (l *Listener) Pending() (yes bool) {
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
	return yes && l.expire(LastAccept)
}

// unseal leaves the socket as it was: another process may have it, too.
func (l *Listener) unseal() {
	if raw := l.raw(); raw != nil && l.sealed.Load() {
		raw.Control(func(fd uintptr) { sys.Unseal(fd) })
	}
}

// backlog returns how many connections nobody has accepted; 0 where that is not known.
func (l *Listener) backlog() (n int) {
	if raw := l.raw(); raw != nil {
		raw.Control(func(fd uintptr) { n, _ = sys.Backlog(fd) })
	}
	return n
}

// raw returns the listener's socket, nil if it shows none.
func (l *Listener) raw() syscall.RawConn {
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

func (l *Listener) expire(after time.Duration) bool {
	t, ok := l.socket.(interface{ SetDeadline(time.Time) error })
	return ok && t.SetDeadline(time.Now().Add(after)) == nil
}
