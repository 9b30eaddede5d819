// Package wheel keeps things by the time of the next look at them, so that a pass costs what
// is due and not what there is.
package wheel

import (
	"sync"
	"sync/atomic"
	"time"
)

// A slot of level 0 holds what is due in one unit of time. One of each further level holds
// what is due in as many units as the level below has slots for.
const (
	levels = 4
	bits   = 6
	slots  = 1 << bits
)

// Node is a thing's place in a wheel. The zero value is in none.
type Node[T any] struct {
	of   T
	at   atomic.Int64 // 0: in no wheel
	next *Node[T]
	link **Node[T] // what points to it; nil: Next has taken it out
}

// At returns when the thing is looked at, 0 if it is in no wheel. It takes no lock.
func (n *Node[T]) At() int64 { return n.at.Load() }

// Wheel is a hierarchical timing wheel: Add, Hasten, PutBack and Remove take constant time
// and allocate nothing. Times are nanoseconds of the caller's clock, above 0. It is safe for
// concurrent use.
type Wheel[T any] struct {
	unit int64

	mu    sync.Mutex
	hand  int64 // the unit of the last turn
	now   int64 // of the last turn: what was to be looked at by then is due
	held  int   // nodes in slots and in due
	slots [levels][slots]*Node[T]
	due   *Node[T]
}

// New returns a wheel whose slots are unit wide, above 0: about as long as it is from one
// turn to the next.
func New[T any](unit time.Duration) *Wheel[T] { return &Wheel[T]{unit: int64(unit)} }

// Add puts a thing into the wheel, to be looked at then.
func (w *Wheel[T]) Add(n *Node[T], of T, at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.of = of
	w.insert(n, at)
}

// Hasten has the thing be looked at earlier than it would be. It does nothing where it is
// looked at by then anyhow, is being looked at, or is in no wheel.
func (w *Wheel[T]) Hasten(n *Node[T], at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.link == nil || n.at.Load() <= max(at, w.now) {
		return
	}
	w.unlink(n)
	w.insert(n, at)
}

// Remove takes the thing out for good, also while it is being looked at.
func (w *Wheel[T]) Remove(n *Node[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.link != nil {
		w.unlink(n)
	}
	n.at.Store(0)
}

// Turn makes what is to be looked at by now due.
func (w *Wheel[T]) Turn(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
	until := now / w.unit
	if w.held == 0 {
		w.hand = until
	}
	for {
		w.collect(now)
		if w.hand >= until {
			return
		}
		w.hand++
		for l := 1; l < levels && w.hand&(1<<(bits*l)-1) == 0; l++ {
			w.spread(l)
		}
	}
}

// Next takes out one of what is due: the caller looks at it, and puts it back. It reports
// false where nothing is left.
func (w *Wheel[T]) Next() (n *Node[T], of T, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n = w.due; n == nil {
		return nil, of, false
	}
	w.unlink(n)
	return n, n.of, true
}

// PutBack puts back what Next took out, to be looked at again then, unless it was removed.
// What asked for an earlier look meanwhile was not heard: the caller looks for that afterwards.
func (w *Wheel[T]) PutBack(n *Node[T], at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.at.Load() != 0 {
		w.insert(n, at)
	}
}

// insert puts n into the slot of its time.
func (w *Wheel[T]) insert(n *Node[T], at int64) {
	n.at.Store(at)
	u := max(at/w.unit, w.hand)
	l := 0
	for l < levels-1 && u-w.hand >= 1<<(bits*(l+1)) {
		l++
	}
	u = min(u, w.hand+1<<(bits*levels)-1) // farther than the wheel goes: spread puts it on again
	w.push(&w.slots[l][u>>(bits*l)&(slots-1)], n)
	w.held++
}

func (w *Wheel[T]) push(head **Node[T], n *Node[T]) {
	n.next, n.link = *head, head
	if n.next != nil {
		n.next.link = &n.next
	}
	*head = n
}

func (w *Wheel[T]) unlink(n *Node[T]) {
	*n.link = n.next
	if n.next != nil {
		n.next.link = n.link
	}
	n.next, n.link = nil, nil
	w.held--
}

// collect makes due what has come of the hand's slot. Of the unit that is not over some may
// be left.
func (w *Wheel[T]) collect(now int64) {
	for n := w.slots[0][w.hand&(slots-1)]; n != nil; {
		next := n.next
		if n.at.Load() <= now {
			w.unlink(n)
			w.push(&w.due, n)
			w.held++
		}
		n = next
	}
}

// spread brings the hand's slot of a level to the levels below.
func (w *Wheel[T]) spread(l int) {
	head := &w.slots[l][w.hand>>(bits*l)&(slots-1)]
	for n := *head; n != nil; {
		next := n.next
		w.unlink(n)
		w.insert(n, n.at.Load())
		n = next
	}
}
