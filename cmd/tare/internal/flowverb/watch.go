package flowverb

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/flow"
	"github.com/tarehq/tare/stats/unit"
)

// watcher tells of a run under way: a line redrawn on a terminal, a line a second elsewhere.
type watcher struct {
	show   *cli.Progress
	live   bool
	quiet  bool
	reach  cli.Reach
	second float64 // of the last line; not a number before
}

// progress takes a snapshot.
func (w *watcher) progress(s flow.Snapshot) {
	w.reach.Check(s.Counts)
	second := math.Floor(s.Elapsed.Seconds())
	due := second != w.second
	w.second = second
	switch {
	case w.quiet:
	case w.live:
		w.show.Draw(line(s))
	case due:
		w.show.Line(line(s))
	}
}

// line is a snapshot in one line.
func line(s flow.Snapshot) string {
	when := fmt.Sprintf("%s of %v", seconds(s.Elapsed), s.Total)
	switch {
	case s.Elapsed < 0:
		when = "warming up, " + seconds(-s.Elapsed) + " left"
	case s.Elapsed > s.Total:
		when = "following users to their end"
	}
	parts := []string{when, fmt.Sprintf("%s, %s thinking", unit.Plural(s.Users, "user"), number(float64(s.Thinking))), unit.Format(s.Rate, unit.PerSecond)}
	if s.P50 > 0 {
		parts = append(parts, "p50 "+nanoseconds(int64(s.P50)), "p99 "+nanoseconds(int64(s.P99)))
	}
	if s.Sessions.Failed > 0 {
		parts = append(parts, unit.Plural(s.Sessions.Failed, "session")+" failed")
	}
	return strings.Join(append(parts, cmp.Or(failures(s.Counts), "no errors")), "  ")
}

// failures names what went wrong by kind; "" is nothing.
func failures(c load.Counts) string {
	var parts []string
	for _, k := range []struct {
		n    uint64
		name string
	}{
		{c.Unverified, "wrong answers"}, {c.Refused, "refused"}, {c.Reset, "reset"}, {c.Timeout, "timed out"},
		{c.Short, "cut short"}, {c.Malformed, "malformed"}, {c.Dropped, "not sent"},
	} {
		if k.n > 0 {
			parts = append(parts, number(float64(k.n))+" "+k.name)
		}
	}
	return strings.Join(parts, ", ")
}

// seconds is a length of time for people, short ones with a decimal.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

func nanoseconds(ns int64) string { return unit.Format(float64(ns), unit.Nanoseconds) }

func number(n float64) string { return unit.Format(n, unit.Count) }
