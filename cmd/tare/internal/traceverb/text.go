package traceverb

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/timeline"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// story is what a trace says of requests. Its JSON is what tare trace --json
// prints.
type story struct {
	Source string `json:"source"`
	*exectrace.Requests
	warnings []string
	saved    bool // it was read from a file
}

// page says what is different about slow requests, and shows the slowest.
func (s *story) page(top int) doc.Page {
	title := fmt.Sprintf("trace of %s over %s, %s requests", s.Source, span(s.Duration), unit.Number(float64(s.Count)))
	if s.Cut > 0 {
		title += fmt.Sprintf(" and %s that it saw in part", unit.Number(float64(s.Cut)))
	}
	var quantiles []string
	for _, q := range s.Quantiles {
		name := unit.Quantile(q.Q)
		if q.Q == 1 {
			name = "longest"
		}
		quantiles = append(quantiles, name+" "+span(q.Duration))
	}
	p := doc.Page{Blocks: []doc.Block{doc.Heading{Level: 1, Text: title}}}
	if len(quantiles) > 0 {
		p.Add(doc.Paragraphf("%s", strings.Join(quantiles, ", ")))
	}
	switch {
	case s.Slow.Count == 0 && s.Count+s.Cut > 0:
		p.Add(doc.Paragraphf("Nothing was slow: no request took %s. The slowest:", span(s.SlowerThan)))
		p.Add(s.slowest(1)...)
	case s.Slow.Count > 0:
		p.Add(s.difference()...)
		if top > 0 {
			p.Add(doc.Heading{Level: 2, Text: "The slowest"})
			p.Add(s.slowest(top)...)
		}
	}
	p.Add(cli.Warnings(s.Warnings)...)
	return p
}

// span is a duration for people.
func span(d time.Duration) string { return unit.Format(float64(d), unit.Nanoseconds) }

// difference says what slow requests spent more time on than the others.
func (s *story) difference() []doc.Block {
	slow := fmt.Sprintf("%s took %s or longer", unit.Plural(s.Slow.Count, "request"), span(s.SlowerThan))
	if s.Slow.Cut > 0 {
		slow += fmt.Sprintf(", of %s it is not known how much", unit.Number(float64(s.Slow.Cut)))
	}
	var groups doc.Terms
	groups.Add("slow", "%s on average: %s", span(s.Slow.Mean()), shares(&s.Slow))
	if s.Fast.Count > 0 {
		groups.Add("others", "%s on average: %s", span(s.Fast.Mean()), shares(&s.Fast))
	}
	if during := float64(s.Slow.Collector) / float64(s.Slow.Time); during >= 0.05 {
		text := fmt.Sprintf("at work for %.0f %% of the slow ones' time", 100*during)
		if s.Fast.Time > 0 {
			text += fmt.Sprintf(", %.0f %% of the others'", 100*float64(s.Fast.Collector)/float64(s.Fast.Time))
		}
		groups.Add("collector", "%s", text)
	}
	out := []doc.Block{doc.Paragraphf("%s.", slow), groups}
	running := func(p exectrace.Share) bool { return p.State == exectrace.Running && p.Part >= 0.1 }
	if slices.ContainsFunc(s.Slow.States(), running) || slices.ContainsFunc(s.Fast.States(), running) {
		out = append(out, doc.Note("running: on one of Go's processors. A trace does not show when the kernel ran another thread in its place."))
	}
	return append(append(out, s.causes()), s.handlers()...)
}

// causes is the table of what slow requests spent more time on.
func (s *story) causes() doc.Table {
	t := doc.Table{Caption: "causes", Unlabelled: true, Columns: []doc.Column{
		{Head: "slow", Right: true}, {Head: "others", Right: true}, {Head: "excess", Right: true}, {Head: "cause, and whose it is", Key: true, Shrink: true},
	}}
	excess := float64(s.Slow.Mean() - s.Fast.Mean())
	for _, d := range s.Differences() {
		if excess <= 0 || float64(d.Excess()) < 0.01*excess {
			break
		}
		cells := doc.Cells(span(d.Slow), unit.Some(float64(d.Fast), unit.Nanoseconds), fmt.Sprintf("%.0f %%", 100*float64(d.Excess())/excess))
		t.Rows = append(t.Rows, doc.Row{Cells: append(cells, doc.Cell{Text: title(d.Cause), Notes: []string{s.details(d)}})})
	}
	return t
}

