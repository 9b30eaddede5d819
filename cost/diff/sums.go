package diff

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
)

// key is by what rows of two programs are held to be the same. Lines shift when
// a program is changed, so the owner goes by name and file.
type key struct {
	owner, file string
	function    string // "": the owner's own cost
}

// cell is what a row has in one capture.
type cell struct {
	count  float64
	value  float64 // per request or whatever captures are divided by
	chance float64 // the variance of value that comes of sampling (Poisson), and of how requests were counted
	seen   int     // number of the stack that was added last, counted from 1
}

// add adds a stack of a value. What one sample of it weighs is its own: of large
// objects a sample stands for more bytes than of small ones.
func (c *cell) add(count, value float64) {
	c.count += count
	c.value += value
	if count > 0 {
		c.chance += value * value / count
	}
}

// sums are the captures' rows.
type sums struct {
	captures int
	keys     []key // in order
	cells    map[key][]cell
	totals   []cell
	owners   map[key]cost.Owner
	frames   map[key]cost.Frame // of functions, as seen last
	rules    *cost.Rules
	ways     map[string]*way
}

// newSums charges all stacks of all captures.
func newSums(all []Capture, divisor func(cost.Window) float64) *sums {
	s := &sums{captures: len(all), cells: map[key][]cell{}, totals: make([]cell, len(all)), owners: map[key]cost.Owner{}, frames: map[key]cost.Frame{}, ways: map[string]*way{}}
	profiles := make([][]cost.Stack, len(all))
	for i, c := range all {
		profiles[i] = c.Stacks
	}
	rules := cost.Learn(profiles...)
	s.rules = rules
	kinds := cost.Table{Rules: rules}
	for i, c := range all {
		by := divisor(c.Window)
		for n := range c.Stacks {
			kinds.Add(&c.Stacks[n])
			s.add(rules, &c.Stacks[n], place{i, n + 1, by})
		}
	}
	s.doubt(all)
	for _, r := range kinds.Rows() {
		s.owners[ownerKey(r.Owner)] = r.Owner
	}
	for k := range s.cells {
		s.keys = append(s.keys, k)
	}
	slices.SortFunc(s.keys, func(x, y key) int {
		return cmp.Or(cmp.Compare(x.owner, y.owner), cmp.Compare(x.file, y.file), cmp.Compare(x.function, y.function))
	})
	return s
}

// doubt adds to each cell's variance what is not known of its capture's requests.
func (s *sums) doubt(all []Capture) {
	rows := append(slices.Collect(maps.Values(s.cells)), s.totals)
	for i, c := range all {
		if c.Window.Requests <= 0 || c.Window.Margin <= 0 {
			continue
		}
		share := c.Window.Margin / 1.96 / c.Window.Requests
		for _, cells := range rows {
			cells[i].chance += cells[i].value * cells[i].value * share * share
		}
	}
}

// place is where a stack stands: its capture, its number, and what its value is
// divided by.
type place struct {
	capture, number int
	by              float64
}

func (s *sums) add(rules *cost.Rules, stack *cost.Stack, at place) {
	owner, inside := rules.Inside(stack.Frames)
	k := ownerKey(owner)
	s.charge(k, stack, at)
	s.totals[at.capture].add(stack.Count, stack.Value/at.by)
	names := make([]string, 0, len(inside))
	for _, f := range slices.Backward(inside) {
		k.function = cost.FuncName(f)
		s.charge(k, stack, at)
		s.frames[k] = f
		names = append(names, k.function)
	}
	k.function = ""
	s.grow(k, names, stack.Value/at.by, at.capture)
}

// charge adds a stack to a row, once for all of a function's frames on it.
func (s *sums) charge(k key, stack *cost.Stack, at place) {
	row := s.cells[k]
	if row == nil {
		row = make([]cell, s.captures)
		s.cells[k] = row
	}
	c := &row[at.capture]
	if c.seen == at.number {
		return
	}
	c.seen = at.number
	c.add(stack.Count, stack.Value/at.by)
}

func ownerKey(o cost.Owner) key {
	file, _, _ := strings.Cut(o.Where(), ":")
	return key{owner: o.Name, file: path.Clean(file)}
}

// way is the functions from an owner's inwards, and what ends there cost.
type way struct {
	owner  key
	names  []string  // outermost first
	values []float64 // of the captures
}

func (s *sums) grow(owner key, names []string, value float64, capture int) {
	id := owner.owner + "\x00" + owner.file + "\x00" + strings.Join(names, "\x00")
	w := s.ways[id]
	if w == nil {
		w = &way{owner, names, make([]float64, s.captures)}
		s.ways[id] = w
	}
	w.values[capture] += value
}
