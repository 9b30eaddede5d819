package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/web/history"
	"github.com/tarehq/tare/web/links"
)

const (
	// look is how often the files of a run under way are looked at.
	look = time.Second
	// beat is how often a stream says that it is alive, for proxies that end silent ones.
	beat = 15 * time.Second
	// longest is how long a stream lasts: a browser then begins another.
	longest = 30 * time.Minute
	// reload is how often a page without scripts is loaded again, in seconds.
	reload = 10
)

// showLive is how a run stands that goes on.
func (s *Site) showLive(w http.ResponseWriter, r *http.Request) error {
	row, found, err := s.openRun(r, r.PathValue("run"))
	if err != nil {
		return err
	}
	v := view{Title: "Live: " + row.Name, Here: "/", Live: links.Run(row.Name, "events"), Every: reload}
	v.add(standing(row.Name, found)...)
	if run := found.row(); !run.Running(time.Now()) {
		v.Every, v.Live = 0, ""
	}
	return s.render(w, &v)
}

// newestTrials is how many of the last trials are listed.
const newestTrials = 12

// standing is how a run stands, for the page and for what replaces its part.
func standing(name string, found analysed) []doc.Block {
	m := &found.run.Manifest
	row, so := found.row(), " so far"
	state := row.State(time.Now())
	if m.Outcome != "" {
		state, so = "ended: "+state, ""
	}
	p := found.a.Progress()
	terms := doc.Terms{Inline: true}
	terms.Add("state", "%s", state)
	terms.Add("began", "%s", links.Date(m.Started))
	terms.Add("trials", "%d, %d of them valid", found.a.Trials.Total, found.a.Trials.Valid)
	terms.Add("blocks", "%d", p.Blocks)
	terms.Add("captures", "%d", len(found.run.Captures))
	out := []doc.Block{doc.Note(studyTitle(m.Study.Name, m.Study.Title)), doc.Heading{Level: 1, Text: found.a.Headline}, terms,
		links.Beside("This run", links.To(links.Run(name), "The report"+so), links.To("/", "All runs"))}
	if metric := found.a.Primary(); metric != nil && len(metric.Compared) > 0 {
		table := doc.Table{Caption: metric.Title + " against " + m.Study.Control + so, Columns: []doc.Column{{Head: "arm", Key: true}, {Head: "change", Right: true}, {Head: "interval"}, {Head: "blocks", Right: true}, {Head: "verdict"}}}
		for i := range metric.Compared {
			c := &metric.Compared[i]
			cells := []doc.Cell{{Text: c.Arm}, {Text: c.Withheld}}
			if c.Withheld == "" {
				cells = []doc.Cell{{Text: c.Arm}, {Text: c.Figure()}, {Text: c.Deciding().Text(c)}, {Text: strconv.Itoa(c.N)}, {Text: c.Word()}}
			}
			table.Rows = append(table.Rows, doc.Row{Cells: cells})
		}
		out = append(out, table)
		if so != "" {
			out = append(out, doc.Note("The intervals hold whenever one looks. The run decides by its own plan."))
		}
	}
	return append(out, lastTrials(found.run))
}

// lastTrials lists the trials that ended last, the newest first.
func lastTrials(run *record.Run) doc.Table {
	table := doc.Table{Caption: "The last trials", Columns: []doc.Column{{Head: "trial", Key: true}, {Head: "block", Right: true}, {Head: "arm"}, {Head: "workload"}, {Head: "requests", Right: true}, {Head: "counts"}}}
	for i := len(run.Trials) - 1; i >= max(0, len(run.Trials)-newestTrials); i-- {
		t := &run.Trials[i]
		block, counts := strconv.Itoa(t.Block), doc.Cell{Text: "yes"}
		if t.Block < 0 {
			block = "pilot"
		}
		if len(t.Invalid) > 0 {
			counts = doc.Cell{Text: "no: " + t.Invalid[0], Tone: doc.Bad}
		}
		table.Rows = append(table.Rows, doc.Row{Cells: []doc.Cell{{Text: strconv.Itoa(t.Seq)}, {Text: block}, {Text: t.Arm}, {Text: t.Workload}, {Text: unit.Number(float64(t.Requests))}, counts}})
	}
	return table
}

// streamEvents sends the part of a live page again whenever the run's files changed, until
// the run ended.
func (s *Site) streamEvents(w http.ResponseWriter, r *http.Request) error {
	row, err := s.o.Index.Run(r.Context(), r.PathValue("run"))
	if err != nil {
		return err
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return problem{http.StatusServiceUnavailable, "Too many live views are open. The page without scripts shows the same."}
	}
	ctx, cancel := context.WithTimeout(r.Context(), longest)
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies such as nginx would hold back what is sent
	st := &stream{w: w, c: http.NewResponseController(w), s: s, dir: s.o.Index.Dir(row.Name)}
	if err := st.c.SetReadDeadline(time.Time{}); err != nil { // the server's own would end the stream
		return err
	}
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for {
		ended, err := st.update(ctx)
		if err != nil || ended {
			return nil // the reader is gone, or has all
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// stream is a live view that is open.
type stream struct {
	w     http.ResponseWriter
	c     *http.ResponseController
	s     *Site
	dir   string
	stamp string      // of the files that were sent last
	row   history.Run // as they were
	sent  time.Time   // when something was
}

// update sends what changed, if anything did. It reports whether the run ended, or was broken off.
func (st *stream) update(ctx context.Context) (ended bool, err error) {
	now := time.Now()
	stamp, _ := history.Stamp(st.dir)
	if stamp == st.stamp && st.row.Running(now) {
		if time.Since(st.sent) < beat {
			return false, nil
		}
		return false, st.send(": alive\n\n")
	}
	found, err := st.s.analyses.open(ctx, st.dir)
	if err != nil {
		if ctx.Err() != nil {
			return false, err
		}
		return true, st.event("end", map[string]string{"state": "The run cannot be read: " + st.s.explain(err)})
	}
	var part bytes.Buffer
	if err := doc.Fragment(&part, standing(filepath.Base(st.dir), found)...); err != nil {
		return false, err
	}
	st.stamp, st.row = stamp, found.row()
	state := fmt.Sprintf("Trial %d ended at %s.", max(0, len(found.run.Trials)-1), now.UTC().Format("15:04:05"))
	goesOn := st.row.Running(now)
	switch {
	case st.row.Outcome != "":
		state = "The run ended: " + st.row.Outcome + "."
	case !goesOn:
		state = "Nothing is written to the run any more: it seems to be broken off."
	}
	if err := st.event("part", map[string]string{"html": part.String(), "state": state}); err != nil {
		return false, err
	}
	if goesOn {
		return false, nil
	}
	return true, st.event("end", map[string]string{"state": state})
}

func (st *stream) event(name string, data map[string]string) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return st.send(fmt.Sprintf("event: %s\ndata: %s\n\n", name, text))
}

// send writes at once, within ten seconds.
func (st *stream) send(text string) error {
	if err := st.c.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	st.sent = time.Now()
	if _, err := st.w.Write([]byte(text)); err != nil {
		return err
	}
	return st.c.Flush()
}
