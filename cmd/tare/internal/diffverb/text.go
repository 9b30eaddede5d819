package diffverb

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// compare compares CPU and, where both sides have them, allocations.
func (c *Command) compare(a, b *side) (*page.Diff, error) {
	d := &page.Diff{A: a.shown(), B: b.shown()}
	if len(a.cpu) == 0 || len(b.cpu) == 0 {
		if len(a.allocs) == 0 || len(b.allocs) == 0 {
			return nil, errors.New("the two sides have no profile of the same kind")
		}
	}
	var err error
	if d.CPU, err = c.one(a.cpu, b.cpu); err != nil {
		return nil, err
	}
	if d.Bytes, err = c.one(a.allocs, b.allocs); err != nil {
		return nil, err
	}
	first := d.CPU
	if first == nil {
		first = d.Bytes
	}
	d.Warnings = append(d.Warnings, cli.Texts(first.Warnings)...)
	if d.CPU != nil && d.Bytes != nil { // there may be fewer of one kind, or of another time
		for _, w := range cli.Texts(d.Bytes.Warnings) {
			if !slices.Contains(d.Warnings, w) {
				d.Warnings = append(d.Warnings, "allocated: "+w)
			}
		}
	}
	for i, s := range []*side{a, b} {
		for _, w := range s.warnings {
			d.Warnings = append(d.Warnings, "AB"[i:i+1]+": "+w.Error())
		}
	}
	if a.live && b.live && (len(a.cpu) > 1 || len(b.cpu) > 1) {
		d.Warnings = append(d.Warnings, "each side is one process: the intervals exclude how much one program differs from process to process")
	}
	return d, nil
}

func (c *Command) one(a, b []diff.Capture) (*diff.Result, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	return diff.Compare(a, b, diff.Options{Q: c.Q})
}

// diffPage shows what differs, and says how much was found not to.
func diffPage(d *page.Diff) doc.Page {
	p := doc.Page{Blocks: []doc.Block{doc.Heading{Level: 1, Text: "difference of B from A"}, sides(d)}}
	for _, of := range compared(d) {
		p.Add(of.blocks()...)
	}
	p.Add(cli.Warnings(d.Warnings)...)
	return p
}

// sides says what A and B are.
func sides(d *page.Diff) doc.Terms {
	var t doc.Terms
	t.Add("A", "%s", d.A)
	t.Add("B", "%s", d.B)
	return t
}

// compared is what both sides have.
func compared(d *page.Diff) (all []diffed) {
	if d.CPU != nil {
		all = append(all, diffed{d.CPU, "CPU", unit.Nanoseconds})
	}
	if d.Bytes != nil {
		all = append(all, diffed{d.Bytes, "allocated", unit.Bytes})
	}
	return all
}

// diffed is what was compared, with its name and unit.
type diffed struct {
	*diff.Result
	name, base string
}

// perOwner bounds the functions shown below an owner.
const perOwner = 4

// blocks show the owners that differ, what differs within others, and what nearly does.
func (of diffed) blocks() []doc.Block {
	t := &of.Total
	out := []doc.Block{doc.Heading{Level: 2, Text: fmt.Sprintf("%s per %s: %s → %s, %s %s (%d and %d captures)", of.name, of.Per,
		unit.Format(t.A, of.base), unit.Format(t.B, of.base), unit.Signed(t.Diff, of.base), of.interval(t), of.CapturesA, of.CapturesB)}}
	owners := of.table("", "owner")
	type place struct{ owner, where string }
	differ := map[place]bool{}
	for i := range of.Owners {
		row := &of.Owners[i]
		if !row.Differs {
			continue
		}
		differ[place{row.Owner, row.Where}] = true
		owners.Rows = append(owners.Rows, of.row(row, row.Owner+", "+row.Kind, ""))
		for _, f := range of.functionsOf(row) {
			owners.Rows = append(owners.Rows, of.row(f, "↳ "+path.Base(f.Function), ""))
		}
	}
	out = append(out, owners)
	switch others := len(of.Owners) - len(differ); {
	case len(differ) == 0:
		out = append(out, doc.Note(fmt.Sprintf("No owner's cost differs by more than chance (%d tested).", of.Tests())))
	case others > 0:
		out = append(out, doc.Note(unit.Plural(others, "other owner")+" without a measurable difference."))
	}
	// A small function may differ where the whole of its owner varies more than that.
	within := slices.DeleteFunc(slices.Clone(of.Functions), func(f diff.Row) bool { return !f.Differs || differ[place{f.Owner, f.Where}] })
	functions := of.table("Functions that differ, within owners that show no difference:", "function")
	for i := range within[:min(len(within), perOwner)] {
		f := &within[i]
		functions.Rows = append(functions.Rows, of.row(f, path.Base(f.Function)+", of "+f.Owner, ""))
	}
	out = append(out, functions)
	if more := len(within) - perOwner; more > 0 {
		out = append(out, doc.Note(unit.Plural(more, "more function")+": --json shows them."))
	}
	return append(out, of.near()...)
}

// functionsOf are the first functions within an owner that differ.
func (of diffed) functionsOf(owner *diff.Row) (all []*diff.Row) {
	for i := range of.Functions {
		f := &of.Functions[i]
		if f.Differs && f.Owner == owner.Owner && f.Where == owner.Where && len(all) < perOwner {
			all = append(all, f)
		}
	}
	return all
}

// mostNear bounds the rows shown of what nearly differs.
const mostNear = 3

// near shows the owners that would differ if tare had tested them alone.
func (of diffed) near() []doc.Block {
	near := of.Near()
	if len(near) == 0 {
		return nil
	}
	t := of.table(fmt.Sprintf("Nearest to a difference, but not distinguishable from chance among %d owners:", of.Tests()), "owner")
	for _, row := range near[:min(len(near), mostNear)] {
		t.Rows = append(t.Rows, of.row(&row, row.Owner+", "+row.Kind, doc.Muted))
	}
	return []doc.Block{t, doc.Note("More captures (of services: --repeat) narrow the intervals.")}
}

// table is an empty table of differences.
func (of diffed) table(caption, key string) doc.Table {
	return doc.Table{Caption: caption, Columns: []doc.Column{
		{Head: "A", Right: true}, {Head: "B", Right: true}, {Head: "B − A", Right: true}, {Head: "95 % interval"}, {Head: key, Key: true, Shrink: true},
	}}
}

// row has both sides, their difference and its interval.
func (of diffed) row(r *diff.Row, key string, tone doc.Tone) doc.Row {
	cells := doc.Cells(unit.Some(r.A, of.base), unit.Some(r.B, of.base), unit.Signed(r.Diff, of.base), of.interval(r), key)
	for i := range cells {
		cells[i].Tone = tone
	}
	return doc.Row{Cells: cells}
}

func (of diffed) interval(r *diff.Row) string {
	return "[" + unit.Signed(r.Lo, of.base) + ", " + unit.Signed(r.Hi, of.base) + "]"
}
