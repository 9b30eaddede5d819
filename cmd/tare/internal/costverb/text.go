package costverb

import (
	"fmt"
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

// blocks show the owners that matter, or all, and what they rest on.
func (b *bill) blocks(all bool) []doc.Block {
	d := b.total
	title := "cost of " + d.Source
	if d.Seconds > 0 {
		title += " over " + tenths(d.Seconds) + " s"
	}
	if d.Requests > 0 {
		title += ", " + unit.Number(d.Requests) + " requests"
	}
	sum := fmt.Sprintf("CPU per %s %s", d.Per, unit.Format(d.CPU, unit.Nanoseconds))
	idle := b.CPU != nil && d.CPU == 0
	if b.Allocs != nil && !idle {
		sum += fmt.Sprintf(", %s in %s allocations", unit.Format(d.Bytes, unit.Bytes), unit.Number(d.Objects))
	}
	out := []doc.Block{doc.Heading{Level: 1, Text: title}, doc.Paragraphf("%s", sum)}
	if idle {
		text := "The service was idle: no function was seen to run."
		if b.Load == nil {
			text += " --load URL sends requests to it."
		}
		out = append(out, doc.Paragraphf("%s", text))
	} else {
		out = append(out, b.ownerBlocks(all)...)
	}
	return append(out, cli.Warnings(d.Warnings)...)
}

// tenths is a number of seconds, to a tenth unless it is a whole one.
func tenths(s float64) string {
	if math.Abs(s-math.Round(s)) < 0.05 {
		return strconv.FormatFloat(s, 'f', 0, 64)
	}
	return strconv.FormatFloat(s, 'f', 1, 64)
}

// ownerBlocks show the owners, and what their costs rest on.
func (b *bill) ownerBlocks(all bool) []doc.Block {
	d := b.total
	items, others, rest := d.Weighty()
	if all {
		items, others = d.Items, 0
	}
	out := []doc.Block{ownerTable(items, d.Per, b.Allocs != nil)}
	if others > 0 {
		out = append(out, doc.Note(fmt.Sprintf("%s below 0.5 %%, %s together: --all shows them", unit.Plural(others, "more owner"), unit.Format(rest, unit.Nanoseconds))))
	}
	add := func(format string, args ...any) { out = append(out, doc.Paragraphf(format, args...)) }
	if b.Window.Requests == 0 {
		add("The requests were not counted, so costs are per %s. --load URL or --requests N makes them per request.", d.Per)
	}
	if b.Counted != nil {
		add("%s", countText(b.Counted, b.Window))
	}
	if b.byURL && b.PID != 0 {
		add("tare cost --pid %d measures the same service from outside: with kernel functions, and with its requests counted.", b.PID)
	}
	if d.Sampled != nil {
		add("%s", samplingText(d.Sampled))
	}
	return out
}

// ownerTable has the figures of owners, and below each what it is, where it is written
// and what it mostly did; and what it waited for and the clock saw, if that is known.
func ownerTable(items []cost.Item, per string, allocs bool) doc.Table {
	t := doc.Table{Caption: "owners", Unlabelled: true}
	heads := []string{"self", "±", "total"}
	if allocs {
		heads = append(heads, "gc", "bytes", "allocs")
	}
	for _, head := range heads {
		t.Columns = append(t.Columns, doc.Column{Head: head, Right: true})
	}
	t.Columns = append(t.Columns, doc.Column{Head: "owner", Key: true, Shrink: true})
	for i := range items {
		it := &items[i]
		cells := doc.Cells(unit.Some(it.Self, unit.Nanoseconds), unit.Some(it.Margin, unit.Nanoseconds), unit.Some(it.Total, unit.Nanoseconds))
		if allocs {
			cells = append(cells, doc.Cells(unit.Some(it.GC, unit.Nanoseconds), unit.Some(it.Bytes, unit.Bytes), unit.Some(it.Objects, unit.Count))...)
		}
		notes := []string{describe(it)}
		if it.Wait > 0 {
			notes = append(notes, waits(it))
		}
		if it.Wall != nil {
			notes = append(notes, wallText(it, per))
		}
		t.Rows = append(t.Rows, doc.Row{Cells: append(cells, doc.Cell{Text: it.Owner, Notes: notes})})
	}
	return t
}

// describe says what an owner is, where it is written and what it mostly did.
func describe(it *cost.Item) string {
	parts := []string{it.Kind}
	if it.Package == "net/http/pprof" {
		parts = append(parts, "for profiles, tare's own included")
	}
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

// mostLate is how late a clock may tick, in nanoseconds, before tare mentions it: a
// processor's own timer takes one or two microseconds.
const mostLate = 5_000

// samplingText says how the CPU was sampled.
func samplingText(s *cost.Sampled) string {
	text := fmt.Sprintf("%s stacks at %d Hz, by %s.", unit.Number(float64(s.Stacks)), s.Hz, s.Clock)
	switch {
	case s.Covered >= 1:
		text += fmt.Sprintf(" They stand for %.1f %% of the CPU that the kernel counted; the table is scaled to that.", 100*s.Covered)
	case s.Covered > 0:
		text += fmt.Sprintf(" They stand for %.1f %% of the CPU that the kernel counted. The kernel spent the rest switching threads; it is charged to where they stopped running.", 100*s.Covered)
	}
	text += fmt.Sprintf(" Taking them cost %s of that CPU, interrupts excluded.", unit.Format(s.Cost, unit.Share))
	if s.Late > mostLate {
		text += fmt.Sprintf(" The timer fires %s late here: code that runs in that time is charged too little, and the kernel too much.", unit.Format(float64(s.Late), unit.Nanoseconds))
	}
	return text
}

// countText says how requests were counted.
func countText(c *probe.Counted, w cost.Window) string {
	return fmt.Sprintf("%s requests were counted in %d windows, %s together. By the CPU used, that makes %s ± %s in total.",
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

// leastCall is the shortest time of a call that is shown, in nanoseconds: a tenth of
// what a hit costs, which was taken off it.
const leastCall = 100

func callTime(ns float64) string {
	if ns < leastCall {
		return "below " + unit.Format(leastCall, unit.Nanoseconds)
	}
	return unit.Format(ns, unit.Nanoseconds)
}
