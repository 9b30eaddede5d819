// Package timeline writes what requests' time went into as one HTML file, which
// works offline and without scripts.
package timeline

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/stats/unit"
)

//go:embed timeline.tmpl
var source string

//go:embed timeline.css
var style string

// Write writes the page of a trace's requests. name says where they come from.
func Write(w io.Writer, name string, r *exectrace.Requests) error {
	t, err := template.New("timeline").Funcs(template.FuncMap{
		"span": span, "signed": signed,
		"count":   func(n int) string { return unit.Number(float64(n)) },
		"share":   func(v float64) string { return unit.Format(v, unit.Share) },
		"colour":  colour,
		"details": details,
	}).Parse(source)
	if err != nil {
		return err
	}
	return t.Execute(w, newView(name, r))
}

// Stretches are a request's segments fit to be looked at: neighbours that are each
// shorter than a hundredth of the request are one, called by the longest of them.
func Stretches(r *exectrace.Request) []exectrace.Segment {
	grain := r.Duration / 100
	var all []exectrace.Segment
	longest := time.Duration(0) // of the last stretch
	for _, s := range r.Segments {
		last := len(all) - 1
		if last < 0 || s.Duration > grain || longest > grain {
			all = append(all, s)
			longest = s.Duration
			continue
		}
		merged := max(1, all[last].Merged) + max(1, s.Merged)
		begin, whole := all[last].Begin, all[last].Duration+s.Duration
		if s.Duration > longest {
			all[last], longest = s, s.Duration
		}
		all[last].Begin, all[last].Duration, all[last].Merged = begin, whole, merged
	}
	return all
}

// view is what the template shows.
type view struct {
	*exectrace.Requests
	Name        string
	Style       template.CSS
	Scale       []quantile
	Groups      []group
	Differences []difference
	Others      int // differences not shown
	Bars        []bar
	Legend      []exectrace.State
}

type quantile struct {
	Name     string
	Duration time.Duration
}

// group is a bar of what requests spent on average.
type group struct {
	Name  string
	Count int
	Mean  time.Duration
	Parts []slice
}

// slice is a part of a bar, as wide as its share of the widest.
type slice struct {
	State exectrace.State
	Width float64 // per cent
	Title string
}

type difference struct {
	exectrace.Difference
	Part float64 // of the excess
}

// bar is one request.
type bar struct {
	*exectrace.Request
	Slices    []slice
	Stretches []exectrace.Segment
}

// mostDifferences bounds the table: what comes after is next to nothing.
const mostDifferences = 20

func newView(name string, r *exectrace.Requests) *view {
	v := &view{Requests: r, Name: name, Style: template.CSS(style)}
	for _, q := range r.Quantiles {
		label := unit.Quantile(q.Q)
		if q.Q == 1 {
			label = "longest"
		}
		v.Scale = append(v.Scale, quantile{label, q.Duration})
	}
	v.compare()
	used := map[exectrace.State]bool{}
	for i := range r.Slowest {
		b := bar{Request: &r.Slowest[i], Stretches: Stretches(&r.Slowest[i])}
		for _, s := range b.Stretches {
			used[s.State] = true
			b.Slices = append(b.Slices, slice{
				State: s.State, Width: 100 * float64(s.Duration) / float64(r.Slowest[0].Duration),
				Title: fmt.Sprintf("%s: %s, %s", s.State, s.Owner.Name, span(s.Duration)),
			})
		}
		v.Bars = append(v.Bars, b)
	}
	for _, g := range v.Groups {
		for _, p := range g.Parts {
			used[p.State] = true
		}
	}
	for s := exectrace.Running; s <= exectrace.Waiting; s++ {
		if used[s] {
			v.Legend = append(v.Legend, s)
		}
	}
	return v
}

// compare draws slow requests beside the others.
func (v *view) compare() {
	widest := float64(max(v.Slow.Mean(), v.Fast.Mean()))
	for _, g := range []struct {
		name string
		of   *exectrace.Group
	}{{"slow", &v.Slow}, {"others", &v.Fast}} {
		if g.of.Count == 0 {
			continue
		}
		row := group{Name: g.name, Count: g.of.Count, Mean: g.of.Mean()}
		for _, s := range g.of.States() {
			row.Parts = append(row.Parts, slice{
				State: s.State, Width: 100 * s.Part * float64(row.Mean) / widest,
				Title: fmt.Sprintf("%s: %s", s.State, unit.Format(s.Part, unit.Share)),
			})
		}
		v.Groups = append(v.Groups, row)
	}
	if v.Slow.Count == 0 {
		return
	}
	excess := v.Slow.Mean() - v.Fast.Mean()
	const least = 0.001 // of the excess
	all := v.Requests.Differences()
	for _, d := range all {
		part := float64(d.Excess()) / float64(excess)
		if d.Excess() <= 0 || excess <= 0 || part < least || len(v.Differences) == mostDifferences {
			break
		}
		v.Differences = append(v.Differences, difference{d, part})
	}
	v.Others = len(all) - len(v.Differences)
}

// details say where time went, and who ended a wait.
func details(c exectrace.Cause) string {
	var parts []string
	if c.Owner.Kind != "other" {
		parts = append(parts, c.Owner.Kind)
	}
	if c.Owner.Where != "" {
		parts = append(parts, c.Owner.Where)
	}
	if c.At != "" {
		parts = append(parts, "in "+path.Base(c.At))
	}
	if c.Released != nil && c.Released.Kind != "other" {
		parts = append(parts, "ended by "+c.Released.Name)
	} else if c.Released != nil {
		parts = append(parts, "ended by "+path.Base(c.By))
	}
	return strings.Join(parts, ", ")
}

func span(d time.Duration) string { return unit.Some(float64(d), unit.Nanoseconds) }

func signed(d time.Duration) string {
	if d > 0 {
		return "+" + span(d)
	}
	return span(d)
}

// colour returns a state's, of a palette that can be distinguished by most who see
// few colours.
func colour(s exectrace.State) template.CSS {
	switch s {
	case exectrace.Running:
		return "#4477aa"
	case exectrace.Runnable:
		return "#66ccee"
	case exectrace.Collecting:
		return "#aa3377"
	case exectrace.Locked:
		return "#228833"
	case exectrace.Channel:
		return "#99ddff"
	case exectrace.Calling:
		return "#ee6677"
	case exectrace.Client:
		return "#ffaabb"
	case exectrace.Sleeping:
		return "#ccbb44"
	case exectrace.Kernel:
		return "#ee8866"
	}
	return "#bbbbbb"
}
