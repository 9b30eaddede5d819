package pattern

import (
	"regexp/syntax"
	"unicode"
)

// witness returns a short value that both constraints allow, and whether there
// is one. It is exact: it walks both automata side by side, together with a third
// that keeps out what no wildcard can be: nothing, and a slash alone. Dots can be,
// percent-encoded. Either constraint may be nil.
func witness(c, d *Constraint) (string, bool) {
	s := search{seen: map[position]bool{}}
	s.progs[0], s.progs[1] = anything(c), anything(d)
	s.enter(position{s.progs[0].Start, s.progs[1].Start, shapeEmpty}, "")
	for len(s.queue) > 0 {
		at := s.queue[0]
		s.queue = s.queue[1:]
		if s.accepts(at.position) {
			return at.value, true
		}
		s.step(at)
	}
	return "", false
}

func anything(c *Constraint) *syntax.Prog {
	if c != nil {
		return c.exact
	}
	return &syntax.Prog{Start: 0, Inst: []syntax.Inst{
		{Op: syntax.InstAlt, Out: 1, Arg: 2},
		{Op: syntax.InstRuneAny, Out: 0, Rune: []rune{0, unicode.MaxRune}},
		{Op: syntax.InstMatch},
	}}
}

// shape is the state of the automaton that knows a wildcard's values.
type shape uint8

const (
	shapeEmpty shape = iota
	shapeSlash
	shapeValue
)

func (s shape) next(r rune) shape {
	switch {
	case s == shapeEmpty && r == '/':
		return shapeSlash
	default:
		return shapeValue
	}
}

// position is a state of the three automata.
type position struct {
	a, b  int // instruction of either program
	shape shape
}

// reached is a position with the shortest value that leads there.
type reached struct {
	position
	value string
}

// search goes through the positions, breadth first.
type search struct {
	progs [2]*syntax.Prog
	seen  map[position]bool
	queue []reached
}

// enter queues the position and those that lie behind it without a character.
func (s *search) enter(p position, value string) {
	if s.seen[p] {
		return
	}
	s.seen[p] = true
	split := false
	for side, pc := range []int{p.a, p.b} {
		for _, out := range silent(&s.progs[side].Inst[pc]) {
			q := p
			if side == 0 {
				q.a = out
			} else {
				q.b = out
			}
			split = true
			s.enter(q, value)
		}
	}
	if !split {
		s.queue = append(s.queue, reached{p, value})
	}
}

// silent returns where an instruction leads without a character.
func silent(i *syntax.Inst) []int {
	switch i.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		return []int{int(i.Out), int(i.Arg)}
	case syntax.InstCapture, syntax.InstNop:
		return []int{int(i.Out)}
	default:
		return nil
	}
}

func (s *search) accepts(p position) bool {
	return p.shape == shapeValue &&
		s.progs[0].Inst[p.a].Op == syntax.InstMatch && s.progs[1].Inst[p.b].Op == syntax.InstMatch
}

func (s *search) step(at reached) {
	a, b := &s.progs[0].Inst[at.a], &s.progs[1].Inst[at.b]
	if !takesRune(a) || !takesRune(b) {
		return
	}
	for _, r := range candidates(a, b) {
		if !a.MatchRune(r) || !b.MatchRune(r) {
			continue
		}
		s.enter(position{int(a.Out), int(b.Out), at.shape.next(r)}, at.value+string(r))
	}
}

func takesRune(i *syntax.Inst) bool {
	switch i.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	default:
		return false
	}
}

// candidates returns characters among which is one of each shape that both
// instructions take, if they take one: the intersection of two sets of ranges,
// if not empty, holds the beginning of one of the ranges, or, where the range
// begins at a dot, slash or line end, the character behind these.
func candidates(a, b *syntax.Inst) []rune {
	rs := []rune{'a', 'x', '0', '.', '/', '\n' + 1}
	for _, i := range []*syntax.Inst{a, b} {
		for k := 0; k < len(i.Rune); k += 2 {
			rs = append(rs, i.Rune[k])
		}
		if len(i.Rune) == 1 { // the only form that may fold case
			for r := unicode.SimpleFold(i.Rune[0]); r != i.Rune[0]; r = unicode.SimpleFold(r) {
				rs = append(rs, r)
			}
		}
	}
	return rs
}
