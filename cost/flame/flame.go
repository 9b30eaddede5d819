// Package flame lays out and draws flame graphs of stacks.
//
// A graph stands on its root: each box is a function called by the one below,
// as wide as what it and its callees spent. [Layout] says where the boxes are,
// [SVG] draws them, coloured by owner, so that the picture and the table of
// owners show the same.
package flame

import (
	"cmp"
	"slices"

	"github.com/tarehq/tare/cost"
)

// Box is one function at one place of the graph. X and Width are parts of the
// whole, 0 to 1; Depth counts from the root, which is 0.
type Box struct {
	Name  string
	Owner string // to whom it is charged; "" for what is shared by several
	From  string // the owner that begins with this function, others within it; "" for none
	X     float64
	Width float64
	Depth int
	Value float64 // nanoseconds or bytes, callees included

	Fill string // a colour of CSS; "" goes by Owner, else by From
	Note string // what the title says after the name; "" says owner, value and share
}

// Path is a way from the root to a function, and what ends there.
type Path struct {
	Owner string
	Names []string // outermost first
	Value float64
	Depth int // that of the function with which Owner begins, 1 for the first; 0 for none
}

// Options say what is drawn.
type Options struct {
	// Least is the narrowest box that is laid out, a part of the whole; 0 means
	// 0.0005, half a pixel of a thousand.
	Least float64
	// Depth bounds the boxes above one another; 0 means 200.
	Depth int
	// Most bounds the number of boxes: if there were more, narrow ones are left
	// out until there are not. 0 means 2500, which is less than a megabyte drawn.
	Most int
}

// Layout places the functions of stacks. Callees stand in order of their names,
// so that graphs of two profiles can be compared by eye. The first box is the
// root.
func Layout(stacks []cost.Stack, o Options) []Box {
	rules := cost.Learn(stacks)
	paths := make([]Path, len(stacks))
	for i := range stacks {
		owner, inside := rules.Inside(stacks[i].Frames)
		names := make([]string, 0, len(stacks[i].Frames))
		for _, f := range slices.Backward(stacks[i].Frames) {
			names = append(names, f.Func)
		}
		paths[i] = Path{Owner: owner.Name, Names: names, Value: stacks[i].Value}
		paths[i].Depth = begins(owner, stacks[i].Frames, inside)
	}
	return Place(paths, o)
}

// begins is the depth of the function with which an owner begins, given those
// inside it; 0 if it has no function. All of a stack is inside what has none.
func begins(owner cost.Owner, frames, inside []cost.Frame) int {
	if n := len(frames); n == 0 || len(inside) == n && (owner.File == "" || frames[n-1].File != owner.File) {
		return 0
	}
	return len(frames) - len(inside) + 1
}

// Place places the functions of paths, as Layout does those of stacks.
func Place(paths []Path, o Options) []Box {
	root := &node{name: "all"}
	for i := range paths {
		root.add(&paths[i], cmp.Or(o.Depth, 200))
	}
	if root.value <= 0 {
		return nil
	}
	least, most := cmp.Or(o.Least, 0.0005), cmp.Or(o.Most, 2500)
	for ; ; least *= 1.5 {
		p := placer{whole: root.value, least: least}
		p.place(root, 0, 0)
		if len(p.boxes) <= max(most, 1) {
			return p.boxes
		}
	}
}

// node is a function in the tree of calls.
type node struct {
	name    string
	owner   string
	from    string // the owner that begins here
	mixed   bool   // stacks of several owners go through it
	value   float64
	callees map[string]*node
}

func (n *node) add(p *Path, depth int) {
	n.charge(p.Owner, p.Value)
	for i, name := range p.Names[:min(depth, len(p.Names))] {
		next := n.callees[name]
		if next == nil {
			next = &node{name: name}
			if n.callees == nil {
				n.callees = map[string]*node{}
			}
			n.callees[name] = next
		}
		next.charge(p.Owner, p.Value)
		if i+1 == p.Depth {
			next.from = p.Owner
		}
		n = next
	}
}

func (n *node) charge(owner string, value float64) {
	switch {
	case n.mixed:
	case n.value == 0:
		n.owner = owner
	case n.owner != owner:
		n.owner, n.mixed = "", true
	}
	n.value += value
}

type placer struct {
	whole, least float64
	boxes        []Box
}

func (p *placer) place(n *node, x float64, depth int) {
	width := n.value / p.whole
	if width < p.least {
		return
	}
	p.boxes = append(p.boxes, Box{Name: n.name, Owner: n.owner, From: n.from, X: x, Width: width, Depth: depth, Value: n.value})
	callees := make([]*node, 0, len(n.callees))
	for _, c := range n.callees {
		callees = append(callees, c)
	}
	slices.SortFunc(callees, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	for _, c := range callees {
		p.place(c, x, depth+1)
		x += c.value / p.whole
	}
}
