package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/captured"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/web/history"
	"github.com/tarehq/tare/web/links"
)

// runsPerPage is how many runs a page lists.
const runsPerPage = 50

// runsForm is the filter of the list of runs.
type runsForm struct {
	Study, State, Text string
	Studies, States    []string
}

// listRuns is the first page.
func (s *Site) listRuns(w http.ResponseWriter, r *http.Request) error {
	f := runsForm{Study: r.FormValue("study"), State: r.FormValue("state"), Text: r.FormValue("q"),
		States: []string{"decided", "cap", "budget", "refused", "interrupted", "unfinished", "unreadable"}}
	at, err := strconv.Atoi(r.FormValue("page"))
	if err != nil || at < 1 || at > 1_000_000 {
		at = 1
	}
	runs, all, err := s.o.Index.Runs(r.Context(), history.Query{Study: f.Study, State: f.State, Text: f.Text, Offset: (at - 1) * runsPerPage, Limit: runsPerPage})
	if err != nil {
		return err
	}
	if f.Studies, err = s.o.Index.StudyNames(r.Context()); err != nil {
		return err
	}
	v := view{Title: "Runs", Here: "/", Kind: "runs", Form: f}
	v.add(doc.Heading{Level: 1, Text: "Runs"})
	now := time.Now()
	table := doc.Table{Caption: "Runs", Unlabelled: true, Columns: []doc.Column{{Head: "run", Key: true}, {Head: "study"}, {Head: "began", Right: true}, {Head: "ended"}, {Head: "trials", Right: true}, {Head: "finding"}}}
	for _, run := range runs {
		table.Rows = append(table.Rows, runRow(run, now))
	}
	if len(runs) == 0 {
		text := "No run matches. Leave the filter empty to see all."
		if f.Study+f.State+f.Text == "" && at == 1 {
			text = "The folder holds no runs yet. A run appears here as soon as it begins."
		}
		v.add(doc.Paragraph{Text: doc.Plain(text)})
	} else {
		first := (at-1)*runsPerPage + 1
		v.add(doc.Note(fmt.Sprintf("%s to %s of %s", unit.Number(float64(first)), unit.Number(float64(first+len(runs)-1)), unit.Plural(all, "run"))), table)
	}
	if pending, err := s.o.Index.Pending(r.Context(), now); err == nil && pending > 0 {
		v.add(doc.Note(unit.Plural(pending, "run") + " not analysed yet: their findings follow."))
	}
	if more := pages(r.URL.Query(), at, all); len(more) > 0 {
		v.add(links.Beside("More runs", more...))
	}
	return s.render(w, &v)
}

func runRow(run history.Run, now time.Time) doc.Row {
	state := doc.Cell{Text: run.State(now)}
	finding := doc.Cell{Text: run.Headline}
	path := links.Run(run.Name)
	switch {
	case run.Reason != "":
		state.Tone, finding = doc.Bad, doc.Cell{Text: run.Reason, Tone: doc.Muted}
	case run.Running(now):
		state.Tone, path = doc.Good, links.Run(run.Name, "live")
	}
	study := doc.Cell{Text: run.Study}
	if run.Study != "" {
		study = links.Cell(links.Study(run.Study, nil), run.Study)
	}
	if run.Quick {
		study.Notes = []string{"quick form"}
	}
	return doc.Row{Cells: []doc.Cell{links.Cell(path, run.Name), study, {Text: links.Date(run.Started)}, state, {Text: strconv.Itoa(run.Trials)}, finding}}
}

// pages link to the pages before and after.
func pages(q url.Values, at, all int) (more []doc.Markup) {
	for _, p := range []struct {
		page  int
		text  string
		there bool
	}{{at - 1, "Newer runs", at > 1}, {at + 1, "Older runs", at*runsPerPage < all}} {
		if p.there {
			q.Set("page", strconv.Itoa(p.page))
			more = append(more, links.To("/?"+q.Encode(), p.text))
		}
	}
	return more
}

// analysed is a run with its analysis.
type analysed struct {
	run     *record.Run
	a       *verdict.Analysis
	touched time.Time // when something was last written to it
}

// row is the run as the index has it, as far as its state depends on that.
func (f *analysed) row() history.Run {
	return history.Run{Outcome: f.run.Manifest.Outcome, Touched: f.touched}
}

// analyses keeps the runs that were read last. A run that changed is read again.
type analyses struct {
	places chan struct{} // one for each run that is being read

	mu   sync.Mutex
	kept []keptAnalysis // the last used first
}

type keptAnalysis struct {
	dir, stamp string
	analysed
}

const (
	mostAnalyses = 2 // read at one time
	keptAnalyses = 8
)

