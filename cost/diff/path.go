package diff

import (
	"cmp"
	"slices"
)

// Path is a way from the root of a graph of both sides: an owner, functions
// within it, and what ends there cost, on average, per [Result.Per].
type Path struct {
	Owner     *Row
	Functions []*Row // outermost first
	A, B      float64
}

// paths joins the ways with the rows that they go through.
func (s *sums) paths(r *Result) []Path {
	rows := map[key]*Row{}
	for i := range r.Owners {
		rows[r.Owners[i].id] = &r.Owners[i]
	}
	for i := range r.Functions {
		rows[r.Functions[i].id] = &r.Functions[i]
	}
	paths := make([]Path, 0, len(s.ways))
	for _, w := range s.ways {
		p := Path{Owner: rows[w.owner]}
		for _, name := range w.names {
			k := w.owner
			k.function = name
			p.Functions = append(p.Functions, rows[k])
		}
		for i, v := range w.values {
			if i < r.CapturesA {
				p.A += v / float64(r.CapturesA)
			} else {
				p.B += v / float64(r.CapturesB)
			}
		}
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(x, y Path) int {
		return cmp.Or(cmp.Compare(x.Owner.Owner, y.Owner.Owner), cmp.Compare(x.Owner.Where, y.Owner.Where),
			slices.CompareFunc(x.Functions, y.Functions, func(f, g *Row) int { return cmp.Compare(f.Function, g.Function) }))
	})
	return paths
}
