package traceverb

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/exectrace"
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

// text says what is different about slow requests, and shows the slowest.
func (s *story) text(t *cli.Terminal, c *Command) error {
	w := bufio.NewWriter(t.Out)
	fmt.Fprintf(w, "trace of %s over %s, %s requests", doc.Printable(s.Source), span(s.Duration), unit.Number(float64(s.Count)))
	if s.Cut > 0 {
		fmt.Fprintf(w, " and %s that it saw in part", unit.Number(float64(s.Cut)))
	}
	fmt.Fprintln(w)
	var quantiles []string
	for _, q := range s.Quantiles {
		if q.Q == 1 {
			quantiles = append(quantiles, "longest "+span(q.Duration))
			continue
		}
		quantiles = append(quantiles, unit.Quantile(q.Q)+" "+span(q.Duration))
	}
	fmt.Fprintln(w, strings.Join(quantiles, ", "))
	switch {
	case s.Slow.Count == 0 && s.Count+s.Cut > 0:
		fmt.Fprintf(w, "\nNothing was slow: no request took %s. The slowest:\n", span(s.SlowerThan))
		s.slowest(w, t.Width, 1)
	case s.Slow.Count > 0:
		s.difference(w, t.Width)
		if c.Top > 0 {
			fmt.Fprintln(w, "\nThe slowest:")
			s.slowest(w, t.Width, c.Top)
		}
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "warning: %s\n", doc.Printable(warning))
	}
	return w.Flush()
}

// span is a duration for people.
func span(d time.Duration) string { return unit.Format(float64(d), unit.Nanoseconds) }

// difference says what slow requests spent more time on than the others.
func (s *story) difference(w io.Writer, width int) {
	many := "requests"
	if s.Slow.Count == 1 {
		many = "request"
	}
	fmt.Fprintf(w, "\n%s %s took %s or longer", unit.Number(float64(s.Slow.Count)), many, span(s.SlowerThan))
	if s.Slow.Cut > 0 {
		fmt.Fprintf(w, ", of %s it is not known how much", unit.Number(float64(s.Slow.Cut)))
	}
	fmt.Fprintf(w, ".\n  slow, %s on average: %s\n", span(s.Slow.Mean()), shares(&s.Slow))
	excess := s.Slow.Mean() - s.Fast.Mean()
	if s.Fast.Count > 0 {
		fmt.Fprintf(w, "  others, %s on average: %s\n", span(s.Fast.Mean()), shares(&s.Fast))
	}
	if during := float64(s.Slow.Collector) / float64(s.Slow.Time); during >= 0.05 {
		fmt.Fprintf(w, "  the collector was at work for %.0f %% of the slow ones' time", 100*during)
		if s.Fast.Time > 0 {
			fmt.Fprintf(w, ", %.0f %% of the others'", 100*float64(s.Fast.Collector)/float64(s.Fast.Time))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n%10s %10s %6s  %s\n", "slow", "others", "excess", "cause, and whose it is")
	for _, d := range s.Differences() {
		if excess <= 0 || float64(d.Excess()) < 0.01*float64(excess) {
			break
		}
		part := 100 * float64(d.Excess()) / float64(excess)
		fmt.Fprintf(w, "%10s %10s %4.0f %%  %s\n", span(d.Slow), unit.Some(float64(d.Fast), unit.Nanoseconds), part, cli.Fit(doc.Printable(title(d.Cause)), width-30))
		fmt.Fprintf(w, "    %s\n", cli.Fit(doc.Printable(s.details(d)), width-4))
	}
	s.handlers(w)
}

// handlers says which handlers the slow requests were for, if there are several.
func (s *story) handlers(w io.Writer) {
	slow, all := reached(s.Slow.Handlers), reached(s.Slow.Handlers)
	for o, n := range reached(s.Fast.Handlers) {
		all[o] += n
	}
	if len(all) < 2 {
		return
	}
	fmt.Fprint(w, "\nBy handler, where it was seen:\n")
	for _, h := range s.Slow.Handlers {
		if n := slow[h.Owner]; n > 0 {
			fmt.Fprintf(w, "  %s: %s slow of %s\n", doc.Printable(h.Owner.Name), unit.Number(float64(n)), unit.Number(float64(all[h.Owner])))
		}
	}
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
func (s *story) slowest(w io.Writer, width, n int) {
	for i := range s.Slowest[:min(n, len(s.Slowest))] {
		r := &s.Slowest[i]
		head := fmt.Sprintf("%s at %s", span(r.Duration), span(r.Begin))
		switch {
		case r.Handler.Name == "":
		case r.Handler.Kind == "handler":
			head += ", " + r.Handler.Name
		default:
			head += ", seen no further in than " + r.Handler.Name
		}
		if r.Log != "" {
			head += ", " + r.Log
		}
		switch {
		case r.Begun && r.Unended:
			head += ", begun before the trace and not over at its end"
		case r.Begun:
			head += ", begun before the trace"
		case r.Unended:
			head += ", not over at the trace's end"
		}
		fmt.Fprintf(w, "\n%s\n", doc.Printable(cli.Fit(head, 3*width)))
		for _, p := range r.Stretches() {
			line := fmt.Sprintf("%10s %10s  %s", span(p.Begin), span(p.Duration), title(p.Cause))
			if p.Merged > 0 {
				line = fmt.Sprintf("%10s %10s  %d short ones, mostly %s", span(p.Begin), span(p.Duration), p.Merged, p.State)
			} else if p.Released != nil {
				line += ", " + ended(p.Cause)
			} else if p.Elsewhere {
				line += ", on a goroutine of its own"
			}
			fmt.Fprintln(w, doc.Printable(cli.Fit(line, width)))
		}
	}
}
