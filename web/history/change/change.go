// Package change finds where a series of figures changed.
//
// The method is E-divisive with means: a stretch is cut where the energy distance between
// its two parts is largest, if a permutation test rejects that the order is by chance, and
// each part is then looked at likewise. Nothing is assumed of how the figures are
// distributed. The test assumes that figures without a change could have come in any
// order: those that hang together raise false alarms, which [Options.Floor] keeps down.
//
// A series that drifts has no place where it changed, yet cuts are found. Where a line
// through changes in one direction fits better than levels, they are a [Drift].
//
// Source: Matteson and James, A nonparametric approach for multiple change point analysis
// of multivariate data, 2014.
package change

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tarehq/tare/stats"
)

// Kind is what a change looks like.
type Kind string

// The kinds.
const (
	Step  Kind = "step"  // one level, then another
	Drift Kind = "drift" // a slope fits better than levels
)

// Change is a place where a series changed.
type Change struct {
	At     int     // index of the first figure after it
	Before float64 // median of the figures since the change before
	After  float64 // … up to the next change
	P      float64 // of the permutation test; at least 1 / (permutations + 1)
	Kind   Kind
}

// Options say what counts as a change. The zero value works.
type Options struct {
	Alpha        float64 // level of each test; 0 means 0.01
	Permutations int     // of each test; 0 means 399
	Least        int     // figures on either side of a change at least; 0 means 4
	Floor        float64 // medians must differ by more than this; 0: by anything
	Seed         uint64  // of the permutations: equal series give equal changes
}

// Most is how many figures are looked at: the time grows with their square.
const Most = 400

// Find returns the changes of a series, in order. Figures are finite, and of more than
// [Most] the last ones count.
func Find(series []float64, o Options) []Change {
	o.Alpha, o.Permutations, o.Least = cmp.Or(o.Alpha, 0.01), cmp.Or(o.Permutations, 399), cmp.Or(o.Least, 4)
	skipped := max(0, len(series)-Most)
	f := finder{series: series[skipped:], o: o, rng: rand.New(rand.NewPCG(o.Seed, uint64(len(series))))}
	f.divide(0, len(f.series))
	slices.SortFunc(f.found, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	f.dropSmall()
	f.setKinds()
	for i := range f.found {
		f.found[i].At += skipped
	}
	return f.found
}

type finder struct {
	series []float64
	o      Options
	rng    *rand.Rand
	found  []Change
	within []float64 // of cut
}

// divide looks for a change from one index up to another, and on either side of it.
func (f *finder) divide(from, to int) {
	at, statistic := f.cut(f.series[from:to])
	if at == 0 {
		return
	}
	p := f.test(f.series[from:to], statistic)
	if p > f.o.Alpha {
		return
	}
	at += from
	f.found = append(f.found, Change{At: at, P: p})
	f.divide(from, at)
	f.divide(at, to)
}

// test is the share of random orders that are divided as well as the given one. It ends
// early once that share must be above the level.
func (f *finder) test(part []float64, statistic float64) float64 {
	shuffled := slices.Clone(part)
	asGood, most := 1, f.o.Alpha*float64(f.o.Permutations+1)
	for range f.o.Permutations {
		f.rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if _, s := f.cut(shuffled); s >= statistic {
			asGood++
		}
		if float64(asGood) > most {
			break
		}
	}
	return float64(asGood) / float64(f.o.Permutations+1)
}

// cut returns where a stretch is best divided, at least so many figures from its ends, and
// how far apart the parts are: the energy distance, scaled by the parts' sizes. The right
// part may end before the stretch does, so that a bump is found. It returns 0 if the stretch
// is too short, or all of one figure.
func (f *finder) cut(x []float64) (at int, statistic float64) {
	n, least := len(x), f.o.Least
	if n < 2*least {
		return 0, 0
	}
	// within[i*(n+1)+j] is the sum of the distances between the figures from i up to j.
	width := n + 1
	within := slices.Grow(f.within[:0], width*width)[:width*width]
	f.within = within
	for i := n; i >= 0; i-- {
		within[i*width+i] = 0
		if i < n {
			within[i*width+i+1] = 0
		}
		for j := i + 2; j <= n; j++ {
			within[i*width+j] = within[i*width+j-1] + within[(i+1)*width+j] - within[(i+1)*width+j-1] + math.Abs(x[i]-x[j-1])
		}
	}
	for k := least; k <= n-least; k++ {
		left, a := within[k], float64(k)
		for end := k + least; end <= n; end++ {
			right, b := within[k*width+end], float64(end-k)
			across := within[end] - left - right
			distance := 2*across/(a*b) - 2*left/(a*max(a-1, 1)) - 2*right/(b*max(b-1, 1))
			if s := a * b / (a + b) * distance; s > statistic {
				at, statistic = k, s
			}
		}
	}
	return at, statistic
}

// around are the ends of the two stretches that a change lies between.
func (f *finder) around(i int) (from, to int) {
	to = len(f.series)
	if i > 0 {
		from = f.found[i-1].At
	}
	if i+1 < len(f.found) {
		to = f.found[i+1].At
	}
	return from, to
}

// dropSmall sets the medians, and drops the smallest change as long as it is within the
// floor: its two stretches then are one.
func (f *finder) dropSmall() {
	for {
		smallest := -1
		for i := range f.found {
			c := &f.found[i]
			from, to := f.around(i)
			c.Before, c.After = stats.Median(f.series[from:c.At]), stats.Median(f.series[c.At:to])
			if smallest < 0 || c.size() < f.found[smallest].size() {
				smallest = i
			}
		}
		if smallest < 0 || f.found[smallest].size() > f.o.Floor {
			return
		}
		f.found = slices.Delete(f.found, smallest, smallest+1)
	}
}

func (c *Change) size() float64 { return math.Abs(c.After - c.Before) }

// setKinds looks at each chain of changes in one direction: are these levels, or is it a
// slope? What leaves less is told by the Bayesian information criterion, since levels have
// more to fit.
func (f *finder) setKinds() {
	for i := 0; i < len(f.found); {
		last := i
		for last+1 < len(f.found) && (f.found[last+1].After > f.found[last+1].Before) == (f.found[i].After > f.found[i].Before) {
			last++
		}
		from, _ := f.around(i)
		_, to := f.around(last)
		n, steps := float64(to-from), 0.0
		for c := i; c <= last+1; c++ {
			begin, end := from, to
			if c > i {
				begin = f.found[c-1].At
			}
			if c <= last {
				end = f.found[c].At
			}
			steps += squares(f.series[begin:end])
		}
		levels := float64(last - i + 2)
		kind := Step
		if n*math.Log(slope(f.series[from:to])/n)+2*math.Log(n) < n*math.Log(steps/n)+(2*levels-1)*math.Log(n) {
			kind = Drift
		}
		for ; i <= last; i++ {
			f.found[i].Kind = kind
		}
	}
}

// slope is the squares that a line leaves.
func slope(x []float64) float64 {
	middle, m := float64(len(x)-1)/2, mean(x)
	var xy, xx, yy float64
	for i, y := range x {
		at := float64(i) - middle
		xy, xx, yy = xy+at*(y-m), xx+at*at, yy+(y-m)*(y-m)
	}
	return yy - xy*xy/xx
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func squares(x []float64) float64 {
	m, sum := mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return sum
}
