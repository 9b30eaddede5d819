package breaker

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a breaker. The zero value opens for 5 s after five failures in a row, or
// when half of at least twenty requests in 10 s failed.
type Options struct {
	// Consecutive is how many failures in a row open it. 0: 5; negative: however many.
	Consecutive int
	// Share of failed requests in Window that opens it, if there were Least requests.
	// 0: 0.5; negative: whatever it is.
	Share float64
	// Least is how many requests make Share meaningful. 0: 20.
	Least int
	// Window is what Share is of. 0: 10 s.
	Window time.Duration
	// Slow is how long a request may take; longer ones count as failed. 0: any time. Of a middleware
	// and of a transport it ends when the answer begins, and does not count for how long the request's
	// body was waited for: clients that send or read slowly open nothing.
	Slow time.Duration
	// Out is how long it is open the first time. 0: 5 s.
	Out time.Duration
	// MostOut is how long it is open at most. 0: 5 min, or Out if that is longer.
	MostOut time.Duration
	// Probes is how many requests in a row must succeed for it to close. 0: 1.
	Probes int
	// Fallback answers what is refused; Retry-After is not set for it. Nil: 503 with
	// Retry-After, or an OpenError from a transport.
	Fallback http.Handler
	// Changed is called at each change of state, one at a time for each breaker. It must
	// not call the breaker. Nil: nothing is.
	Changed func(name string, to State)
}

const (
	defaultConsecutive = 5
	defaultShare       = 0.5
	defaultLeast       = 20
	defaultWindow      = 10 * time.Second
	defaultOut         = 5 * time.Second
	defaultMostOut     = 5 * time.Minute
)

// complete returns the options with their defaults, or an error that says which is wrong.
func (o Options) complete() (Options, error) {
	if o.Least < 0 || o.Probes < 0 || o.Window < 0 || o.Slow < 0 || o.Out < 0 || o.MostOut < 0 {
		return o, fmt.Errorf("breaker: Options has a negative number: Least %d, Probes %d, Window %s, Slow %s, Out %s, MostOut %s", o.Least, o.Probes, o.Window, o.Slow, o.Out, o.MostOut)
	}
	if !(o.Share <= 1) {
		return o, fmt.Errorf("breaker: Options.Share is %v; set a share up to 1, or 0 for %v", o.Share, defaultShare)
	}
	o.Consecutive = cmp.Or(o.Consecutive, defaultConsecutive)
	o.Share = cmp.Or(o.Share, defaultShare)
	o.Least = cmp.Or(o.Least, defaultLeast)
	o.Window = max(cmp.Or(o.Window, defaultWindow), parts)
	o.Out = cmp.Or(o.Out, defaultOut)
	o.MostOut = max(cmp.Or(o.MostOut, defaultMostOut), o.Out)
	o.Probes = cmp.Or(o.Probes, 1)
	return o, nil
}

// State of a breaker.
type State uint32

const (
	Closed   State = iota // requests pass
	Open                  // requests are refused
	HalfOpen              // one request at a time passes
)

func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	}
	return "half open"
}

// OpenError says that a request was refused.
type OpenError struct {
	Name  string        // the breaker's
	Retry time.Duration // how long it is open at least; 0: until a request that tries has ended
}

func (e *OpenError) Error() string {
	if e.Retry == 0 {
		return fmt.Sprintf("%s has failed too often: one request tries it now", e.Name)
	}
	return fmt.Sprintf("%s has failed too often: not asked for another %s", e.Name, e.Retry.Round(time.Millisecond))
}

// Breaker guards one thing that may fail. It is safe for concurrent use.
type Breaker struct {
	name     string
	o        Options
	group    *Group // nil: none
	epoch    time.Time
	state    atomic.Uint32
	refused  atomic.Uint64
	openings atomic.Uint64

	mu       sync.Mutex // guards what follows, and changes of state
	epochs   uint32     // counts changes of state: results of an older one do not count
	row      int        // failures, or half open successes, in a row
	window   window
	changed  time.Duration // when the state changed last, since epoch
	out      time.Duration // how long it is, or was last, open
	probe    time.Duration // when the request that tries now began, since epoch
	probing  bool
	detached bool // no member of its group any more
}

// New returns a closed breaker, or an error that says which option is wrong. The name
// is for errors and Options.Changed.
func New(name string, o Options) (*Breaker, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	return newBreaker(name, o, nil), nil
}

func newBreaker(name string, o Options, g *Group) *Breaker {
	return &Breaker{name: name, o: o, group: g, epoch: time.Now(), window: window{width: o.Window / parts}}
}