// handlers says which handlers the slow requests were for, if there are several.
func (s *story) handlers() []doc.Block {
	slow, all := reached(s.Slow.Handlers), reached(s.Slow.Handlers)
	for o, n := range reached(s.Fast.Handlers) {
		all[o] += n
	}
	if len(all) < 2 {
		return nil
	}
	var list doc.List
	for _, h := range s.Slow.Handlers {
		if n := slow[h.Owner]; n > 0 {
			list.Items = append(list.Items, doc.Plain(fmt.Sprintf("%s: %s slow of %s", h.Owner.Name, unit.Number(float64(n)), unit.Number(float64(all[h.Owner])))))
		}
	}
	return []doc.Block{doc.Heading{Level: 2, Text: "By handler, where it was seen"}, list}
}

// reached counts requests by handler, without those that were seen only on their
// way there.
func reached(handlers []exectrace.Handler) map[exectrace.Owner]int {
	all := map[exectrace.Owner]int{}
	for _, h := range handlers {
		if h.Owner.Kind == "handler" {
			all[h.Owner] += h.Requests
		}
	}
	return all
}

// shares says how a group's time divides.
func shares(g *exectrace.Group) string {
	var parts []string
	for _, s := range g.States() {
		if s.Part >= 0.005 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", s.State, 100*s.Part))
		}
	}
	return strings.Join(parts, ", ")
}

// title names a cause and its owner.
func title(c exectrace.Cause) string {
	return fmt.Sprintf("%s: %s", c.State, c.Owner.Name)
}

// details say in how many requests a cause was seen, where, and who ended it.
func (s *story) details(d exectrace.Difference) string {
	parts := []string{fmt.Sprintf("in %s of %s", unit.Number(float64(d.Requests)), unit.Number(float64(s.Slow.Count)))}
	if d.Owner.Kind != "other" {
		parts = append(parts, d.Owner.Kind)
	}
	if d.Owner.Where != "" {
		parts = append(parts, d.Owner.Where)
	}
	if d.Released != nil {
		parts = append(parts, ended(d.Cause))
	}
	if d.At != "" {
		parts = append(parts, path.Base(d.At))
	}
	return strings.Join(parts, ", ")
}

// ended says who ended a wait.
func ended(c exectrace.Cause) string {
	if c.Released.Kind == "other" {
		return "ended by " + path.Base(c.By)
	}
	return "ended by " + c.Released.Name
}

// slowest shows the slowest requests, one stretch of time a line.
func (s *story) slowest(n int) (tables []doc.Block) {
	for i := range s.Slowest[:min(n, len(s.Slowest))] {
		r := &s.Slowest[i]
		t := doc.Table{Caption: name(r), Columns: []doc.Column{{Head: "at", Right: true}, {Head: "for", Right: true}, {Head: "what", Key: true, Shrink: true}}}
		for _, p := range timeline.Stretches(r) {
			what := title(p.Cause)
			switch {
			case p.Merged > 0:
				what = fmt.Sprintf("%d short ones, mostly %s", p.Merged, p.State)
			case p.Released != nil:
				what += ", " + ended(p.Cause)
			case p.Elsewhere:
				what += ", on a goroutine of its own"
			}
			t.Rows = append(t.Rows, doc.Row{Cells: doc.Cells(span(p.Begin), span(p.Duration), what)})
		}
		tables = append(tables, t)
	}
	return tables
}

// name says which request it is.
func name(r *exectrace.Request) string {
	text := span(r.Duration) + " at " + span(r.Begin)
	switch {
	case r.Handler.Name == "":
	case r.Handler.Kind == "handler":
		text += ", " + r.Handler.Name
	default:
		text += ", seen no further in than " + r.Handler.Name
	}
	if r.Log != "" {
		text += ", " + r.Log
	}
	switch {
	case r.Begun && r.Unended:
		text += ", begun before the trace and not over at its end"
	case r.Begun:
		text += ", begun before the trace"
	case r.Unended:
		text += ", not over at the trace's end"
	}
	return text
}
