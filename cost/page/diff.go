package page

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/flame"
	"github.com/tarehq/tare/stats/unit"
)

//go:embed diff.tmpl
var diffSource string

// Diff is what two sides differ by. Its JSON is the form that `tare diff --json`
// prints.
type Diff struct {
	A        string       `json:"a"` // what A is
	B        string       `json:"b"`
	CPU      *diff.Result `json:"cpu,omitempty"`   // nanoseconds; nil if not compared
	Bytes    *diff.Result `json:"bytes,omitempty"` // allocated; nil if not compared
	Warnings []string     `json:"warnings,omitempty"`
}

// WriteDiff writes the page of a comparison.
func WriteDiff(w io.Writer, d *Diff) error {
	t, err := template.New("diff").Funcs(template.FuncMap{
		"share": func(v float64) string { return unit.Format(v, unit.Share) },
	}).Parse(diffSource)
	if err != nil {
		return err
	}
	v := diffView{Diff: d, Style: template.CSS(style), Script: template.JS(script)}
	for _, part := range []struct {
		name, base string
		r          *diff.Result
	}{{"CPU", unit.Nanoseconds, d.CPU}, {"Allocated", unit.Bytes, d.Bytes}} {
		if part.r == nil {
			continue
		}
		one, err := newDiffPart(part.name, part.base, part.r)
		if err != nil {
			return err
		}
		v.Parts = append(v.Parts, one)
	}
	return t.Execute(w, v)
}

// diffView is what the template shows.
type diffView struct {
	*Diff
	Parts  []diffPart
	Style  template.CSS
	Script template.JS
}

// diffPart is the comparison of one kind of cost.
type diffPart struct {
	Name   string
	Result *diff.Result
	Total  diffRow
	Told   []diffRow // that differ
	Others []diffRow // the largest of those that do not
	Graph  template.HTML
	Axis   string // what the whole width of a bar's half is
}

// diffRow is a row with its bar, of which the middle is no difference and either
// half a difference of as much as the largest end of an interval.
type diffRow struct {
	diff.Row
	AText, BText, DiffText, Interval string
	Left, Width                      float64 // of the interval, per cent of the bar
	Point                            float64 // the difference, likewise
	More                             bool
}

// mostOthers bounds the rows shown of what is not distinguished.
const mostOthers = 12

func newDiffPart(name, base string, r *diff.Result) (diffPart, error) {
	p := diffPart{Name: name, Result: r}
	reach := 0.0
	for i := range r.Owners {
		if row := &r.Owners[i]; row.Differs || len(p.Others) < mostOthers {
			reach = max(reach, math.Abs(row.Lo), math.Abs(row.Hi))
		}
	}
	p.Axis = unit.Format(reach, base)
	p.Total = newDiffRow(&r.Total, base, reach)
	for i := range r.Owners {
		row := newDiffRow(&r.Owners[i], base, reach)
		switch {
		case row.Differs:
			p.Told = append(p.Told, row)
		case row.Tested && len(p.Others) < mostOthers:
			p.Others = append(p.Others, row)
		}
	}
	var graph strings.Builder
	if boxes := diffBoxes(r, base); boxes != nil {
		if err := flame.SVG(&graph, boxes, base); err != nil {
			return p, err
		}
	}
	p.Graph = template.HTML(graph.String())
	return p, nil
}

func newDiffRow(r *diff.Row, base string, reach float64) diffRow {
	at := func(v float64) float64 { return 50 + 50*max(-1, min(1, v/cmp.Or(reach, 1))) }
	return diffRow{
		Row: *r, AText: unit.Some(r.A, base), BText: unit.Some(r.B, base), DiffText: unit.Signed(r.Diff, base),
		Interval: "[" + unit.Signed(r.Lo, base) + ", " + unit.Signed(r.Hi, base) + "]",
		Left:     at(r.Lo), Width: max(0.4, at(r.Hi)-at(r.Lo)), Point: at(r.Diff), More: r.Diff > 0,
	}
}

// diffBoxes draws both sides as one graph: a box for each owner, and above it its
// functions, as wide as the mean of both sides. What is told to differ is red
// where B costs more and blue where it costs less, the stronger the larger the
// difference is against the box; the rest is grey.
func diffBoxes(r *diff.Result, base string) []flame.Box {
	rows := map[string]*diff.Row{}
	var paths []flame.Path
	for _, p := range r.Paths {
		if p.A+p.B <= 0 {
			continue
		}
		id := p.Owner.Owner + "\x00" + p.Owner.Where
		path := flame.Path{Owner: id, Names: []string{p.Owner.Owner}, Value: (p.A + p.B) / 2}
		rows[id] = p.Owner
		for _, f := range p.Functions {
			path.Names = append(path.Names, f.Function)
			rows[id+"\x00"+f.Function] = f
		}
		paths = append(paths, path)
	}
	boxes := flame.Place(paths, flame.Options{})
	for i := range boxes {
		b := &boxes[i]
		row := rows[b.Owner+"\x00"+b.Name]
		switch b.Depth {
		case 0:
			row = &r.Total
		case 1:
			row = rows[b.Owner]
		}
		b.Owner, _, _ = strings.Cut(b.Owner, "\x00")
		if row == nil { // two owners of one name stand in one box
			b.Fill = grey
			continue
		}
		b.Fill, b.Note = shade(row, b.Depth), note(row, base, b.Depth)
	}
	return boxes
}

const grey = "hsl(0 0% 80%)"

// shade colours a row's box. The root is of no colour: it is not one of the rows
// that are distinguished.
func shade(r *diff.Row, depth int) string {
	if !r.Differs || depth == 0 {
		return grey
	}
	strength := min(1, math.Abs(r.Diff)/max(r.A, r.B))
	hue := 10
	if r.Diff < 0 {
		hue = 215
	}
	return fmt.Sprintf("hsl(%d 85%% %.0f%%)", hue, 82-22*strength)
}

func note(r *diff.Row, base string, depth int) string {
	text := fmt.Sprintf(": %s → %s, %s [%s, %s]", unit.Some(r.A, base), unit.Some(r.B, base), unit.Signed(r.Diff, base), unit.Signed(r.Lo, base), unit.Signed(r.Hi, base))
	switch {
	case depth == 1:
		text = ", an owner's own" + text
	case depth > 1:
		text = ", of " + r.Owner + text
	}
	if depth > 0 && !r.Differs {
		text += ", no measurable difference"
	}
	return text
}
