package exectrace

import (
	"cmp"
	"math"
	"slices"
	"time"

	"golang.org/x/exp/trace"

	"github.com/tarehq/tare/cost"
)

// finished is a request as it ends.
type finished struct {
	goroutine          trace.GoID
	begin, end         trace.Time
	past               history
	log                string
	begun, unended     bool
	collected, stopped int64 // nanoseconds
}

func (f *finished) duration() time.Duration { return f.end.Sub(f.begin) }

func (f *finished) cut() bool { return f.begun || f.unended }

// tally adds requests up by how long they took, so that slow ones can be told from
// fast ones afterwards, and keeps the slowest.
type tally struct {
	o     Options
	sites *sites
	first trace.Time
	count int
	cut   int
	most  time.Duration // the longest seen from begin to end
	whole map[int]int   // requests seen from begin to end, by step
	sums  map[stratum]*sum
	top   []finished // the slowest first
	parts map[part]*spent
}

// stratum is requests that are added up as one.
type stratum struct {
	step int  // of their durations; if a bound was given 1 from there on, else 0
	cut  bool // longer than was seen
}

// part is a state at a place, and the place at which it was ended: nil if that is
// not known or plays no part.
type part struct {
	state State
	at    *label
	by    *label
}

type spent struct {
	time     time.Duration
	times    int
	requests int
}

type sum struct {
	count              int
	time               time.Duration
	least              time.Duration
	collected, stopped int64
	parts              map[part]*spent
	handlers           map[cost.Owner]int
}

func newTally(o Options, s *sites) tally {
	if o.Top == 0 {
		o.Top = 10
	}
	return tally{o: o, sites: s, whole: map[int]int{}, sums: map[stratum]*sum{}, parts: map[part]*spent{}}
}

// stepsPerOctave makes durations of one step differ by at most 2.2 %.
const stepsPerOctave = 32

func stepOf(d time.Duration) int {
	return int(math.Floor(math.Log2(float64(max(1, d))) * stepsPerOctave))
}

// edge is the longest duration of a step.
func edge(step int) time.Duration {
	return time.Duration(math.Exp2(float64(step+1) / stepsPerOctave))
}

// add takes a request in.
func (t *tally) add(f *finished) {
	d := f.duration()
	if f.cut() {
		t.cut++
	} else {
		t.count++
		t.most = max(t.most, d)
		t.whole[stepOf(d)]++
	}
	key := stratum{step: stepOf(d), cut: f.cut()}
	if t.o.SlowerThan > 0 {
		key.step = 0
		if d >= t.o.SlowerThan {
			key.step = 1
		}
	}
	s := t.sums[key]
	if s == nil {
		s = &sum{least: d, parts: map[part]*spent{}, handlers: map[cost.Owner]int{}}
		t.sums[key] = s
	}
	s.count++
	s.time += d
	s.least = min(s.least, d)
	s.collected += f.collected
	s.stopped += f.stopped
	s.handlers[t.handler(f.past)]++
	t.share(s, f.past)
	t.rank(f)
}

// share adds a request's pieces to a sum.
func (t *tally) share(s *sum, past history) {
	clear(t.parts)
	for i := range past {
		p := &past[i]
		key := p.part()
		own := t.parts[key]
		if own == nil {
			own = &spent{}
			t.parts[key] = own
		}
		own.time += p.end.Sub(p.begin)
		own.times += max(1, p.merged)
	}
	for key, own := range t.parts {
		all := s.parts[key]
		if all == nil {
			all = &spent{}
			s.parts[key] = all
		}
		all.time += own.time
		all.times += own.times
		all.requests++
	}
}

// handler is the innermost handler that a request was seen in.
func (t *tally) handler(past history) cost.Owner {
	var found cost.Owner
	depth := 0
	for i := range past {
		if at := past[i].at; at != nil && at.depth > depth {
			depth, found = at.depth, at.inner
		}
	}
	return found
}

// rank keeps the request if it is among the slowest.
func (t *tally) rank(f *finished) {
	d := f.duration()
	if len(t.top) >= t.o.Top && (t.o.Top <= 0 || d <= t.top[len(t.top)-1].duration()) {
		return
	}
	kept := *f
	kept.past = slices.Clone(f.past)
	i, _ := slices.BinarySearchFunc(t.top, kept, func(a, b finished) int { return cmp.Compare(b.duration(), a.duration()) })
	t.top = slices.Insert(t.top, i, kept)
	t.top = t.top[:min(len(t.top), t.o.Top)]
}

// part is what a piece is a part of.
func (p *piece) part() part {
	key := part{state: p.state}
	if p.at != nil {
		key.at = p.at.label
	}
	if p.by != nil && (p.state == Locked || p.state == Channel) {
		key.by = p.by.label
	}
	return key
}

