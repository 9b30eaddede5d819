// Package change finds when the cost of a service changed, in which owner, and with which
// build, from profiles that were taken one after another.
//
// Profiles are joined to blocks of a minute, since one of a few seconds has few stacks and
// resembles its neighbours. Requests are counted now and then, and profiles that rest on one
// count err together. So a block lasts until the next count, however many minutes that takes.
// Two questions are asked:
//
//   - A build took another's place: do the blocks before and after differ? Each owner is
//     tested by package diff: Welch's test with the floor of a Poisson count, and Benjamini
//     and Hochberg's procedure over the owners.
//   - The build stayed: is there a moment at which the blocks change? The largest step of
//     any owner, over all moments, is compared with those of the same blocks in random
//     order. If fewer than one in a hundred orders has as large a step, the sides are
//     compared as above, and each side is searched in turn.
//
// Changes of less than a hundredth of a request are not reported.
//
// If one build runs in several processes, these are counted by turns, and a block ends once
// all have been counted anew. Neighbours then share some counts. If the turns are spread
// evenly, the error of counting is underestimated by a fifth.
//
// A change is a reason to look, not a verdict on a build: one process may differ from the
// next without a change in the source, and so may the mix of requests. tare ab starts both
// builds afresh, many times and in turns.
package change

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/diff"
)

// Point is one profile of a service.
type Point struct {
	Build    string
	Begun    time.Time
	Stacks   []cost.Stack
	Requests float64   // 0: not counted
	Margin   float64   // half the width of the 95 % interval of Requests
	Counted  time.Time // when the requests were counted that Requests rests on, of several counts the earliest; zero: for this profile alone
	Duration time.Duration
}

// Options say what is told.
type Options struct {
	Block time.Duration // at least; 0: a minute
	// Q is the share of false findings that is allowed on average, and how likely a search
	// may be to find a step where none is; 0: 0.01.
	Q     float64
	Least float64 // share of what a request costs, below which a change is not told; 0: 0.01
	Seed  uint64
}

// Change is what an owner costs more, or less, from a moment on.
type Change struct {
	At       time.Time `json:"at"`                 // to a block
	Kind     string    `json:"kind,omitempty"`     // of the owner; "" is the service as a whole
	Owner    string    `json:"owner,omitempty"`    //
	Where    string    `json:"where,omitempty"`    // its file:line
	Build    string    `json:"build"`              // that ran from then on
	Replaced string    `json:"replaced,omitempty"` // the build that ran before; "": the same
	Before   float64   `json:"before_ns"`          // CPU, per Report.Per
	After    float64   `json:"after_ns"`
	Low      float64   `json:"low_ns"` // of the 95 % interval of After − Before
	High     float64   `json:"high_ns"`
	P        float64   `json:"p"`
	// BlocksBefore and BlocksAfter are how many were compared.
	BlocksBefore int `json:"blocks_before"`
	BlocksAfter  int `json:"blocks_after"`
}

// Diff is by how much it changed.
func (c *Change) Diff() float64 { return c.After - c.Before }

// Report is what was found of a service.
type Report struct {
	Service string    `json:"service"`
	Per     string    `json:"per"` // "request", or "second" if requests were not counted
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Points  int       `json:"profiles"`
	Builds  []string  `json:"builds"`  // in the order of their beginnings
	Compare int       `json:"compare"` // pairs of sides that were compared
	Search  int       `json:"search"`  // stretches of one build that were searched
	Changes []Change  `json:"changes"` // by time, the largest first
	Short   []string  `json:"short,omitempty"`
}

// Least and most blocks of a side.
const (
	leastBlocks = 5
	mostBlocks  = 60
)

// block is what was seen of a build in a minute, or by one count of requests.
type block struct {
	begun time.Time
	diff.Capture

	counted time.Time // of the last profile in it
	settled float64   // margin of the counts before that one
	open    float64   // of that one
}

// segment is a stretch of time in which one build ran.
type segment struct {
	build  string
	blocks []block
}

