// Package balance chooses, among several targets, the one that gets the next request.
//
// A [Policy] is made for a list of targets with their weights, and names them by their
// index in it. Who changes the list, or a weight, makes a new policy; a [Target] keeps
// what is known of it. All of it is safe for concurrent use.
//
// It knows nothing of health: targets that are not to be chosen stand in a [Skip].
package balance

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of what a policy is made for.
const (
	Most       = 256 // targets
	MostWeight = 100
)

// Policy chooses targets.
type Policy interface {
	// Pick returns the index of the target for a request, -1 if skip has all whose weight
	// is above 0. Requests with one key go to one target, if the policy goes by keys.
	Pick(key uint64, skip *Skip) int
}

// Skip is a set of targets, by index. The zero value is empty.
type Skip [Most / 64]uint64

// Add adds a target.
func (s *Skip) Add(i int) { s[i/64] |= 1 << (i % 64) }

// Has reports whether a target is in the set.
func (s *Skip) Has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// Target is the state of one target. The zero value is of an idle one.
type Target struct {
	inFlight atomic.Int64

	mu   sync.Mutex
	took float64 // ns; 0: nothing is known
	at   time.Time
}

// Begin says that a request to it begins.
func (t *Target) Begin() { t.inFlight.Add(1) }

// End says that a request to it has ended.
func (t *Target) End() { t.inFlight.Add(-1) }

// InFlight returns how many requests have begun and not ended.
func (t *Target) InFlight() int64 { return t.inFlight.Load() }

// memory is after how long a response time counts for a third of what it did.
const memory = 10 * time.Second

// Observe says how long it took to answer. A longer time than before counts at once, a
// shorter one by and by: that is Peak EWMA, of Twitter's Finagle.
func (t *Target) Observe(took time.Duration, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := float64(took); x >= t.took {
		t.took = x
	} else {
		keep := math.Exp(-float64(now.Sub(t.at)) / float64(memory))
		t.took = t.took*keep + x*(1-keep)
	}
	t.at = now
}

// cost is what the next request to it would wait for. One of which nothing is known is
// free until a request has begun, and dear until that has ended.
func (t *Target) cost() float64 {
	t.mu.Lock()
	took := t.took
	t.mu.Unlock()
	n := float64(t.InFlight())
	if took == 0 && n > 0 {
		return math.MaxFloat64 / 2
	}
	return took * (n + 1)
}

// RoundRobin returns a policy that gives each target its turn, as often as its weight
// says, and as evenly as that goes.
func RoundRobin(weights []int) Policy {
	p := &roundRobin{turns: turns(weights)}
	p.next.Store(rand.Uint64())
	return p
}

type roundRobin struct {
	turns []uint8
	next  atomic.Uint64
}

func (p *roundRobin) Pick(_ uint64, skip *Skip) int {
	if len(p.turns) == 0 {
		return -1
	}
	return from(p.turns, int(p.next.Add(1)%uint64(len(p.turns))), skip)
}

// from returns the first target from a turn on that is not skipped.
func from(turns []uint8, at int, skip *Skip) int {
	for range turns {
		if i := int(turns[at]); !skip.Has(i) {
			return i
		}
		if at++; at == len(turns) {
			at = 0
		}
	}
	return -1
}

// turns are the targets in the order in which they have their turn. It is nginx's smooth
// weighted round robin: each gains its weight, and the richest pays for all.
func turns(weights []int) []uint8 {
	total, common := 0, 0
	for _, w := range weights {
		total += w
		common = divisor(common, w)
	}
	if total == 0 {
		return nil
	}
	all := make([]uint8, 0, total/common)
	rich := make([]int, len(weights))
	for range total / common {
		best := -1
		for i, w := range weights {
			rich[i] += w
			if w > 0 && (best < 0 || rich[i] > rich[best]) {
				best = i
			}
		}
		rich[best] -= total
		all = append(all, uint8(best))
	}
	return all
}

func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// LeastRequests returns a policy that takes the one of two random targets that has fewer
// requests in flight. A weight makes a target as much more likely to be one of the two.
func LeastRequests(targets []*Target, weights []int) Policy {
	return &twoChoices{targets, turns(weights), func(t *Target) float64 { return float64(t.InFlight()) }}
}

// PeakEWMA returns a policy that takes the one of two random targets whose response times
// and requests in flight let expect the earlier answer. Weights count as in LeastRequests.
func PeakEWMA(targets []*Target, weights []int) Policy {
	return &twoChoices{targets, turns(weights), (*Target).cost}
}

type twoChoices struct {
	targets []*Target
	turns   []uint8
	cost    func(*Target) float64
}

func (p *twoChoices) Pick(_ uint64, skip *Skip) int {
	a := p.draw(skip)
	if a < 0 {
		return -1
	}
	for range 3 {
		if b := p.draw(skip); b != a {
			if p.cost(p.targets[b]) < p.cost(p.targets[a]) {
				return b
			}
			return a
		}
	}
	return a
}

func (p *twoChoices) draw(skip *Skip) int {
	if len(p.turns) == 0 {
		return -1
	}
	return from(p.turns, rand.IntN(len(p.turns)), skip)
}
