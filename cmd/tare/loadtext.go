package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"

	"charm.land/lipgloss/v2"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// tableQuantiles are shown, where there is enough behind them.
func tableQuantiles() [9]float64 {
	return [...]float64{0, .5, .75, .9, .95, .99, .999, .9999, 1}
}

// summary shows a result to a person.
type summary struct {
	terminal *cli.Terminal
	res      *load.Result
	open     bool
	planned  time.Duration // of the measured part; 0: not known
	title    string
}

// print writes the summary to standard output.
func (s *summary) print(outcomes []outcome) {
	lines := append([]string{s.strong(s.title), ""}, s.facts()...)
	if s.res.Counts.Answered() > 0 {
		lines = append(lines, s.measured()...)
	}
	for _, o := range outcomes {
		text := o.String()
		if o.failed && s.terminal.Colour {
			text = lipgloss.NewStyle().Foreground(lipgloss.Red).Render(text)
		}
		lines = append(lines, text)
	}
	if s.res.Ended != "" {
		lines = append(lines, "ended early: "+s.res.Ended)
	}
	fmt.Fprintln(s.terminal.Out, strings.Join(lines, "\n"))
}

// measured is what only a run with answers has.
func (s *summary) measured() []string {
	lines := append([]string{""}, s.table()...)
	lines = append(append(lines, ""), s.series()...)
	lines = append(lines, s.wrapped("generator", s.generator())...)
	for _, w := range s.res.Warnings {
		lines = append(lines, s.wrapped("warning", strings.ReplaceAll(w.Error(), "\n", ": "))...)
	}
	return lines
}

func (s *summary) strong(text string) string {
	if !s.terminal.Colour {
		return text
	}
	return lipgloss.NewStyle().Bold(true).Render(text)
}

// labelWidth is that of the names of rows.
const labelWidth = 13

func (s *summary) row(label, text string) string {
	return fmt.Sprintf("%-*s%s", labelWidth, label, text)
}

// wrapped is a row broken to the terminal's width.
func (s *summary) wrapped(label, text string) []string {
	width := max(20, s.terminal.Width-labelWidth)
	var rows []string
	for l := range strings.SplitSeq(lipgloss.Wrap(text, width, ""), "\n") {
		rows = append(rows, s.row(label, l))
		label = ""
	}
	return rows
}

// note is a remark broken to the terminal's width.
func (s *summary) note(text string) []string {
	return strings.Split(lipgloss.Wrap(text, max(20, s.terminal.Width), ""), "\n")
}

// facts are the counts.
func (s *summary) facts() []string {
	r, c := s.res, s.res.Counts
	rows := s.wrapped("requests", fmt.Sprintf("%s scheduled, %s answered in %s", number(c.Scheduled), number(c.Answered()), seconds(r.Elapsed)))
	rows = append(rows, s.wrapped("errors", cmp.Or(failures(c), "none"))...)
	if n := r.WarmUp.Scheduled; n > 0 {
		rows = append(rows, s.wrapped("warm-up", cli.Count(n, "request")+", not counted here")...)
	}
	if c.Answered() == 0 {
		return rows
	}
	rows = append(rows, s.wrapped("status", classes(c))...)
	rows = append(rows, s.wrapped("rate", s.rate())...)
	rows = append(rows, s.wrapped("bytes", fmt.Sprintf("%s in, %s out", s.volume(r.BytesIn), s.volume(r.BytesOut)))...)
	most, mean := "in flight", ""
	if s.open {
		most, mean = "in flight or waiting for one", "in flight or due " // the mean is more than the most, where the generator is late
	}
	rows = append(rows, s.wrapped("connections", fmt.Sprintf("%s opened, reused for %s; at most %s %s, %.1f %son average",
		number(r.Opened), cli.Count(r.Reused, "request"), number(uint64(r.PeakFlight)), most, r.MeanFlight, mean))...)
	if r.Full+r.Resumed > 0 {
		rows = append(rows, s.wrapped("TLS", fmt.Sprintf("%s full and %s resumed handshakes", number(r.Full), number(r.Resumed)))...)
	}
	return rows
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

// classes are the answers by status class.
func classes(c load.Counts) string {
	var parts []string
	for class, n := range c.Status {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %dxx", number(n), class))
		}
	}
	if len(parts) == 0 {
		return "no answer"
	}
	return strings.Join(parts, ", ")
}

