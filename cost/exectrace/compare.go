package exectrace

import (
	"cmp"
	"slices"
	"time"
)

// Difference is what one cause took of a slow request, and of one that is not, on
// average.
type Difference struct {
	Cause
	Slow, Fast time.Duration
	Requests   int // slow ones in which it was seen
}

// Excess is what it took more of a slow request.
func (d Difference) Excess() time.Duration { return d.Slow - d.Fast }

// Differences says what is different about slow requests, the largest excess
// first. The excesses add up to the difference of the means; those at the end are
// negative where slow requests spent less on something.
func (r *Requests) Differences() []Difference {
	type key struct {
		state             State
		owner, released   Owner
		at, by            string
		releasedByAnybody bool
	}
	of := func(c Cause) key {
		k := key{state: c.State, owner: c.Owner, at: c.At, by: c.By, releasedByAnybody: c.Released != nil}
		if c.Released != nil {
			k.released = *c.Released
		}
		return k
	}
	found := map[key]*Difference{}
	// Several parts may go by the same names: of files in folders of the same name.
	difference := func(c Cause) *Difference {
		d := found[of(c)]
		if d == nil {
			d = &Difference{Cause: c}
			found[of(c)] = d
		}
		return d
	}
	for _, p := range r.Slow.Parts {
		d := difference(p.Cause)
		d.Slow += p.Time / time.Duration(r.Slow.Count)
		d.Requests = min(d.Requests+p.Requests, r.Slow.Count)
	}
	for _, p := range r.Fast.Parts {
		difference(p.Cause).Fast += p.Time / time.Duration(r.Fast.Count)
	}
	all := make([]Difference, 0, len(found))
	for _, d := range found {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(b.Excess(), a.Excess()), cmp.Compare(a.State, b.State),
			cmp.Compare(a.Owner.Name, b.Owner.Name), cmp.Compare(a.At, b.At), cmp.Compare(a.By, b.By))
	})
	return all
}

// Share is a part of a group's time.
type Share struct {
	State State
	Part  float64 // of 1
}

// States says how a group's time divides by state, the largest first.
func (g *Group) States() []Share {
	var sums [states]time.Duration
	for _, p := range g.Parts {
		sums[p.State] += p.Time
	}
	var all []Share
	for s, d := range sums {
		if d > 0 {
			all = append(all, Share{State(s), float64(d) / float64(g.Time)})
		}
	}
	slices.SortStableFunc(all, func(a, b Share) int { return cmp.Compare(b.Part, a.Part) })
	return all
}

// Mean is how long a request of the group took on average, 0 of none.
func (g *Group) Mean() time.Duration {
	if g.Count == 0 {
		return 0
	}
	return g.Time / time.Duration(g.Count)
}
