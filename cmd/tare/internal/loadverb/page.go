package loadverb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/remote"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// tableQuantiles are shown, where there is enough behind them.
func tableQuantiles() [9]float64 {
	return [...]float64{0, .5, .75, .9, .95, .99, .999, .9999, 1}
}

// summary is a result and what a reader needs to understand it.
type summary struct {
	res      *load.Result
	open     bool
	planned  time.Duration // of the measured part; 0: not known
	title    string
	outcomes []outcome
	agents   *remote.Report // nil: the load was made here
}

// page builds the report; the drawing in characters is at most width columns wide.
func (s *summary) page(width int) doc.Page {
	p := doc.Page{Title: s.title}
	if only := s.onlyErrors(); only != nil {
		p.Add(doc.Warning{Text: doc.Plain(only.Error())})
	}
	p.Add(doc.Heading{Level: 1, Text: s.title}, s.facts())
	if s.res.Counts.Answered() > 0 {
		p.Add(s.table())
		for _, note := range s.notes() {
			p.Add(doc.Note(note))
		}
		p.Add(remote.Blocks(s.agents, s.open)...)
		p.Add(s.series(width), doc.Terms{Items: []doc.Term{{Name: "generator", Text: doc.Plain(s.generator())}}})
		p.Add(warnings(slices.DeleteFunc(slices.Clone(s.res.Warnings), isOnlyErrors))...)
	}
	for _, o := range s.outcomes {
		span := doc.Span{Text: o.String()}
		if o.failed {
			span.Tone = doc.Bad
		}
		p.Add(doc.Paragraph{Text: doc.Spans{span}})
	}
	if s.res.Ended != "" {
		p.Add(doc.Paragraph{Text: doc.Plain("ended early: " + s.res.Ended)})
	}
	return p
}

// warnings are the caveats of a result.
func warnings(all []error) (blocks []doc.Block) {
	for _, w := range all {
		blocks = append(blocks, doc.Warning{Text: doc.Plain(strings.ReplaceAll(w.Error(), "\n", ": "))})
	}
	return blocks
}

// onlyErrors is the result's warning that every answer is an error; nil if it has none.
func (s *summary) onlyErrors() error {
	if i := slices.IndexFunc(s.res.Warnings, isOnlyErrors); i >= 0 {
		return s.res.Warnings[i]
	}
	return nil
}

func isOnlyErrors(w error) bool { return errors.Is(w, load.ErrOnlyErrors) }

// facts are the counts.
func (s *summary) facts() doc.Terms {
	r, c := s.res, s.res.Counts
	var terms doc.Terms
	add := func(name, format string, args ...any) {
		terms.Items = append(terms.Items, doc.Term{Name: name, Text: doc.Plain(fmt.Sprintf(format, args...))})
	}
	add("requests", "%s scheduled, %s answered in %s", number(c.Scheduled), number(c.Answered()), seconds(r.Elapsed))
	add("errors", "%s", cmp.Or(failures(c, r.StatusAsked), "none"))
	if n := r.WarmUp.Scheduled; n > 0 {
		add("warm-up", "%s, not counted here", unit.Plural(n, "request"))
	}
	if c.Answered() == 0 {
		return terms
	}
	add("status", "%s", c.Status)
	add("rate", "%s", s.rate())
	add("bytes", "%s in, %s out", s.volume(r.BytesIn), s.volume(r.BytesOut))
	most, mean := "in flight", ""
	if s.open {
		most, mean = "in flight or waiting for one", "in flight or due " // the mean is more than the most, where the generator is late
	}
	add("connections", "%s opened, reused for %s; at most %s %s, %.1f %son average",
		number(r.Opened), unit.Plural(r.Reused, "request"), number(uint64(r.PeakFlight)), most, r.MeanFlight, mean)
	if r.Full+r.Resumed > 0 {
		add("TLS", "%s full and %s resumed handshakes", number(r.Full), number(r.Resumed))
	}
	return terms
}

// volume is a number of bytes, and that a second.
func (s *summary) volume(n uint64) string {
	text := unit.Format(float64(n), unit.Bytes)
	if t := s.res.Elapsed.Seconds(); t > 0 {
		text += " (" + unit.Format(float64(n)/t, unit.Bytes) + "/s)"
	}
	return text
}

// rate is what was achieved, in the open loop beside what was asked for. Waiting
// for the last answers is not part of the time of asking, and that to the next start,
// which the last request leaves out, is.
func (s *summary) rate() string {
	elapsed := max(s.res.Elapsed, 1)
	text := unit.Format(float64(s.res.Counts.Answered())/elapsed.Seconds(), unit.PerSecond) + " answered"
	if s.open {
		asking := cmp.Or(s.planned, elapsed)
		if s.res.Ended != "" {
			asking = min(elapsed, asking)
		}
		text = unit.Format(float64(s.res.Counts.Scheduled)/asking.Seconds(), unit.PerSecond) + " offered, " + text
	}
	return text
}

func number(n uint64) string { return unit.Format(float64(n), unit.Count) }

