package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/captured"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/web/history"
	"github.com/tarehq/tare/web/links"
)

// compareForm names the two runs.
type compareForm struct {
	A, B string
	Runs []string // to choose from
}

// offered is how many runs a form offers by name.
const offered = 100

// compare shows how the arms of two runs differ, each against the control that both ran.
func (s *Site) compare(w http.ResponseWriter, r *http.Request) error {
	f := compareForm{A: r.FormValue("a"), B: r.FormValue("b")}
	newest, _, err := s.o.Index.Runs(r.Context(), history.Query{Limit: offered})
	if err != nil {
		return err
	}
	for _, run := range newest {
		f.Runs = append(f.Runs, run.Name)
	}
	v := view{Title: "Compare", Here: "/compare", Kind: "compare", Form: f}
	if f.A == "" || f.B == "" {
		v.add(doc.Heading{Level: 1, Text: "Compare two runs"}, doc.Paragraph{Text: doc.Plain(
			"Runs lie hours or versions apart, so their figures are never compared directly. Each run's arms are compared with its own control, and the two ratios stand side by side. Both runs need the same control program.")})
		return s.render(w, &v)
	}
	a, b, err := s.openBoth(r)
	if err != nil {
		return err
	}
	v.Title = f.B + " against " + f.A
	v.add(links.Beside("The runs", links.To(links.Run(f.A), "First run"), links.To(links.Run(f.B), "Second run"), links.To(links.Compare(f.B, f.A), "The other way round")))
	if p, err := report.Compare(a.a, b.a); err != nil {
		v.add(doc.Heading{Level: 1, Text: "These two runs cannot be compared"}, doc.Warning{Text: doc.Plain(s.explain(err) + ".")})
	} else {
		v.add(p.Blocks...)
	}
	v.add(ownerLinks(a.run, b.run, f)...)
	return s.render(w, &v)
}

// openBoth reads the runs that a query calls a and b.
func (s *Site) openBoth(r *http.Request) (a, b analysed, err error) {
	one, two := r.FormValue("a"), r.FormValue("b")
	if one == two {
		return a, b, problem{http.StatusUnprocessableEntity, "Both are one run: name two."}
	}
	if _, a, err = s.openRun(r, one); err != nil {
		return a, b, err
	}
	_, b, err = s.openRun(r, two)
	return a, b, err
}

// ownerLinks lead to what each owner costs in both runs, of the cells that both profiled.
func ownerLinks(a, b *record.Run, f compareForm) []doc.Block {
	there := captured.Cells(b)
	shared := slices.DeleteFunc(captured.Cells(a), func(c captured.Cell) bool {
		return !slices.ContainsFunc(there, func(o captured.Cell) bool { return o.Arm == c.Arm && o.Workload == c.Workload })
	})
	if len(shared) == 0 {
		return []doc.Block{doc.Note("The runs have no profiles of an arm in common, so owners are not compared.")}
	}
	return []doc.Block{doc.Heading{Level: 2, Text: "Owners and flame graphs"}, cellTable("Owners and flame graphs", shared, func(c captured.Cell) doc.Cell {
		q := cellQuery(c)
		q.Set("a", f.A)
		q.Set("b", f.B)
		return links.Cell("/compare/owners?"+q.Encode(), c.String())
	}), doc.Note("These differences are of CPU time itself and not of ratios: the machine's speed on either day is in them. Where the control was profiled, its row shows how much that is.")}
}

// compareOwners tests what each owner of an arm costs in two runs.
func (s *Site) compareOwners(w http.ResponseWriter, r *http.Request) error {
	a, b, err := s.openBoth(r)
	if err != nil {
		return err
	}
	one, err := findCell(a.run, r.URL.Query())
	if err != nil {
		return err
	}
	two, err := findCell(b.run, r.URL.Query())
	if err != nil {
		return err
	}
	if x, y := sourceOf(one), sourceOf(two); x != y {
		return problem{http.StatusUnprocessableEntity, fmt.Sprintf("The one was profiled by %s and the other by %s, which see the same program differently.", x, y)}
	}
	var out bytes.Buffer
	if err := s.inTurn(r.Context(), func() error {
		d, err := compareCells(a.run, b.run, one, two)
		if err != nil {
			return problem{http.StatusUnprocessableEntity, "The profiles cannot be compared: " + s.explain(err)}
		}
		return page.WriteDiff(&out, d)
	}); err != nil {
		return err
	}
	return send(w, out.Bytes())
}

// sourceOf is what took the samples of a cell that are shown.
func sourceOf(c captured.Cell) study.Source {
	for _, one := range c.Shown() {
		for _, seen := range one.Seen {
			if seen.Source != study.Trace {
				return seen.Source
			}
		}
	}
	return study.Trace
}

func compareCells(a, b *record.Run, one, two captured.Cell) (*page.Diff, error) {
	before, err := one.Profiles(a)
	if err != nil {
		return nil, err
	}
	after, err := two.Profiles(b)
	if err != nil {
		return nil, err
	}
	d := &page.Diff{A: one.String() + ", " + a.Manifest.ID, B: two.String() + ", " + b.Manifest.ID}
	for _, kind := range []struct {
		before, after []diff.Capture
		into          **diff.Result
	}{{before.CPU, after.CPU, &d.CPU}, {before.Allocs, after.Allocs, &d.Bytes}} {
		res, err := diff.Compare(kind.before, kind.after, diff.Options{})
		if errors.Is(err, diff.ErrNothing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		*kind.into = res
		for _, w := range res.Warnings {
			if !slices.Contains(d.Warnings, w.Error()) {
				d.Warnings = append(d.Warnings, w.Error())
			}
		}
	}
	if d.CPU == nil && d.Bytes == nil {
		return nil, errors.New("both runs kept traces alone")
	}
	return d, nil
}