// describe tells a request's story.
func (t *tally) describe(f *finished) Request {
	r := Request{
		Goroutine: int64(f.goroutine), Begin: f.begin.Sub(t.first), Duration: f.duration(), Begun: f.begun, Unended: f.unended,
		Handler: t.sites.ownerOf(t.handler(f.past)), Log: f.log,
		Collector: time.Duration(f.collected), Stopped: time.Duration(f.stopped),
	}
	for i := range f.past {
		p := &f.past[i]
		r.Segments = append(r.Segments, Segment{
			Cause: t.cause(p.part()), Begin: p.begin.Sub(f.begin), Duration: p.end.Sub(p.begin),
			Elsewhere: p.elsewhere, Merged: p.merged,
		})
	}
	return r
}

// cause names a part.
func (t *tally) cause(p part) Cause {
	c := Cause{State: p.state, Owner: Owner{Kind: cost.Other.String(), Name: "not sampled"}}
	if p.at != nil {
		c.Owner, c.At = t.sites.ownerOf(p.at.owner), p.at.at
	}
	if p.by != nil {
		o := t.sites.ownerOf(p.by.owner)
		c.Released, c.By = &o, p.by.at
	}
	return c
}

// result sums up.
func (t *tally) result() *Requests {
	res := &Requests{Count: t.count, Cut: t.cut, SlowerThan: t.o.SlowerThan}
	for i := range t.top {
		res.Slowest = append(res.Slowest, t.describe(&t.top[i]))
	}
	if t.count > 0 {
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
			res.Quantiles = append(res.Quantiles, Quantile{q, t.quantile(q)})
		}
	}
	from := 1
	if t.o.SlowerThan <= 0 {
		from = t.slowest(0.01)
	}
	var slow, fast sum
	for key, s := range t.sums {
		switch {
		case key.step >= from:
			slow.join(s, key.cut && t.count > 0)
		case !key.cut:
			fast.join(s, false)
		}
	}
	if t.o.SlowerThan <= 0 {
		res.SlowerThan = slow.least
	}
	res.Slow, res.Fast = t.group(&slow), t.group(&fast)
	for key, s := range t.sums {
		if key.cut && key.step >= from {
			res.Slow.Cut += s.count
		}
	}
	return res
}

// slowest returns the step from which on at least a share of the requests are. Where
// none was seen whole, all are: no other is known to be faster.
func (t *tally) slowest(share float64) int {
	if t.count == 0 {
		return math.MinInt
	}
	steps := make([]int, 0, len(t.whole))
	for s := range t.whole {
		steps = append(steps, s)
	}
	slices.Sort(steps)
	n := 0
	for _, s := range slices.Backward(steps) {
		if n += t.whole[s]; float64(n) >= share*float64(t.count) {
			return s
		}
	}
	return math.MaxInt
}

// quantile returns the duration that a share of the requests did not exceed.
func (t *tally) quantile(q float64) time.Duration {
	steps := make([]int, 0, len(t.whole))
	for s := range t.whole {
		steps = append(steps, s)
	}
	slices.Sort(steps)
	n := 0
	for _, s := range steps {
		if n += t.whole[s]; float64(n) >= q*float64(t.count) {
			return min(edge(s), t.most)
		}
	}
	return 0
}

func (s *sum) join(other *sum, cut bool) {
	if s.parts == nil {
		s.parts, s.handlers, s.least = map[part]*spent{}, map[cost.Owner]int{}, math.MaxInt64
	}
	s.count += other.count
	s.time += other.time
	s.collected += other.collected
	s.stopped += other.stopped
	if !cut {
		s.least = min(s.least, other.least)
	}
	for key, p := range other.parts {
		all := s.parts[key]
		if all == nil {
			all = &spent{}
			s.parts[key] = all
		}
		all.time += p.time
		all.times += p.times
		all.requests += p.requests
	}
	for h, n := range other.handlers {
		s.handlers[h] += n
	}
}

// group names the parts of a sum.
func (t *tally) group(s *sum) Group {
	g := Group{Count: s.count, Time: s.time, Collector: time.Duration(s.collected), Stopped: time.Duration(s.stopped)}
	for p, sp := range s.parts {
		g.Parts = append(g.Parts, Part{Cause: t.cause(p), Time: sp.time, Times: sp.times, Requests: sp.requests})
	}
	slices.SortFunc(g.Parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.State, b.State), cmp.Compare(a.Owner.Name, b.Owner.Name), cmp.Compare(a.At, b.At), cmp.Compare(a.By, b.By))
	})
	for h, n := range s.handlers {
		g.Handlers = append(g.Handlers, Handler{t.sites.ownerOf(h), n})
	}
	slices.SortFunc(g.Handlers, func(a, b Handler) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Owner.Name, b.Owner.Name), cmp.Compare(a.Owner.Where, b.Owner.Where))
	})
	return g
}
