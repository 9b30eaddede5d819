package breaker

import (
	"cmp"
	"fmt"
	"sync"
)

// Group is the breakers of what requests are balanced over. At most a share of them is
// out at a time: those that would be more go on getting requests. It is safe for
// concurrent use.
type Group struct {
	o     Options
	share float64

	mu      sync.Mutex
	members map[string]*Breaker
	out     int
}

// NewGroup returns a group without members. share is how many of them may be out, 0.5 if
// it is 0: of one member none, of two or three one.
func NewGroup(o Options, share float64) (*Group, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if !(share >= 0 && share <= 1) {
		return nil, fmt.Errorf("breaker: a share of %v may be out; set one from 0 to 1", share)
	}
	return &Group{o: o, share: cmp.Or(share, 0.5), members: map[string]*Breaker{}}, nil
}

// Member returns the breaker of that name, a new one if there is none.
func (g *Group) Member(name string) *Breaker {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.members[name]
	if b == nil {
		b = newBreaker(name, g.o, g)
		g.members[name] = b
	}
	return b
}

// Remove takes the member of that name out of the group, if there is one. Who has it
// may go on using it: it counts for itself then.
func (g *Group) Remove(name string) {
	g.mu.Lock()
	b := g.members[name]
	delete(g.members, name)
	g.mu.Unlock()
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.State() != Closed && !b.detached {
		g.leave()
	}
	b.detached = true
}

// Out returns how many members are open or half open.
func (g *Group) Out() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out
}

// join reports whether one more may be out, and counts it.
func (g *Group) join() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if float64(g.out+1) > g.share*float64(len(g.members)) {
		return false
	}
	g.out++
	return true
}

func (g *Group) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.out--
}
