// Package past charges the few stacks of an interval with the help of earlier ones.
//
// Whether an owner is a middleware or a handler depends on who calls whom, which the stacks of
// ten seconds seldom show. [Chains] remember a service's latest chains of calls, each once. Rules
// are learned from them, which takes far longer than charging: it is done again once enough new
// chains say something new. Some of the others are kept as witnesses, which have no weight and
// show which owners call others.
package past

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
)

// remembered is how many chains there are at most.
const remembered = 100

// Rules are learned anew once there is a new chain that tells something for so many that did
// before, or the first of the new ones, whatever it tells, has waited for so many intervals.
const (
	share   = 8
	overdue = 30
)

// mostTold is how many things that chains told are remembered.
const mostTold = 1000

// Chains are a service's. They are not safe for concurrent use.
type Chains struct {
	seed maphash.Seed
	all  []chain // the latest first

	rules     *cost.Rules // nil before the first stack
	learned   int         // things that chains told when they were learned
	news      int         // that have been told since
	waited    int         // intervals since the first new chain
	told      map[uint64]bool
	witnesses []cost.Stack
	shown     map[cost.Owner]bool // to call others, by the witnesses
}

// chain is one, without what the runtime and the kernel do for its innermost function.
type chain struct {
	key uint64
	cost.Stack
}

// New remembers nothing yet.
func New() *Chains { return &Chains{seed: maphash.MakeSeed(), told: map[uint64]bool{}} }

// Rules are those by which the last bill was made. They do not change who is charged with
// what later, and may be used by others meanwhile.
func (c *Chains) Rules() *cost.Rules {
	if c.rules == nil {
		return new(cost.Rules)
	}
	return c.rules
}

// Bill charges an interval's stacks. Owners that spent nothing in it are not in the bill.
func (c *Chains) Bill(stacks []cost.Stack, w cost.Window) *cost.Bill {
	if len(stacks) == 0 {
		return cost.NewBill(nil, nil, w)
	}
	fresh := c.remember(stacks)
	if len(fresh) > 0 || c.waited > 0 {
		c.waited++
	}
	if c.rules == nil || c.news > 0 && share*c.news >= c.learned || c.waited > overdue {
		c.learn(stacks)
	} else {
		for _, frames := range fresh {
			c.rules.LearnPackages(frames)
			c.takeWitness(frames)
		}
	}
	b := c.rules.Bill(slices.Concat(stacks, c.witnesses), nil, w)
	b.Items = slices.DeleteFunc(b.Items, func(it cost.Item) bool { return it.Self == 0 && it.Total == 0 })
	return b
}

// remember puts the stacks' chains first, and returns those that are new.
func (c *Chains) remember(stacks []cost.Stack) (fresh [][]cost.Frame) {
	for k := range stacks {
		frames := outside(stacks[k].Frames)
		if len(frames) == 0 {
			continue
		}
		key := c.hash(frames)
		at := slices.IndexFunc(c.all, func(o chain) bool { return o.key == key })
		if at < 0 {
			frames = slices.Clone(frames) // the rest of the stack is let go
			fresh = append(fresh, frames)
			c.listen(frames)
			at, c.all = len(c.all), append(c.all, chain{key, cost.Stack{Frames: frames}})
		}
		one := c.all[at]
		one.Count += max(1, stacks[k].Count)
		copy(c.all[1:], c.all[:at])
		c.all[0] = one
	}
	if len(c.all) > remembered {
		clear(c.all[remembered:])
		c.all = c.all[:remembered]
	}
	return fresh
}

// listen notes what a new chain tells, if none did before.
func (c *Chains) listen(frames []cost.Frame) {
	key := c.hash(telling(frames))
	if c.told[key] {
		return
	}
	if len(c.told) >= mostTold {
		clear(c.told)
	}
	c.told[key] = true
	c.news++
}

// telling is a chain without what its innermost function outside the standard library has that
// one do, but for the first two calls: they may be the answer. By this part rules tell owners
// apart, and it is the same in most chains that are new (BenchmarkTail).
func telling(frames []cost.Frame) []cost.Frame {
	const calls = 2
	k := slices.IndexFunc(frames, func(f cost.Frame) bool { return !f.Standard() })
	if k < 0 {
		k = len(frames)
	}
	return frames[max(0, k-calls):]
}

// learn learns from all chains, and from an interval's stacks, of which there may be more.
func (c *Chains) learn(stacks []cost.Stack) {
	all := slices.Clone(stacks)
	for k := range c.all {
		all = append(all, c.all[k].Stack)
	}
	c.rules = cost.Learn(all)
	c.learned, c.news, c.waited = len(c.told), 0, 0
	c.witnesses, c.shown = nil, map[cost.Owner]bool{}
	for k := range c.all {
		c.takeWitness(c.all[k].Frames)
	}
}

// takeWitness keeps a chain that shows of an owner what no other shows: that it hands the
// request on, to a router or to what may be a handler.
func (c *Chains) takeWitness(frames []cost.Frame) {
	owners := c.rules.Around(frames)
	last := len(owners) - 1
	shows := false
	for i, o := range owners[:last] {
		hands := owners[last].Kind == cost.Router || slices.ContainsFunc(owners[i+1:], func(o cost.Owner) bool { return o.Kind == cost.Handler })
		if o.Kind == cost.Handler && hands && !c.shown[o] {
			c.shown[o], shows = true, true
		}
	}
	if shows {
		c.witnesses = append(c.witnesses, cost.Stack{Frames: frames})
	}
}

// outside is a stack without what the runtime and the kernel do for its innermost function,
// in which stacks of one chain differ.
func outside(frames []cost.Frame) []cost.Frame {
	k := slices.IndexFunc(frames, func(f cost.Frame) bool {
		return !strings.HasPrefix(f.Func, "runtime.") && !strings.HasPrefix(f.Func, "internal/runtime/") && !strings.HasPrefix(f.Func, "[kernel]")
	})
	if k < 0 {
		return nil
	}
	return frames[k:]
}

// hash tells chains apart by their functions: where one begins differs from build to build.
func (c *Chains) hash(frames []cost.Frame) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	var decl [8]byte
	for k := range frames {
		h.WriteString(frames[k].Func)
		h.WriteByte(0)
		h.WriteString(frames[k].File)
		binary.NativeEndian.PutUint64(decl[:], uint64(frames[k].Decl))
		h.Write(decl[:])
	}
	return h.Sum64()
}
