// Package page writes a bill and its flame graph as one HTML file, which works
// offline and, but for zooming and searching, without scripts.
package page

import (
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/flame"
	"github.com/tarehq/tare/stats/unit"
)

//go:embed page.tmpl
var source string

//go:embed page.css
var style string

//go:embed page.js
var script string

// Write writes the page of a bill. cpu is what the flame graph shows; nil leaves
// it out.
func Write(w io.Writer, b *cost.Bill, cpu []cost.Stack) error {
	return WriteStacks(w, b, cpu, unit.Nanoseconds)
}

// WriteStacks is Write with stacks whose values are in a unit of unit.Format.
func WriteStacks(w io.Writer, b *cost.Bill, stacks []cost.Stack, base string) error {
	boxes := flame.Layout(stacks, flame.Options{})
	colours := paint(b, boxes)
	t, err := template.New("page").Funcs(template.FuncMap{
		"ns":          func(v float64) string { return unit.Some(v, unit.Nanoseconds) },
		"bytes":       func(v float64) string { return unit.Some(v, unit.Bytes) },
		"count":       func(v float64) string { return unit.Some(v, unit.Count) },
		"share":       func(v float64) string { return unit.Format(v, unit.Share) },
		"colour":      func(owner string) template.CSS { return template.CSS(colours[owner]) },
		"causeColour": func(cause string) template.CSS { return template.CSS(causeColours[cause]) },
	}).Parse(source)
	if err != nil {
		return err
	}
	var graph strings.Builder
	if boxes != nil {
		if err := flame.SVG(&graph, boxes, base); err != nil {
			return err
		}
	}
	return t.Execute(w, newView(b, graph.String()))
}

// paint gives the boxes the colours that the owners have in the table, where the
// dearest come first.
func paint(b *cost.Bill, boxes []flame.Box) map[string]string {
	owners := make([]string, 0, len(b.Items))
	for _, it := range b.Items {
		owners = append(owners, it.Owner)
	}
	for _, box := range boxes {
		owners = append(owners, cmp.Or(box.Owner, box.From))
	}
	colours := flame.Colours(owners)
	for i := range boxes {
		box := &boxes[i]
		box.Fill = cmp.Or(colours[box.Owner], colours[box.From], flame.Shared)
	}
	return colours
}

// view is what the template shows.
type view struct {
	Bill     *cost.Bill
	Title    string
	Items    []row
	Others   int
	Rest     float64
	Memory   bool
	Clock    bool // calls were watched by the clock
	Causes   []cause
	Graph    template.HTML
	Style    template.CSS
	Script   template.JS
	Requests string
}

// row is an item with the parts of its bar.
type row struct {
	cost.Item
	Part float64 // of the bill's CPU
	Bar  []part
}

// part is a cause's share of an item's bar, as wide as of the widest item.
type part struct {
	Cause string
	Width float64 // per cent
	Value float64
}

// cause is what all owners spent on one cause.
type cause struct {
	Name  string
	Value float64
	Part  float64
}

func newView(b *cost.Bill, graph string) *view {
	v := &view{
		Bill: b, Title: "Cost of " + b.Source, Memory: b.Bytes > 0,
		Graph: template.HTML(graph), Style: template.CSS(style), Script: template.JS(script),
	}
	if b.Requests > 0 {
		v.Requests = unit.Number(b.Requests)
		if b.RequestsMargin > 0 {
			v.Requests += " ± " + unit.Format(b.RequestsMargin/b.Requests, unit.Share)
		}
	}
	items, others, rest := b.Weighty()
	v.Others, v.Rest = others, rest
	widest := 0.0
	for _, it := range items {
		widest = max(widest, it.Self)
	}
	for _, it := range items {
		v.Clock = v.Clock || it.Wall != nil
		r := row{Item: it}
		if b.CPU > 0 {
			r.Part = it.Self / b.CPU
		}
		for _, c := range it.Causes {
			if width := 100 * c.Value / widest; width >= 0.2 {
				r.Bar = append(r.Bar, part{c.Cause, width, c.Value})
			}
		}
		v.Items = append(v.Items, r)
	}
	v.Causes = causes(b)
	return v
}

// causes adds the owners' causes up, the largest first.
func causes(b *cost.Bill) []cause {
	sums := map[string]float64{}
	for _, it := range b.Items {
		for _, c := range it.Causes {
			sums[c.Cause] += c.Value
		}
	}
	all := make([]cause, 0, len(sums))
	for name, value := range sums {
		all = append(all, cause{name, value, value / b.CPU})
	}
	slices.SortFunc(all, func(x, y cause) int {
		return cmp.Or(cmp.Compare(y.Value, x.Value), cmp.Compare(x.Name, y.Name))
	})
	return all
}

// causeColours are colours that can be distinguished by most who see few.
var causeColours = map[string]string{
	"own": "#4477aa", "alloc": "#ee6677", "gc": "#aa3377", "kernel": "#ccbb44", "scheduling": "#66ccee",
	"locks": "#228833", "channels": "#99ddff", "stack growth": "#bbcc33", "json": "#ee8866",
	"formatting": "#ffaabb", "reflection": "#44bb99", "defer and panic": "#aaaa00", "maps": "#77aadd",
	"contexts": "#eedd88", "clock": "#bbbbbb",
}
