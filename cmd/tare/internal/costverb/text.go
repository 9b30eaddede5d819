package costverb

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// bill is a capture with who spent what in it.
type bill struct {
	*capture.Capture
	total *cost.Bill
	byURL bool // the service was named by its URL
}

func newBill(c *capture.Capture) *bill { return &bill{Capture: c, total: c.Bill()} }

// text shows the owners that matter, and what the rest comes to.
func (b *bill) text(t *cli.Terminal) error {
	d := b.total
	w := bufio.NewWriter(t.Out)
	fmt.Fprintf(w, "cost of %s", doc.Printable(d.Source))
	if d.Seconds > 0 {
		fmt.Fprintf(w, " over %s s", tenths(d.Seconds))
	}
	if d.Requests > 0 {
		fmt.Fprintf(w, ", %s requests", unit.Number(d.Requests))
	}
	fmt.Fprintf(w, "\nCPU per %s %s", d.Per, unit.Format(d.CPU, unit.Nanoseconds))
	if b.Allocs != nil {
		fmt.Fprintf(w, ", %s in %s allocations", unit.Format(d.Bytes, unit.Bytes), unit.Number(d.Objects))
	}
	fmt.Fprint(w, "\n\n")
	if b.CPU != nil && d.CPU == 0 {
		fmt.Fprintf(w, "The service was idle: nothing was seen to run. --load URL gives it something to do.\n")
	} else {
		b.owners(w, t.Width)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(w, "warning: %s\n", doc.Printable(warning))
	}
	return w.Flush()
}

// tenths is how long was looked, to a tenth where that is no whole second.
func tenths(s float64) string {
	if math.Abs(s-math.Round(s)) < 0.05 {
		return strconv.FormatFloat(s, 'f', 0, 64)
	}
	return strconv.FormatFloat(s, 'f', 1, 64)
}

// owners shows the owners, and what they rest on.
func (b *bill) owners(w io.Writer, width int) {
	d := b.total
	items, others, rest := d.Weighty()
	ownerTable{d.Per, b.Allocs != nil, width}.print(w, items)
	if others > 0 {
		fmt.Fprintf(w, "and %d more, %s in all\n", others, unit.Format(rest, unit.Nanoseconds))
	}
	if b.Window.Requests == 0 {
		fmt.Fprintf(w, "\nNobody counted the requests, so costs are per %s: --load URL or --requests N\nmake them per request.\n", d.Per)
	}
	if b.Counted != nil {
		fmt.Fprintf(w, "\n%s\n", countText(b.Counted, b.Window))
	}
	if b.byURL && b.PID != 0 {
		fmt.Fprintf(w, "\ntare cost --pid %d looks at the same service from outside, into the kernel, and\ncounts its requests.\n", b.PID)
	}
	if d.Sampled != nil {
		fmt.Fprintf(w, "\n%s\n", samplingText(d.Sampled))
	}
}

// ownerTable is how owners are shown.
type ownerTable struct {
	per    string
	allocs bool // with the columns of memory
	width  int  // of the terminal
}

