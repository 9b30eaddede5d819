package diffverb

import (
	"fmt"
	"path"
	"strings"

	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// mostRows bounds the rows of a comment's table, so that it has at most 25 lines outside of the
// fold.
const mostRows = 12

// comment is what a pull request shows: the owners that differ, and the whole folded below them.
func comment(d *page.Diff) doc.Page {
	t := doc.Table{Caption: "Owners that differ", Unlabelled: true, Columns: []doc.Column{{Head: "cost"}, {Head: "owner", Key: true},
		{Head: "A", Right: true}, {Head: "B", Right: true}, {Head: "B − A", Right: true}, {Head: "95 % interval"}}}
	all := compared(d)
	var verdicts []string
	hidden := 0
	for _, of := range all {
		differ := of.differing()
		verdicts = append(verdicts, of.verdict(differ))
		t.Rows = append(t.Rows, of.commentRow(&of.Total, "all"))
		shown := min(len(differ), mostRows/len(all)-1)
		hidden += len(differ) - shown
		for _, row := range differ[:shown] {
			t.Rows = append(t.Rows, of.commentRow(row, of.responsible(row)))
		}
	}
	p := doc.Page{Blocks: []doc.Block{doc.Heading{Level: 2, Text: strings.Join(verdicts, "; ")}, sides(d), t}}
	if hidden > 0 {
		p.Add(doc.Note(unit.Plural(hidden, "more owner") + " below."))
	}
	first := all[0]
	p.Add(doc.Fold{Summary: fmt.Sprintf("Details: %d and %d captures, %s", first.CapturesA, first.CapturesB, unit.Plural(len(d.Warnings), "warning")), Blocks: diffPage(d).Blocks})
	return p
}

// differing are the owners that differ, the largest difference first.
func (of diffed) differing() (all []*diff.Row) {
	for i := range of.Owners {
		if of.Owners[i].Differs {
			all = append(all, &of.Owners[i])
		}
	}
	return all
}

// verdict says how many owners cost more and less.
func (of diffed) verdict(differ []*diff.Row) string {
	more := 0
	for _, row := range differ {
		if row.Diff > 0 {
			more++
		}
	}
	what := fmt.Sprintf("%s per %s: ", of.name, of.Per)
	switch less := len(differ) - more; {
	case len(differ) == 0:
		return what + "no owner differs by more than chance"
	case less == 0:
		return what + countOwners(more, "more")
	case more == 0:
		return what + countOwners(less, "less")
	default:
		return fmt.Sprintf("%s%s, %d less", what, countOwners(more, "more"), less)
	}
}

// countOwners says how many cost more or less.
func countOwners(n int, how string) string {
	verb := " cost "
	if n == 1 {
		verb = " costs "
	}
	return unit.Plural(n, "owner") + verb + how
}

// responsible is an owner with its functions that differ in the same direction.
func (of diffed) responsible(owner *diff.Row) string {
	var names []string
	for _, f := range of.functionsOf(owner) {
		if f.Diff*owner.Diff > 0 {
			names = append(names, path.Base(f.Function))
		}
	}
	text := owner.Owner + ", " + owner.Kind
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return text
}

func (of diffed) commentRow(r *diff.Row, owner string) doc.Row {
	return doc.Row{Cells: doc.Cells(of.name, owner, unit.Some(r.A, of.base), unit.Some(r.B, of.base), unit.Signed(r.Diff, of.base), of.interval(r))}
}