// Find looks for changes in profiles of one service, which may be in any order.
func Find(service string, points []Point, o Options) *Report {
	o.Block, o.Q, o.Least = cmp.Or(o.Block, time.Minute), cmp.Or(o.Q, 0.01), cmp.Or(o.Least, 0.01)
	r := &Report{Service: service, Per: "second", Changes: []Change{}, Builds: []string{}}
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b Point) int { return a.Begun.Compare(b.Begun) })
	var counted bool
	if points, counted = countedOnly(points); counted {
		r.Per = "request"
	}
	if r.Points = len(points); r.Points == 0 {
		return r
	}
	r.From, r.To = points[0].Begun, points[len(points)-1].Begun.Add(points[len(points)-1].Duration)
	f := finder{o: o, r: r, rng: rand.New(rand.NewPCG(o.Seed, 26))}
	all := segments(points, o.Block)
	for i := range all {
		f.search(all[i].build, all[i].blocks)
		if i > 0 {
			f.replaced(&all[i-1], &all[i])
		}
		if b := all[i].build; !slices.Contains(r.Builds, b) {
			r.Builds = append(r.Builds, b)
		}
	}
	slices.SortStableFunc(r.Changes, func(a, b Change) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(math.Abs(b.Diff()), math.Abs(a.Diff())))
	})
	return r
}

// countedOnly leaves out profiles without a count of requests, unless they are more than a
// fifth of the CPU: then no count is used.
func countedOnly(points []Point) ([]Point, bool) {
	const most = 0.2
	var all, without float64
	with := make([]Point, 0, len(points))
	for _, p := range points {
		cpu := 0.0
		for i := range p.Stacks {
			cpu += p.Stacks[i].Value
		}
		all += cpu
		if p.Requests > 0 {
			with = append(with, p)
		} else {
			without += cpu
		}
	}
	if len(with) > 0 && without <= most*all {
		return with, true
	}
	for i := range points {
		points[i].Requests, points[i].Margin, points[i].Counted = 0, 0, time.Time{}
	}
	return points, false
}

// segments joins profiles to blocks, and these to stretches of one build, by when they
// begin. While one build takes the other's place both may run: a stretch ends only if its
// build is not seen for two blocks in which another is.
func segments(points []Point, length time.Duration) []segment {
	var all []segment
	latest := map[string]int{}
	others := map[string]time.Time{} // since when others alone were seen
	for _, p := range points {
		k, ok := latest[p.Build]
		if since, alone := others[p.Build]; !ok || alone && p.Begun.Sub(since) > 2*length {
			k = len(all)
			latest[p.Build] = k
			all = append(all, segment{build: p.Build})
		}
		delete(others, p.Build)
		for b := range latest {
			if _, alone := others[b]; b != p.Build && !alone {
				others[b] = p.Begun
			}
		}
		all[k].add(&p, length)
	}
	for i := range all { // as a last block that has just begun
		all[i].blocks = slices.DeleteFunc(all[i].blocks, func(b block) bool { return b.Window.Duration < length/2 })
	}
	return slices.DeleteFunc(all, func(s segment) bool { return len(s.blocks) == 0 })
}

// add adds a profile to the block of its time.
func (s *segment) add(p *Point, length time.Duration) {
	if n := len(s.blocks); n == 0 || s.blocks[n-1].whole(p, length) {
		s.blocks = append(s.blocks, block{begun: p.Begun})
	}
	b := &s.blocks[len(s.blocks)-1]
	b.Stacks = append(b.Stacks, p.Stacks...)
	w := &b.Window
	w.Duration += p.Duration
	w.Requests += p.Requests
	if p.Counted.IsZero() || !p.Counted.Equal(b.counted) {
		b.settled, b.open = math.Hypot(b.settled, b.open), 0
	}
	b.counted = p.Counted
	b.open += p.Margin // profiles of one count err together
	w.Margin = math.Hypot(b.settled, b.open)
}

// whole reports whether a profile belongs to the next block: it does not err by a count that
// those in this block err by.
func (b *block) whole(p *Point, length time.Duration) bool {
	anew := p.Counted.IsZero() || !p.Counted.Equal(b.counted) && p.Counted.After(b.begun)
	return anew && p.Begun.Sub(b.begun) >= length
}

// captures are blocks as package diff has them.
func captures(blocks []block) []diff.Capture {
	all := make([]diff.Capture, len(blocks))
	for i, b := range blocks {
		all[i] = b.Capture
	}
	return all
}

// finder looks for changes.
type finder struct {
	o   Options
	r   *Report
	rng *rand.Rand
}

// replaced compares the last blocks of a build with the first of that which took its place.
func (f *finder) replaced(before, after *segment) {
	a, b := before.blocks, after.blocks
	begun := b[0].begun
	a = slices.DeleteFunc(slices.Clone(a), func(x block) bool { return !x.begun.Before(begun) })
	a, b = a[max(0, len(a)-mostBlocks):], b[:min(len(b), mostBlocks)]
	if len(a) < leastBlocks || len(b) < leastBlocks {
		f.r.Short = append(f.r.Short, after.build)
		return
	}
	was := before.build
	if was == after.build {
		was = ""
	}
	f.compare(a, b, Change{At: begun, Build: after.build, Replaced: was})
}