func number(n uint64) string { return unit.Format(float64(n), unit.Count) }

// column is one kind of times.
type column struct {
	title string
	times *hist.Hist
}

// columns are the kinds of times that were recorded, the foremost first.
func (s *summary) columns() []column {
	r := s.res
	all := []column{{"service", r.Service}, {"first byte", r.FirstByte}, {"connect", r.Connect}, {"handshake", r.Handshake}}
	if s.open {
		all = append([]column{{"response", r.Response}, {"service", r.Service}, {"lag", r.Lag}}, all[1:]...)
	}
	var shown []column
	for _, c := range all {
		if c.times.Count() > 0 {
			shown = append(shown, c)
		}
	}
	return shown[:min(len(shown), max(1, (s.terminal.Width-tableName)/tableCell))]
}

// Widths of the table of quantiles.
const (
	tableName = 8
	tableCell = 12
)

// table is the quantiles of every kind of times.
func (s *summary) table() []string {
	columns := s.columns()
	head := fmt.Sprintf("%-*s", tableName, "")
	for _, c := range columns {
		head += fmt.Sprintf("%*s", tableCell, c.title)
	}
	rows := []string{s.strong(head)}
	for _, q := range tableQuantiles() {
		row, some := fmt.Sprintf("%-*s", tableName, unit.Quantile(q)), false
		for _, c := range columns {
			cell := "–"
			if c.times.Count() >= hist.Needed(q) {
				cell, some = nanoseconds(c.times.Quantile(q)), true
			}
			row += fmt.Sprintf("%*s", tableCell, cell)
		}
		if some {
			rows = append(rows, row)
		}
		if q == 0 {
			rows = append(rows, s.means(columns))
		}
	}
	if c := s.res.Counts; c.Failed()+c.Dropped > 0 {
		rows = append(rows, s.note("times are of answered requests; thresholds take the others for slower than all")...)
	}
	if !s.open {
		rows = append(rows, s.note("closed loop: response time = service time; use --rate for open loop")...)
	}
	return rows
}

func (s *summary) means(columns []column) string {
	row := fmt.Sprintf("%-*s", tableName, "mean")
	for _, c := range columns {
		row += fmt.Sprintf("%*s", tableCell, unit.Format(c.times.Mean(), unit.Nanoseconds))
	}
	return row
}

// series draws answers, and failures where there were any, over time.
func (s *summary) series() []string {
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
		return nil
	}
	width := max(10, s.terminal.Width-labelWidth-30)
	rows := []string{s.row("answers", spark(answered, width))}
	if c := s.res.Counts; c.Failed()+c.Dropped > 0 {
		rows = append(rows, s.row("failures", spark(failed, width)))
	}
	return rows
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
	why := fmt.Sprintf("%s of %s busy", unit.Format(r.Busy(), unit.Share), cli.Count(uint64(r.Threads), "thread"))
	if s.open && r.Late.Count() > 0 {
		why += ", late " + high(r.Late)
	}
	if r.Unread.Count() > 0 {
		why += ", answers read late " + high(r.Unread) + " (not in the table)"
	}
	if r.Bound {
		return "(nearly) the bottleneck: " + why
	}
	return "not the bottleneck: " + why
}

// high is the p99, or of few times the highest.
func high(times *hist.Hist) string {
	if times.Count() < hist.Needed(.99) {
		return "max " + nanoseconds(times.Max())
	}
	return "p99 " + nanoseconds(times.Quantile(.99))
}
