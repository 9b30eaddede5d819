package loadverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb/export"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb/journal"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// watcherOptions say what to watch and where to tell of it.
type watcherOptions struct {
	Title       string
	Requests    int64            // that end the run; 0: time does
	Open        bool             // open loop
	StatusAsked bool             // a status is asked for: others are errors, and only they
	Quiet       bool             // shows nothing
	Journal     *journal.Journal // nil: none
	Export      *export.Exporter // nil: none
	Patient     bool             // does not stop a run that reaches nobody
	Stop        func(cause error)
}

// watcher tells of runs under way: drawn on a terminal, a line a second
// elsewhere, and a line a second in the journal. It makes do with snapshots, so
// that watching costs the load nothing.
type watcher struct {
	t      *cli.Terminal
	o      watcherOptions
	live   *liveView // nil: not drawn
	reach  cli.Reach
	second float64 // of the last line; not a number before
}

// unreachable says why a run was ended before its time; nil when it was not.
func unreachable(ctx context.Context, res *load.Result) error {
	if !errors.Is(context.Cause(ctx), cli.ErrUnreachable) {
		return nil
	}
	for _, w := range res.Warnings { // that of the refusals wraps their cause
		if cause := errors.Unwrap(w); cause != nil {
			return fmt.Errorf("%w: %w", cli.ErrUnreachable, cause)
		}
	}
	return cli.ErrUnreachable
}

func newWatcher(t *cli.Terminal, o watcherOptions) *watcher {
	w := &watcher{t: t, o: o, reach: cli.Reach{Patient: o.Patient, Stop: o.Stop}, second: math.NaN()}
	if t.Live && !o.Quiet {
		w.live = newLiveView(t, o)
	}
	return w
}

// progress takes a snapshot.
func (w *watcher) progress(s load.Snapshot) {
	second := math.Floor(s.Elapsed.Seconds())
	due := second != w.second
	w.second = second
	w.reach.Check(s.Counts)
	w.o.Export.Note(s)
	if due {
		w.o.Journal.Note(s)
	}
	switch {
	case w.live != nil:
		w.live.show(newFrame(s, w.o))
	case due && !w.o.Quiet:
		fmt.Fprintln(w.t.Err, newFrame(s, w.o).line())
	}
}

// say shows a line that stays.
func (w *watcher) say(text string) {
	switch {
	case w.o.Quiet:
	case w.live != nil:
		w.live.say(text)
	default:
		fmt.Fprintln(w.t.Err, text)
	}
}

// ending gives the terminal back at once: a second Ctrl-C ends the process.
func (w *watcher) ending() {
	if w.live != nil {
		w.live.end()
	}
}

// restore gives the terminal back.
func (w *watcher) restore() {
	if w.live != nil {
		w.live.end()
		<-w.live.done
	}
}

// close gives the terminal back and ends the journal.
func (w *watcher) close() error {
	w.restore()
	w.o.Stop(nil)
	return errors.Join(w.o.Journal.Close(), w.o.Export.Close())
}

// frame is what is shown of a snapshot. It shares nothing with it.
type frame struct {
	elapsed, total time.Duration
	share          float64 // done, 0 to 1; negative when not known
	counts         load.Counts
	statusAsked    bool
	rate           float64
	flight         int
	label          string // of the times
	quantiles      []quantileValue
	bins           []bin
}

type quantileValue struct {
	name  string
	value int64 // ns
}

// newFrame copies what is shown of s.
func newFrame(s load.Snapshot, o watcherOptions) frame {
	f := frame{elapsed: s.Elapsed, total: s.Total, share: -1, counts: s.Counts, statusAsked: o.StatusAsked, rate: s.Rate, flight: s.Flight}
	times := s.Service
	f.label = "service"
	if o.Open {
		times, f.label = s.Response, "response"
	}
	for _, q := range tableQuantiles() {
		if times.Count() > 0 && times.Count() >= hist.Needed(q) {
			f.quantiles = append(f.quantiles, quantileValue{unit.Quantile(q), times.Quantile(q)})
		}
	}
	f.bins = bins(times, liveBins)
	if s.Total > 0 {
		f.share = min(1, max(0, s.Elapsed.Seconds()/s.Total.Seconds()))
	}
	if o.Requests > 0 && s.Elapsed >= 0 {
		f.share = max(f.share, min(1, float64(s.Counts.Scheduled)/float64(o.Requests)))
	}
	return f
}

// line is the frame in one line.
func (f frame) line() string {
	parts := []string{f.when(), unit.Format(f.rate, unit.PerSecond)}
	for _, q := range f.quantiles {
		if q.name == "p50" || q.name == "p99" || q.name == "max" {
			parts = append(parts, q.name+" "+nanoseconds(q.value))
		}
	}
	return strings.Join(append(parts, cmp.Or(failures(f.counts, f.statusAsked), "no errors")), "  ")
}

// when says how far the run is.
func (f frame) when() string {
	switch {
	case f.elapsed < 0:
		return "warming up, " + seconds(-f.elapsed) + " left"
	case f.total > 0:
		return seconds(f.elapsed) + " of " + seconds(f.total)
	default:
		return seconds(f.elapsed)
	}
}

// failures names the failures of c by kind; "" is none. Answers with an error status are
// none where a status is asked for: then the others are unverified.
func failures(c load.Counts, statusAsked bool) string {
	if statusAsked {
		c.Status = [6]uint64{}
	}
	var parts []string
	for _, k := range []struct {
		n    uint64
		name string
	}{
		{c.Status[4], "4xx"}, {c.Status[5], "5xx"}, {c.Refused, "refused"}, {c.Reset, "reset"}, {c.Timeout, "timed out"}, {c.Short, "cut short"},
		{c.Malformed, "malformed"}, {c.Unverified, "unverified"}, {c.Dropped, "dropped"},
	} {
		if k.n > 0 {
			parts = append(parts, unit.Format(float64(k.n), unit.Count)+" "+k.name)
		}
	}
	return strings.Join(parts, ", ")
}

func nanoseconds(ns int64) string { return unit.Format(float64(ns), unit.Nanoseconds) }

// liveBins is the number of rows of the drawn histogram.
const liveBins = 8

// bin is a row of a histogram.
type bin struct {
	upTo  int64   // ns
	share float64 // of all values, 0 to 1
}

// bins divides h into rows of equal ratio, from what nearly all values exceed
// to the highest.
func bins(h *hist.Hist, rows int) []bin {
	if h.Count() == 0 {
		return nil
	}
	low, high := float64(max(1, h.Quantile(.001))), float64(max(2, h.Max()))
	step := math.Pow(high/low, 1/float64(rows))
	all := make([]bin, rows)
	below := uint64(0)
	for i := range all {
		upTo := h.Max()
		if i < rows-1 {
			upTo = int64(low * math.Pow(step, float64(i+1)))
		}
		n := h.Count() - h.CountAbove(upTo)
		all[i] = bin{upTo, float64(n-below) / float64(h.Count())}
		below = n
	}
	return all
}
