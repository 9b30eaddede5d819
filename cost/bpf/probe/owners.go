package probe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/cost"
)

// symbol is a function as the linker made it.
type symbol struct {
	name string
	push uint64 // link-time address of its push, 0 if it has none
}

// place is one address on a stack: the functions that it stands for, inlined ones
// first, and the one that the linker made; where only their names are known, others
// that it made of the same.
type place struct {
	frames []cost.Frame
	in     symbol
	others []symbol
}

// census gathers the owners that are met on stacks.
type census struct {
	found []Watched
	inner map[int][]int // owner → owners met directly inside it
}

// newCensus takes stacks, each innermost first.
func newCensus(stacks [][]place) *census {
	profile := make([]cost.Stack, len(stacks))
	for i, stack := range stacks {
		for _, p := range stack {
			profile[i].Frames = append(profile[i].Frames, p.frames...)
		}
	}
	rules := cost.Learn(profile)
	c := &census{}
	for i, stack := range stacks {
		c.meet(stack, profile[i].Frames, rules)
	}
	return c
}

// sampled takes a profile, and the functions that the linker made, which have no lines
// here.
func (c *census) sampled(profile []cost.Stack, made map[cost.Frame][]symbol) {
	rules := cost.Learn(profile)
	known := map[string]bool{}
	for i := range profile {
		_, inside := rules.Inside(profile[i].Frames)
		if len(inside) == 0 {
			continue
		}
		frames := slices.Clone(profile[i].Frames[len(inside)-1:]) // what the owner calls tells nothing more
		for k := range frames {
			frames[k].Line = 0
		}
		if key := fmt.Sprint(frames); !known[key] {
			known[key] = true
			c.meet(placesOf(frames, made), frames, rules)
		}
	}
}

// placesOf returns what frames without lines are the functions of. One that the linker
// made no function of was inlined into what called it.
func placesOf(frames []cost.Frame, made map[cost.Frame][]symbol) []place {
	var places []place
	from := 0
	for i, f := range frames {
		if of := made[f]; len(of) > 0 {
			places = append(places, place{frames[from : i+1], of[0], of[1:]})
			from = i + 1
		}
	}
	return places
}

// meet takes one stack, whose frames are all its places'.
func (c *census) meet(stack []place, frames []cost.Frame, rules *cost.Rules) {
	inside, at, enclosed := -1, 0, false
	for _, p := range stack {
		for i, f := range p.frames {
			owner, _ := rules.Charge(frames[at:])
			at++
			if owner.Kind != cost.Handler || owner.File != f.File || owner.Decl != f.Decl {
				continue
			}
			k := c.add(owner, p, i == len(p.frames)-1)
			c.found[k].Met = true
			if inside >= 0 && inside != k {
				c.nest(k, inside)
				c.found[k].Around = c.found[k].Around || !enclosed
			}
			enclosed = cost.Enclosed(frames, at-1)
			c.found[k].Around = c.found[k].Around || enclosed
			inside = k
		}
	}
}

// add enters an owner that was met at a place, in its own function or inlined
// into it.
func (c *census) add(owner cost.Owner, at place, own bool) int {
	k := slices.IndexFunc(c.found, func(w Watched) bool { return w.Owner == owner })
	if k < 0 {
		k = len(c.found)
		c.found = append(c.found, Watched{Owner: owner})
	}
	w := &c.found[k]
	if !own {
		if len(w.pushes) == 0 {
			w.Reason = "the compiler inlined it into " + at.in.name
		}
		return k
	}
	w.take(at.in)
	for _, s := range at.others {
		w.take(s)
	}
	return k
}

// take adds a function to those that an owner is made of.
func (w *Watched) take(s symbol) {
	if s.push == 0 {
		if len(w.pushes) == 0 {
			w.Reason = s.name + " has no prologue to probe"
		}
		return
	}
	w.Reason = ""
	if !slices.Contains(w.pushes, s.push) {
		w.pushes = append(w.pushes, s.push)
		w.Symbols = append(w.Symbols, s.name)
	}
}

// nest notes that one owner was met directly inside another.
func (c *census) nest(outer, inner int) {
	if c.inner == nil {
		c.inner = map[int][]int{}
	}
	if !slices.Contains(c.inner[outer], inner) {
		c.inner[outer] = append(c.inner[outer], inner)
	}
}

// chooseByName returns the owners that go by one of the names, and those directly
// inside them, without which their own time could not be told; and the names that
// fit none.
func (c *census) chooseByName(names []string) (chosen []Watched, unknown []string) {
	picked := map[int]bool{}
	for _, name := range names {
		fits := false
		for k := range c.found {
			if goesBy(&c.found[k], name) {
				picked[k], fits = true, true
			}
		}
		if !fits {
			unknown = append(unknown, name)
		}
	}
	beside := map[int]bool{}
	for k := range picked {
		for _, in := range c.inner[k] {
			if !picked[in] && c.found[in].Reason == "" {
				beside[in] = true
			}
		}
	}
	for k, w := range c.found {
		if picked[k] || beside[k] {
			w.Aside = beside[k]
			chosen = append(chosen, w)
		}
	}
	return chosen, unknown
}

// beside adds who handles requests to an error about a name: the one in the source
// may be a constructor's, where what it returned is called.
func (c *census) beside(err error) error {
	if len(c.found) == 0 {
		return err
	}
	names := make([]string, len(c.found))
	for i, w := range c.found {
		names[i] = w.Owner.Name
	}
	return fmt.Errorf("%w; owners seen: %s", err, strings.Join(names, ", "))
}

// goesBy reports whether a name that somebody typed means an owner: what the cost
// table calls it, file:line of its function, or the linker's name.
func goesBy(w *Watched, name string) bool {
	if name == w.Owner.Name || slices.Contains(w.Symbols, name) {
		return true
	}
	where := w.Owner.File + ":" + strconv.Itoa(w.Owner.Decl)
	return w.Owner.File != "" && (where == name || strings.HasSuffix(where, "/"+name))
}

// ownerOf is the owner that a function would be if requests were handed to it.
func ownerOf(f cost.Frame) (cost.Owner, bool) {
	o, _ := cost.Charge([]cost.Frame{f, {Func: "net/http.HandlerFunc.ServeHTTP"}})
	return o, o.Kind == cost.Handler && o.File == f.File && o.Decl == f.Decl
}
