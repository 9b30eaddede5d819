// Package pool holds the connections to one address: those that are idle are used again, no
// more than a number are open, and who finds none waits in a queue.
package pool

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Options of a pool.
type Options[T any] struct {
	// Open is how many are open at most. 0: any number.
	Open int
	// Queue is how many may wait for one.
	Queue int
	// Wait is how long one may wait.
	Wait time.Duration
	// Idle is how many are kept idle at most, and IdleTimeout for how long.
	Idle        int
	IdleTimeout time.Duration
	// Close closes one. It may be called with the pool locked, and must not wait.
	Close func(T)
	// Useless reports whether an idle one is of no use any more. Likewise.
	Useless func(T) bool
}

// The reasons why there is none.
var (
	ErrFull = errors.New("enough requests wait for one already")
	ErrLate = errors.New("none became free in time")
)

// Pool holds what is open. Each has a place in it, also while it is opened. It is safe for
// concurrent use.
type Pool[T any] struct {
	o Options[T]

	mu      sync.Mutex
	open    int           // places that are taken
	least   int           // how many KeepOpen wants to be taken
	idle    []kept[T]     // the one used last at the end
	sweep   *time.Timer   // nil: none is idle
	waiting list.List     // of chan place[T], each with room for one
	fewer   chan struct{} // tells KeepOpen that there are too few
	rests   bool          // KeepOpen is to leave things as they are for a while
}

// kept is an idle one.
type kept[T any] struct {
	one   T
	since time.Time
	fresh bool // it has not been used yet
}

// place is one that is open, or the right to open one.
type place[T any] struct {
	one T
	is  bool
}

// New returns an empty pool.
func New[T any](o Options[T]) *Pool[T] {
	return &Pool[T]{o: o, fewer: make(chan struct{}, 1)}
}

// Take returns an idle one: the one that was used last. Else it reports false: the caller has
// a place, and opens one. It is to call Keep, Free or Instead in the end. If all places are
// taken, it waits for its turn, or returns ErrFull, ErrLate or why the context has ended.
func (p *Pool[T]) Take(ctx context.Context) (one T, is bool, err error) {
	p.mu.Lock()
	switch {
	case len(p.idle) > 0:
		one = p.popLocked()
		p.mu.Unlock()
		return one, true, nil
	case p.o.Open <= 0 || p.open < p.o.Open:
		p.open++
		p.mu.Unlock()
		return one, false, nil
	case p.waiting.Len() >= p.o.Queue:
		p.mu.Unlock()
		return one, false, ErrFull
	}
	turn := make(chan place[T], 1)
	at := p.waiting.PushBack(turn)
	p.mu.Unlock()
	return p.wait(ctx, turn, at)
}

// wait waits for one's turn.
func (p *Pool[T]) wait(ctx context.Context, turn chan place[T], at *list.Element) (one T, is bool, err error) {
	late := time.NewTimer(p.o.Wait)
	defer late.Stop()
	select {
	case got := <-turn:
		return got.one, got.is, nil
	case <-late.C:
		err = ErrLate
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.mu.Lock()
	select {
	case got := <-turn: // it came at the last moment
		p.mu.Unlock()
		if err == ErrLate {
			return got.one, got.is, nil
		}
		p.giveBack(got)
	default:
		p.waiting.Remove(at)
		p.mu.Unlock()
	}
	return one, false, err
}

// giveBack gives a place back that nobody wants.
func (p *Pool[T]) giveBack(got place[T]) {
	if got.is {
		p.Keep(got.one)
	} else {
		p.Free()
	}
}

// Unused reports whether no place is taken, and nobody waits for one.
func (p *Pool[T]) Unused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open <= 0 && p.waiting.Len() == 0
}

func (p *Pool[T]) popLocked() T {
	n := len(p.idle) - 1
	one := p.idle[n].one
	p.idle[n] = kept[T]{}
	p.idle = p.idle[:n]
	return one
}

// grantLocked gives a place to who has waited longest, and reports whether anybody waits.
func (p *Pool[T]) grantLocked(to place[T]) bool {
	first := p.waiting.Front()
	if first == nil {
		return false
	}
	p.waiting.Remove(first).(chan place[T]) <- to
	return true
}

// Keep has one that was taken, or opened, be used by the next, or wait for that.
func (p *Pool[T]) Keep(one T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keepLocked(kept[T]{one: one})
}

func (p *Pool[T]) keepLocked(k kept[T]) {
	if p.grantLocked(place[T]{k.one, true}) {
		return
	}
	if len(p.idle) >= p.o.Idle {
		p.dropLocked(k.one)
		return
	}
	k.since = time.Now()
	p.idle = append(p.idle, k)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.o.IdleTimeout, p.clean)
	}
}

// dropLocked closes one, and frees its place.
func (p *Pool[T]) dropLocked(one T) {
	p.o.Close(one)
	p.freeLocked()
}

// Free frees a place whose one has been closed, or was not opened.
func (p *Pool[T]) Free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeLocked()
}

func (p *Pool[T]) freeLocked() {
	if p.grantLocked(place[T]{}) {
		return
	}
	if p.open--; p.open < p.least {
		select {
		case p.fewer <- struct{}{}:
		default: // it has been told
		}
	}
}

// Instead closes one that was taken and is of no use. It returns an idle one for it, as Take
// does, but does not wait: else its place is the caller's.
func (p *Pool[T]) Instead(of T) (one T, is bool) {
	p.o.Close(of)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return one, false
	}
	one = p.popLocked()
	p.freeLocked()
	return one, true
}

// clean closes those that have been idle for too long: they stand at the beginning.
func (p *Pool[T]) clean() {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.idle) && time.Since(p.idle[old].since) >= p.o.IdleTimeout {
		old++
	}
	p.cutLocked(func(i int) bool { return i < old })
	if len(p.idle) == 0 {
		p.sweep = nil
		return
	}
	p.sweep.Reset(p.o.IdleTimeout - time.Since(p.idle[0].since))
}

// cutLocked closes the idle ones that are to go.
func (p *Pool[T]) cutLocked(goes func(i int) bool) {
	stay := p.idle[:0]
	for i, k := range p.idle {
		if goes(i) {
			p.dropLocked(k.one)
		} else {
			stay = append(stay, k)
		}
	}
	clear(p.idle[len(stay):])
	p.idle = stay
}

// CloseIdle closes those that are idle. KeepOpen opens none for a while: they may be in the
// way of something.
func (p *Pool[T]) CloseIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rests = true
	p.cutLocked(func(int) bool { return true })
}