// print prints two lines an owner, figures and name, then what it is, where it is
// written and what it mostly did; and others if it waited or was watched by the
// clock.
func (o ownerTable) print(w io.Writer, rows []cost.Item) {
	head := []string{"self", "±", "total"}
	if o.allocs {
		head = append(head, "gc", "bytes", "allocs")
	}
	cells := [][]string{head}
	for _, it := range rows {
		row := []string{unit.Some(it.Self, unit.Nanoseconds), unit.Some(it.Margin, unit.Nanoseconds), unit.Some(it.Total, unit.Nanoseconds)}
		if o.allocs {
			row = append(row, unit.Some(it.GC, unit.Nanoseconds), unit.Some(it.Bytes, unit.Bytes), unit.Some(it.Objects, unit.Count))
		}
		cells = append(cells, row)
	}
	widths := make([]int, len(head))
	for i := range head {
		for _, row := range cells {
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	for i, row := range cells {
		var figures strings.Builder
		for j, c := range row {
			fmt.Fprintf(&figures, "%*s  ", widths[j], c)
		}
		if i == 0 {
			cli.PrintNamed(w, figures.String(), "owner", o.width)
			continue
		}
		cli.PrintNamed(w, figures.String(), rows[i-1].Owner, o.width)
		fmt.Fprintf(w, "    %s\n", doc.Printable(cli.Fit(describe(&rows[i-1]), o.width-4)))
		if rows[i-1].Wait > 0 {
			fmt.Fprintf(w, "    %s\n", cli.Fit(waits(&rows[i-1]), o.width-4))
		}
		if rows[i-1].Wall != nil {
			fmt.Fprintf(w, "    %s\n", cli.Fit(wallText(&rows[i-1], o.per), o.width-4))
		}
	}
}

// describe says what an owner is, where it is written and what it mostly did.
func describe(it *cost.Item) string {
	parts := []string{it.Kind}
	if it.Where != "" {
		parts = append(parts, it.Where)
	}
	for _, c := range it.Causes[:min(3, len(it.Causes))] {
		if share := c.Value / it.Self; share >= 0.05 && it.Self > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", c.Cause, 100*share))
		}
	}
	return strings.Join(parts, ", ")
}

// waits says what an owner waited for.
func waits(it *cost.Item) string {
	var reasons []string
	for _, w := range it.Waits {
		if w.Value >= it.Wait/100 {
			reasons = append(reasons, w.Reason+" "+unit.Some(w.Value, unit.Nanoseconds))
		}
	}
	return "waits " + unit.Some(it.Wait, unit.Nanoseconds) + ": " + strings.Join(reasons, ", ")
}

// mostLate is how late a clock may tick, in nanoseconds, without a word of it: a
// processor's own timer takes one or two microseconds.
const mostLate = 5_000

// samplingText says how the CPU was sampled.
func samplingText(s *cost.Sampled) string {
	text := fmt.Sprintf("%s stacks at %d Hz, by %s.", unit.Number(float64(s.Stacks)), s.Hz, s.Clock)
	switch {
	case s.Covered >= 1:
		text += fmt.Sprintf("\nBy themselves they stand for %.1f %% of the CPU that the kernel counted, to which\nthe table is scaled.", 100*s.Covered)
	case s.Covered > 0:
		text += fmt.Sprintf("\nThey stand for %.1f %% of the CPU that the kernel counted; the rest,\nin which it switched threads, is charged to where they stopped running.", 100*s.Covered)
	}
	text += fmt.Sprintf("\nThe program in the kernel that takes them ran for %s of it.", unit.Format(s.Cost, unit.Share))
	if s.Late > mostLate {
		text += fmt.Sprintf("\nThe timer rings %s late here, sooner where the kernel wakes a thread\nelsewhere: what runs that long after it is charged with less, the kernel with\nmore.", unit.Format(float64(s.Late), unit.Nanoseconds))
	}
	return text
}

// countText says how requests were counted.
func countText(c *probe.Counted, w cost.Window) string {
	return fmt.Sprintf("%s requests were counted in %d windows, %s in all; by the CPU used\nthey stand for %s ± %s.",
		unit.Number(c.Requests), c.Windows, unit.Format(float64(c.During), unit.Nanoseconds),
		unit.Number(w.Requests), unit.Format(w.Margin/w.Requests, unit.Share))
}

// wallText says what the clock saw of an owner's calls: how many, what one takes
// by itself, and with the owners inside it.
func wallText(it *cost.Item, per string) string {
	w := it.Wall
	return fmt.Sprintf("clock: %s a %s, p50 %s, p99 %s, mean %s, total %s",
		unit.Number(w.Calls), per, callTime(w.P50), callTime(w.P99), callTime(w.Self), callTime(w.Total))
}

// leastCall is the shortest time of a call that is told, in nanoseconds: a tenth of
// what a hit costs, which was taken off it.
const leastCall = 100

func callTime(ns float64) string {
	if ns < leastCall {
		return "below " + unit.Format(leastCall, unit.Nanoseconds)
	}
	return unit.Format(ns, unit.Nanoseconds)
}