// table has the quantiles of every kind of times that was recorded.
func (s *summary) table() doc.Table {
	r := s.res
	t := doc.Table{Caption: "times", Unlabelled: true, Matrix: true, Columns: []doc.Column{{Head: "quantile", Key: true}}}
	var columns []*hist.Hist
	add := func(head string, times *hist.Hist) {
		if times.Count() > 0 {
			t.Columns = append(t.Columns, doc.Column{Head: head, Right: true, Optional: len(columns) > 0})
			columns = append(columns, times)
		}
	}
	if s.open {
		add("response", r.Response)
	}
	add("service", r.Service)
	if s.open {
		add("lag", r.Lag)
	}
	add("first byte", r.FirstByte)
	add("connect", r.Connect)
	add("handshake", r.Handshake)
	row := func(name string, shown bool, value func(*hist.Hist) string) {
		cells := doc.Cells(name)
		for _, times := range columns {
			cells = append(cells, doc.Cell{Text: value(times)})
		}
		if shown {
			t.Rows = append(t.Rows, doc.Row{Cells: cells})
		}
	}
	for _, q := range tableQuantiles() {
		some := false
		for _, times := range columns {
			some = some || times.Count() >= hist.Needed(q)
		}
		row(unit.Quantile(q), some, func(times *hist.Hist) string {
			if times.Count() < hist.Needed(q) {
				return "–"
			}
			return nanoseconds(times.Quantile(q))
		})
		if q == 0 {
			row("mean", true, func(times *hist.Hist) string { return unit.Format(times.Mean(), unit.Nanoseconds) })
		}
	}
	return t
}

// notes explain the table.
func (s *summary) notes() []string {
	var notes []string
	if c := s.res.Counts; c.Failed()+c.Dropped > 0 {
		notes = append(notes, "times are of answered requests; thresholds count the others as slower than all")
	}
	if n := s.res.Counts.Status[3]; n > 0 && n == s.res.Counts.Answered() {
		notes = append(notes, "every answer is a redirect; --follow loads where they lead")
	}
	if !s.open {
		notes = append(notes, "closed loop: response time = service time; use --rate for open loop")
	}
	return notes
}

// series draws answers, and failures where there were any, over time.
func (s *summary) series(width int) doc.Figure {
	var answered, failed []float64
	for i, sl := range s.res.Series {
		end := s.res.Elapsed
		if i+1 < len(s.res.Series) {
			end = s.res.Series[i+1].At
		}
		if length := (end - sl.At).Seconds(); length > 0 {
			answered = append(answered, float64(sl.Answered)/length)
			failed = append(failed, float64(sl.Failed+sl.Dropped)/length)
		}
	}
	if len(answered) < 2 {
		return doc.Figure{}
	}
	columns := max(10, width-45)
	f := doc.Figure{Alt: "answers a second over time", Text: "answers   " + spark(answered, columns), Drawing: drawLine(answered)}
	f.Caption = doc.Plain("answers a second, over " + seconds(s.res.Elapsed))
	if c := s.res.Counts; c.Failed()+c.Dropped > 0 {
		f.Text += "\nfailures  " + spark(failed, columns)
	}
	return f
}

// drawLine draws values from 0 to the highest.
func drawLine(values []float64) doc.Markup {
	var high float64
	for _, v := range values {
		high = max(high, v)
	}
	var points strings.Builder
	for i, v := range values {
		fmt.Fprintf(&points, "%.1f,%.1f ", 600*float64(i)/float64(len(values)-1), 116-96*v/max(high, 1e-9))
	}
	return doc.Markup(fmt.Sprintf(`<svg viewBox="0 0 600 120" width="100%%" role="img" aria-label="up to %s"><g stroke="currentColor" stroke-opacity=".25"><path d="M0 20H600M0 116H600"/></g><polyline points="%s" fill="none" stroke="currentColor" stroke-width="1.5"/><g fill="currentColor" font-size="11"><text x="0" y="15">%[1]s</text><text x="0" y="112">0</text></g></svg>`,
		unit.Format(high, unit.PerSecond), strings.TrimSpace(points.String())))
}

// spark draws values from 0 to the highest in at most width columns, and says
// between what they lie.
func spark(values []float64, width int) string {
	per := (len(values) + width - 1) / width
	var line strings.Builder
	low, high := values[0], values[0]
	var means []float64
	for len(values) > 0 {
		n := min(per, len(values))
		var sum float64
		for _, v := range values[:n] {
			sum += v
			low, high = min(low, v), max(high, v)
		}
		means = append(means, sum/float64(n))
		values = values[n:]
	}
	steps := []rune("▁▂▃▄▅▆▇█")
	for _, m := range means {
		switch {
		case m == 0:
			line.WriteRune('·')
		default:
			line.WriteRune(steps[min(len(steps)-1, int(m/high*float64(len(steps))))])
		}
	}
	return fmt.Sprintf("%s  %s to %s", &line, unit.Format(low, unit.PerSecond), unit.Format(high, unit.PerSecond))
}

// generator answers whether the generator was the bottleneck.
func (s *summary) generator() string {
	r := s.res
	why := fmt.Sprintf("%s of %s busy", unit.Format(r.Busy(), unit.Share), unit.Plural(r.Threads, "thread"))
	if s.open && !r.Bound && r.Late.Count() > 0 { // else the warnings say so

		why += ", late " + highest(r.Late)
	}
	if r.Unread.Count() > 0 {
		why += ", answers read late " + highest(r.Unread) + " (not in the table)"
	}
	switch {
	case s.open && r.Starved():
		return "kept from the CPU by others: " + why
	case r.Bound:
		return "(nearly) the bottleneck: " + why
	}
	return "not the bottleneck: " + why
}

// highest is the p99, or of few times the maximum.
func highest(times *hist.Hist) string {
	if times.Count() < hist.Needed(.99) {
		return "max " + nanoseconds(times.Max())
	}
	return "p99 " + nanoseconds(times.Quantile(.99))
}
