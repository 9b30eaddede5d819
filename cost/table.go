package cost

import (
	"cmp"
	"iter"
	"slices"
)

// Table adds stacks up by owner. The zero value is ready. It is not safe for
// concurrent use.
type Table struct {
	// Rules tell whose a stack is; nil goes by each stack alone.
	Rules *Rules

	rows map[Owner]*Row
	sum  Amount
}

// Row is what one owner spent.
type Row struct {
	Owner  Owner
	Self   Amount // in its own frame and what it calls, but for other owners
	Total  Amount // with the owners that it calls
	Causes [causes]Amount
	calls  bool // another owner was seen inside it
}

// By yields the causes of the row's own cost, the largest first.
func (r *Row) By() iter.Seq2[Cause, Amount] {
	order := make([]Cause, 0, causes)
	for c := range causes {
		if r.Causes[c].Value != 0 {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b Cause) int { return cmp.Compare(r.Causes[b].Value, r.Causes[a].Value) })
	return func(yield func(Cause, Amount) bool) {
		for _, c := range order {
			if !yield(c, r.Causes[c]) {
				return
			}
		}
	}
}

// Add charges a stack.
func (t *Table) Add(s *Stack) {
	if t.Rules == nil {
		t.Rules = new(Rules)
	}
	c := t.Rules.charge(s.Frames)
	t.sum.add(s)
	row := t.row(c.owner)
	row.Self.add(s)
	row.Total.add(s)
	row.Causes[causeOf(s.Frames[:c.at])].add(s)
	for i, o := range c.around {
		if o == c.owner || slices.Contains(c.around[:i], o) {
			continue
		}
		around := t.row(o)
		around.Total.add(s)
		around.calls = around.calls || c.calls(i)
	}
	for _, o := range c.enclosed {
		t.row(o).calls = true
	}
}

// calls reports whether owner i of those around hands the request on to another.
func (c charge) calls(i int) bool {
	hands := func(o Owner) bool { return o.Kind == Handler && !slices.Contains(c.enclosed, o) }
	return hands(c.owner) || c.owner.Kind == Router || slices.ContainsFunc(c.around[i+1:], hands)
}

func (t *Table) row(o Owner) *Row {
	if t.rows == nil {
		t.rows = map[Owner]*Row{}
	}
	row := t.rows[o]
	if row == nil {
		row = &Row{Owner: o}
		t.rows[o] = row
	}
	return row
}

// Sum returns what all stacks come to; the rows' Self add up to it.
func (t *Table) Sum() Amount { return t.sum }

// Rows returns the owners by their own cost, the largest first. A handler inside
// which another was seen is a middleware.
func (t *Table) Rows() []Row {
	rows := make([]Row, 0, len(t.rows))
	for _, r := range t.rows {
		row := *r
		if row.Owner.Kind == Handler && row.calls {
			row.Owner.Kind = Middleware
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Self.Value, a.Self.Value), cmp.Compare(a.Owner.Name, b.Owner.Name), cmp.Compare(a.Owner.File, b.Owner.File), cmp.Compare(a.Owner.Decl, b.Owner.Decl))
	})
	return rows
}

// agree has two tables agree on who calls others: what one profile saw of an
// owner holds for the other.
func (t *Table) agree(u *Table) {
	for o, r := range t.rows {
		if other := u.rows[o]; other != nil {
			r.calls = r.calls || other.calls
			other.calls = r.calls
		}
	}
}

// ShareGC returns, for each owner that allocated, the part of the collector's
// background work that its bytes caused: in proportion to the bytes, since that
// is what the collector is run by once the heap is above its least size.
func (t *Table) ShareGC(bytes *Table) map[Owner]float64 {
	shares := map[Owner]float64{}
	background := t.rows[backgroundGC]
	if background == nil || bytes.sum.Value == 0 {
		return shares
	}
	for o, r := range bytes.rows {
		if r.Self.Value > 0 {
			shares[o] = background.Self.Value * r.Self.Value / bytes.sum.Value
		}
	}
	return shares
}