// compare tells what differs between blocks before and after a moment.
func (f *finder) compare(a, b []block, c Change) {
	f.r.Compare++
	res, err := diff.Compare(captures(a), captures(b), diff.Options{Q: f.o.Q})
	if err != nil {
		return // of no captures, of which there are some
	}
	c.BlocksBefore, c.BlocksAfter = len(a), len(b)
	rows := res.Owners
	if res.Total.Differs {
		rows = append([]diff.Row{res.Total}, rows...)
	}
	least := f.o.Least * max(res.Total.A, res.Total.B)
	for _, row := range rows {
		if !row.Differs || math.Abs(row.Diff) < least {
			continue
		}
		c.Kind, c.Owner, c.Where = row.Kind, row.Owner, row.Where
		c.Before, c.After, c.Low, c.High, c.P = row.A, row.B, row.Lo, row.Hi, row.P
		f.r.Changes = append(f.r.Changes, c)
	}
}

// search looks for a moment at which the blocks of one build change, and then on either
// side of it.
func (f *finder) search(build string, blocks []block) {
	if len(blocks) < 2*leastBlocks {
		return
	}
	f.r.Search++
	at, p := step(costs(blocks, f.r.Per), f.o.Q, f.rng)
	if p > f.o.Q {
		return
	}
	f.search(build, blocks[:at])
	f.compare(blocks[max(0, at-mostBlocks):at], blocks[at:min(len(blocks), at+mostBlocks)], Change{At: blocks[at].begun, Build: build})
	f.search(build, blocks[at:])
}

// costs are what each owner costs in each block.
func costs(blocks []block, per string) [][]float64 {
	profiles := make([][]cost.Stack, len(blocks))
	for i, b := range blocks {
		profiles[i] = b.Stacks
	}
	rules := cost.Learn(profiles...)
	of := map[string]int{}
	var rows [][]float64
	var counts []float64
	for i, b := range blocks {
		by := b.Window.Duration.Seconds()
		if per == "request" {
			by = b.Window.Requests
		}
		for k := range b.Stacks {
			owner, _ := rules.Charge(b.Stacks[k].Frames)
			name := owner.Name + "\x00" + owner.File
			n, ok := of[name]
			if !ok {
				n = len(rows)
				of[name] = n
				rows, counts = append(rows, make([]float64, len(blocks))), append(counts, 0)
			}
			rows[n][i] += b.Stacks[k].Value / by
			counts[n] += b.Stacks[k].Count
		}
	}
	const least = 10 // fewer stacks have no step
	kept := rows[:0]
	for n := range rows {
		if counts[n] >= least {
			kept = append(kept, rows[n])
		}
	}
	return kept
}

// step finds the moment, as the first block after it, at which any of the rows has its
// largest step, and how likely as large a one is among the same blocks in random order. It
// stops looking as soon as that is certainly more than q.
func step(rows [][]float64, q float64, rng *rand.Rand) (at int, p float64) {
	if len(rows) == 0 {
		return 0, 1
	}
	const orders = 1999
	n := len(rows[0])
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	at, largest := largestStep(rows, order)
	larger := 0
	for k := range orders {
		rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		if _, s := largestStep(rows, order); s >= largest {
			larger++
		}
		if float64(larger) > q*orders {
			return at, float64(larger+1) / float64(k+2)
		}
	}
	return at, float64(larger+1) / (orders + 1)
}

// largestStep is where, and how large, the largest step of rows is whose blocks stand in an
// order: the difference of the means before and after, in standard errors of a row without
// a step.
func largestStep(rows [][]float64, order []int) (at int, largest float64) {
	n := len(order)
	for _, row := range rows {
		var sum, squares float64
		for _, x := range row {
			sum += x
			squares += x * x
		}
		mean := sum / float64(n)
		variance := squares/float64(n) - mean*mean
		if variance <= 0 {
			continue
		}
		var before float64
		for k := 1; k <= n-leastBlocks; k++ {
			before += row[order[k-1]] - mean
			if k < leastBlocks {
				continue
			}
			left, right := float64(k), float64(n-k)
			// before/left − (−before/right), over its standard error
			z := math.Abs(before) * math.Sqrt(float64(n)/(left*right*variance))
			if z > largest {
				at, largest = k, z
			}
		}
	}
	return at, largest
}