// State returns whether requests pass. An open breaker whose time is over says that it is
// open until the next request.
func (b *Breaker) State() State { return State(b.state.Load()) }

// Ready reports whether the next request would pass, be it as the one that tries.
func (b *Breaker) Ready() bool {
	if b.State() == Closed {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readyLocked(time.Since(b.epoch))
}

func (b *Breaker) readyLocked(now time.Duration) bool {
	switch b.State() {
	case Open:
		return now >= b.changed+b.out
	case HalfOpen:
		return !b.probing || now-b.probe >= b.o.Out // a request that never ends gives way
	}
	return true
}

// Refused returns how many requests were refused.
func (b *Breaker) Refused() uint64 { return b.refused.Load() }

// Openings returns how often it has opened.
func (b *Breaker) Openings() uint64 { return b.openings.Load() }

// Pass is an admitted request. One of its methods must be called once, when the request has
// ended.
type Pass struct {
	b     *Breaker
	epoch uint32
	probe bool
	begun time.Duration
}

// Ask admits a request, or returns an [OpenError].
func (b *Breaker) Ask() (Pass, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := Pass{b: b, epoch: b.epochs}
	if b.State() == Closed && b.o.Slow <= 0 { // no time counts
		return p, nil
	}
	now := time.Since(b.epoch)
	p.begun = now
	switch state := b.State(); {
	case state == Closed:
		return p, nil
	case !b.readyLocked(now):
		b.refused.Add(1)
		left := time.Duration(0)
		if state == Open {
			left = b.changed + b.out - now
		}
		return Pass{}, &OpenError{b.name, left}
	case state == Open:
		b.changeLocked(HalfOpen, now)
	}
	b.probing, b.probe = true, now
	p.epoch, p.probe = b.epochs, true
	return p, nil
}

// Done says how the request ended.
func (p Pass) Done(failed bool) {
	b := p.b
	if !failed && !p.probe && b.o.Slow <= 0 && b.o.Share <= 0 { // only failures in a row count, and no time
		b.mu.Lock()
		defer b.mu.Unlock()
		if p.epoch == b.epochs {
			b.row = 0
		}
		return
	}
	now := time.Since(b.epoch)
	failed = failed || p.slow(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.epoch != b.epochs {
		return
	}
	if p.probe {
		b.probedLocked(failed, now)
		return
	}
	b.window.add(now, failed)
	if !failed {
		b.row = 0
		return
	}
	if b.row++; b.o.Consecutive > 0 && b.row >= b.o.Consecutive || b.o.Share > 0 && b.window.share(b.o.Least) >= b.o.Share {
		b.openLocked(now)
	}
}

// Forget says that the request ended in a way that says nothing, as when its caller
// went away. It counts only if it was slow.
func (p Pass) Forget() {
	if p.slow(time.Since(p.b.epoch)) {
		p.Done(true)
		return
	}
	if p.probe {
		p.b.mu.Lock()
		defer p.b.mu.Unlock()
		if p.epoch == p.b.epochs {
			p.b.probing = false
		}
	}
}

func (p Pass) slow(now time.Duration) bool { return p.b.o.Slow > 0 && now-p.begun > p.b.o.Slow }

// probedLocked takes the result of a request that tried.
func (b *Breaker) probedLocked(failed bool, now time.Duration) {
	b.probing = false
	if failed {
		b.openLocked(now)
		return
	}
	if b.row++; b.row >= b.o.Probes {
		b.changeLocked(Closed, now)
	}
}

// openLocked opens the breaker, unless too many of its group are out.
func (b *Breaker) openLocked(now time.Duration) {
	closed := b.State() == Closed
	if closed && !b.join() {
		return
	}
	if b.out == 0 || closed && now-b.changed >= b.out {
		b.out = b.o.Out
	} else {
		b.out = min(2*b.out, b.o.MostOut)
	}
	b.openings.Add(1)
	b.changeLocked(Open, now)
}

// join reports whether the breaker may be one of those of its group that are out.
func (b *Breaker) join() bool { return b.group == nil || b.detached || b.group.join() }

func (b *Breaker) changeLocked(to State, now time.Duration) {
	b.state.Store(uint32(to))
	b.epochs++
	b.row, b.probing = 0, false
	b.changed = now
	b.window.clear()
	if to == Closed && b.group != nil && !b.detached {
		b.group.leave()
	}
	if b.o.Changed != nil {
		b.o.Changed(b.name, to)
	}
}