// open reads and analyses a run, unless it did before.
func (c *analyses) open(ctx context.Context, dir string) (analysed, error) {
	select {
	case c.places <- struct{}{}:
	case <-ctx.Done():
		return analysed{}, ctx.Err()
	}
	defer func() { <-c.places }()
	stamp, touched := history.Stamp(dir)
	c.mu.Lock()
	i := slices.IndexFunc(c.kept, func(k keptAnalysis) bool { return k.dir == dir && k.stamp == stamp })
	if i >= 0 {
		found := c.kept[i]
		c.kept = slices.Insert(slices.Delete(c.kept, i, i+1), 0, found)
		c.mu.Unlock()
		return found.analysed, nil
	}
	c.mu.Unlock()
	run, a, err := history.OpenRun(dir)
	if err != nil {
		return analysed{}, err
	}
	found := keptAnalysis{dir, stamp, analysed{run, a, touched}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.DeleteFunc(c.kept, func(k keptAnalysis) bool { return k.dir == dir })
	c.kept = slices.Insert(c.kept, 0, found)
	c.kept = c.kept[:min(len(c.kept), keptAnalyses)]
	return found.analysed, nil
}

// openRun reads the run that a path names. One that cannot be read has a page that says why.
func (s *Site) openRun(r *http.Request, name string) (history.Run, analysed, error) {
	row, err := s.o.Index.Run(r.Context(), name)
	if err != nil {
		return row, analysed{}, err
	}
	found, err := s.analyses.open(r.Context(), s.o.Index.Dir(row.Name))
	if err != nil && r.Context().Err() == nil {
		err = problem{http.StatusUnprocessableEntity, fmt.Sprintf("Run %s cannot be read: %s", row.Name, s.explain(err))}
	}
	return row, found, err
}

// explain is an error without where the runs lie on this machine.
func (s *Site) explain(err error) string { return s.o.Index.Explain(err) }

// showRun is the report of a run.
func (s *Site) showRun(w http.ResponseWriter, r *http.Request) error {
	row, found, err := s.openRun(r, r.PathValue("run"))
	if err != nil {
		return err
	}
	v := view{Title: row.Name, Here: "/"}
	p := report.Page(found.run, found.a)
	ways := []doc.Markup{links.To(links.Run(row.Name, "report"), "Report as one file"),
		links.To("/compare?"+url.Values{"a": {row.Name}}.Encode(), "Compare with another run"), links.To(links.Study(row.Study, nil), "All runs of the study")}
	if row.Running(time.Now()) {
		ways = append(ways, links.To(links.Run(row.Name, "live"), "Follow it live"))
	}
	v.add(links.Beside("This run", ways...))
	v.add(p.Blocks...)
	if cells := captured.Cells(found.run); len(cells) > 0 {
		v.add(doc.Heading{Level: 2, Text: "Flame graphs"}, cellTable("Flame graphs by owner", cells, func(c captured.Cell) doc.Cell {
			return links.Cell(links.Run(row.Name, "cost")+"?"+cellQuery(c).Encode(), c.String())
		}))
	}
	return s.render(w, &v)
}

// cellTable lists cells that were profiled.
func cellTable(caption string, cells []captured.Cell, name func(captured.Cell) doc.Cell) doc.Table {
	table := doc.Table{Caption: caption, Unlabelled: true, Columns: []doc.Column{{Head: "arm and workload", Key: true}, {Head: "captures", Right: true}}}
	for _, c := range cells {
		table.Rows = append(table.Rows, doc.Row{Cells: []doc.Cell{name(c), {Text: strconv.Itoa(len(c.Shown()))}}})
	}
	return table
}

func cellQuery(c captured.Cell) url.Values {
	return url.Values{"arm": {c.Arm}, "workload": {c.Workload}}
}

// findCell finds the cell that a query names.
func findCell(run *record.Run, q url.Values) (captured.Cell, error) {
	for _, c := range captured.Cells(run) {
		if c.Arm == q.Get("arm") && c.Workload == q.Get("workload") {
			return c, nil
		}
	}
	return captured.Cell{}, problem{http.StatusNotFound, fmt.Sprintf("Run %s has no profiles of that arm under that workload.", filepath.Base(run.Dir))}
}

// showReport is the report as a file of its own, with the script that zooms its drawings.
func (s *Site) showReport(w http.ResponseWriter, r *http.Request) error {
	_, found, err := s.openRun(r, r.PathValue("run"))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := report.HTML(&out, found.run, found.a); err != nil {
		return err
	}
	return send(w, out.Bytes())
}

// send answers with a page that brings its own style and script.
func send(w http.ResponseWriter, html []byte) error {
	w.Header().Set("Content-Security-Policy", sandboxed)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err := w.Write(html)
	return err
}

// showCost is who spent what in an arm under a workload, with the flame graph.
func (s *Site) showCost(w http.ResponseWriter, r *http.Request) error {
	_, found, err := s.openRun(r, r.PathValue("run"))
	if err != nil {
		return err
	}
	cell, err := findCell(found.run, r.URL.Query())
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := s.inTurn(r.Context(), func() error {
		seen, err := cell.Merge(found.run)
		if err != nil {
			return problem{http.StatusUnprocessableEntity, "The profiles cannot be read: " + s.explain(err)}
		}
		return page.Write(&out, seen.Bill(), capture.Stacks(seen.CPU))
	}); err != nil {
		return err
	}
	return send(w, out.Bytes())
}
