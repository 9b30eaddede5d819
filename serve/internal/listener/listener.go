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
// ever: clients may come again as they are answered. Then the kernel is told to begin no more,
// and Accept goes on until those that it has begun are completed: their clients may be at work
// already. On a busy machine that takes a while, since the kernel processes packets when it
// comes to that.
const (
	// LastAccept is how long one of the last calls of Accept waits.
	LastAccept = 5 * time.Millisecond
	// LastAccepts is for how long more connections may come.
	LastAccepts = 250 * time.Millisecond

	deafLooks = 4           // each after LastAccepts
	halfOpen  = time.Second // that completing connections may take; the client of one may be gone
)

// Listener may be closed more than once, and be told to end. It is safe for concurrent use,
// but Pending is for who calls Accept.
type Listener struct {
	net.Listener
	socket net.Listener    // beneath all that wraps it
	raw    syscall.RawConn // of the socket, nil if it shows none
	until  atomic.Int64    // when the last connections must be accepted, Unix nanoseconds
	owed   atomic.Int64    // connections that are accepted even later
	asked  atomic.Int64    // when Accept was called that has not returned, Unix nanoseconds, 0 = none
	heard  atomic.Int64    // what Deaf found in asked
	looks  atomic.Int32    // how often it found that
	last   time.Time       // when Pending ended what may come, zero = not yet
	sealed atomic.Bool     // no more connections come than the kernel has begun
	once   sync.Once
	err    error
}

// New returns l, whose connections come from socket: what is beneath all that wraps it.
func New(l, socket net.Listener) *Listener {
	listener := &Listener{Listener: l, socket: socket}
	if s, ok := socket.(syscall.Conn); ok {
		listener.raw, _ = s.SyscallConn()
	}
	return listener
}

// Accept returns the next connection. First it undoes what the file of a listener does to it
// when somebody asks for its descriptor, to give it to another process: the socket then blocks,
// and neither a deadline nor Close would end Accept.
func (l *Listener) Accept() (net.Conn, error) {
	if l.raw != nil {
		l.raw.Control(sys.Unblock)
	}
	l.asked.Store(time.Now().UnixNano())
	defer l.asked.Store(0)
	nc, err := l.Listener.Accept()
	if err == nil {
		l.owed.Add(-1)
	}
	return nc, err
}

// Close closes the listener, and returns what the first call did. Another process may have
// the socket, too: it is left as it was. That must come last, or connections would come that
// nobody accepts.
func (l *Listener) Close() error {
	l.once.Do(func() {
		last := l.duplicate()
		l.err = l.Listener.Close()
		if last >= 0 {
			sys.Unseal(last)
		}
	})
	return l.err
}

// StopsSoon has Accept fail after a moment, if the listener can do that, and it can be seen
// then whether there are connections yet.
func (l *Listener) StopsSoon() bool {
	l.until.Store(time.Now().Add(LastAccepts).UnixNano())
	l.owed.Store(l.backlog())
	return sys.TellsReadable && l.raw != nil && l.expire(0) // Pending looks for more
}

// Deaf reports whether one Accept has gone on for much longer than it was told: it takes a
// time-out for nothing, as that of a listener which looks now and then at a channel of its own,
// or goes by another clock. Only Close ends it. It is asked every LastAccepts, and counts how
// often it was: on a busy machine Accept may have had no turn, however long ago that was.
func (l *Listener) Deaf() bool {
	asked := l.asked.Load()
	if asked == 0 || l.heard.Swap(asked) != asked || time.Now().UnixNano() < l.until.Load() {
		l.looks.Store(0)
		return false
	}
	return l.looks.Add(1) >= deafLooks
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
// return now or in a moment. When there are none, or there is no time for more, it has the
// kernel begin no further ones: none may come between the last look and the listener's end,
// however long the processors are busy with something else.
func (l *Listener) Pending() (yes bool) {
	if l.raw == nil {
		return false
	}
	l.raw.Control(func(fd uintptr) { yes = l.pending(fd) })
	return yes && l.expire(LastAccept)
}

func (l *Listener) pending(fd uintptr) bool {
	if l.last.IsZero() {
		if sys.Readable(fd) && (l.owed.Load() > 0 || time.Now().UnixNano() <= l.until.Load()) {
			return true
		}
		l.last = time.Now()
		l.sealed.Store(sys.Seal(fd) == nil)
		l.owed.Store(backlogOf(fd))
	}
	patience := halfOpen
	half, err := sys.HalfOpen(fd) // before Readable, which knows those that are no longer half open
	if err != nil {
		half, patience = true, LastAccept
	}
	if sys.Readable(fd) {
		return l.sealed.Load() || l.owed.Load() > 0
	}
	return l.sealed.Load() && half && time.Since(l.last) < patience
}

// duplicate returns a descriptor of the socket, if that is sealed, and else -1.
func (l *Listener) duplicate() int {
	last := -1
	if l.raw != nil && l.sealed.Load() {
		l.raw.Control(func(fd uintptr) { last, _ = sys.Duplicate(fd) })
	}
	return last
}

// backlog returns how many connections nobody has accepted; 0 where that is not known.
func (l *Listener) backlog() (n int64) {
	if l.raw != nil {
		l.raw.Control(func(fd uintptr) { n = backlogOf(fd) })
	}
	return n
}

func backlogOf(fd uintptr) int64 {
	n, _ := sys.Backlog(fd)
	return int64(n)
}

func (l *Listener) expire(after time.Duration) bool {
	t, ok := l.socket.(interface{ SetDeadline(time.Time) error })
	return ok && t.SetDeadline(time.Now().Add(after)) == nil
}
