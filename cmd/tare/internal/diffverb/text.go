package diffverb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
		d.Warnings = append(d.Warnings, "each side is one process: what differs from process to process of the same program is taken for a difference")
	}
	return d, nil
}

func (c *Command) one(a, b []diff.Capture) (*diff.Result, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	return diff.Compare(a, b, diff.Options{Q: c.Q})
}

// printText shows what differs, and says how much was found not to.
func printText(t *cli.Terminal, d *page.Diff) error {
	w := bufio.NewWriter(t.Out)
	fmt.Fprintf(w, "A  %s\nB  %s\n", doc.Printable(d.A), doc.Printable(d.B))
	if d.CPU != nil {
		printDiff(w, d.CPU, diffed{"CPU", unit.Nanoseconds, t.Width, t.Colour})
	}
	if d.Bytes != nil {
		printDiff(w, d.Bytes, diffed{"allocated", unit.Bytes, t.Width, t.Colour})
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(w, "warning: %s\n", doc.Printable(warning))
	}
	return w.Flush()
}

// diffed is what was compared, and how it is shown.
type diffed struct {
	name, base string
	width      int
	colour     bool
}

// dim makes text grey where that can be shown.
func (of diffed) dim(text string) string {
	if !of.colour {
		return text
	}
	return "\x1b[2m" + text + "\x1b[0m"
}

// perOwner bounds the functions shown below an owner.
const perOwner = 4

func printDiff(w io.Writer, r *diff.Result, of diffed) {
	fmt.Fprintf(w, "\n%s per %s  %s → %s, %s  (%d and %d captures)\n", of.name, r.Per,
		unit.Format(r.Total.A, of.base), unit.Format(r.Total.B, of.base), change(&r.Total, of.base), r.CapturesA, r.CapturesB)
	told := slices.DeleteFunc(slices.Clone(r.Owners), func(row diff.Row) bool { return !row.Differs })
	if len(told) > 0 {
		cli.PrintNamed(w, fmt.Sprintf("%10s  %10s  %10s  %-21s  ", "A", "B", "B − A", "95 % interval"), "owner", of.width)
	}
	for i := range told {
		row := &told[i]
		cli.PrintNamed(w, figures(row, of.base)+"  ", row.Owner+", "+row.Kind, of.width)
		shown := 0
		for j := range r.Functions {
			f := &r.Functions[j]
			if f.Differs && f.Owner == row.Owner && f.Where == row.Where && shown < perOwner {
				shown++
				cli.PrintNamed(w, figures(f, of.base)+"  ", "  "+f.Function[strings.LastIndexByte(f.Function, '/')+1:], of.width)
			}
		}
	}
	switch others := len(r.Owners) - len(told); {
	case len(told) == 0:
		fmt.Fprintf(w, "No owner's cost differs by more than chance (%d tested).\n", r.Tests())
	case others > 0:
		fmt.Fprintf(w, "%d other owners show no measurable difference.\n", others)
	}
	printWithin(w, r, of)
	printNear(w, r, of)
}

// printWithin shows the functions that differ within owners that are not told to: one
// that is small may do so where the whole of its owner varies more than that.
func printWithin(w io.Writer, r *diff.Result, of diffed) {
	type place struct{ owner, where string }
	told := map[place]bool{}
	for i := range r.Owners {
		if o := &r.Owners[i]; o.Differs {
			told[place{o.Owner, o.Where}] = true
		}
	}
	within := slices.DeleteFunc(slices.Clone(r.Functions), func(f diff.Row) bool { return !f.Differs || told[place{f.Owner, f.Where}] })
	if len(within) == 0 {
		return
	}
	fmt.Fprintln(w, "Functions that differ, within owners that show no difference:")
	for i := range within[:min(len(within), perOwner)] {
		f := &within[i]
		cli.PrintNamed(w, figures(f, of.base)+"  ", f.Function[strings.LastIndexByte(f.Function, '/')+1:]+", of "+f.Owner, of.width)
	}
	if more := len(within) - perOwner; more > 0 {
		fmt.Fprintf(w, "and %d more (--json).\n", more)
	}
}

// mostNear bounds the rows shown of what nearly differs.
const mostNear = 3

// printNear shows the owners that come nearest to being told apart: those of
// which it would be said that they differ if they alone had been looked at.
func printNear(w io.Writer, r *diff.Result, of diffed) {
	near := r.Near()
	if len(near) == 0 {
		return
	}
	fmt.Fprintf(w, "Nearest to a difference, but %s among %d owners:\n", of.dim("not distinguishable from chance"), r.Tests())
	for _, row := range near[:min(len(near), mostNear)] {
		var line strings.Builder
		cli.PrintNamed(&line, figures(&row, of.base)+"  ", row.Owner+", "+row.Kind, of.width)
		fmt.Fprintln(w, of.dim(strings.TrimSuffix(line.String(), "\n")))
	}
	fmt.Fprintln(w, "More captures (of services: --repeat) narrow the intervals.")
}

// figures are both sides, their difference and its interval in columns.
func figures(r *diff.Row, base string) string {
	return fmt.Sprintf("%10s  %10s  %10s  %-21s", unit.Some(r.A, base), unit.Some(r.B, base), unit.Signed(r.Diff, base),
		"["+unit.Signed(r.Lo, base)+", "+unit.Signed(r.Hi, base)+"]")
}

// change is a difference and its interval in a sentence.
func change(r *diff.Row, base string) string {
	return unit.Signed(r.Diff, base) + " [" + unit.Signed(r.Lo, base) + ", " + unit.Signed(r.Hi, base) + "]"
}
