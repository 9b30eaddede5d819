package main

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
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/stats/unit"
)

// bill is who spent what, in one window.
type bill struct {
	source      string
	cpu, allocs *pprof.Profile     // nil = not to be had
	waits       *exectrace.Trace   // nil = not asked for, or not to be had
	traced      float64            // requests that it saw, by the load; 0 = as many as before
	local       int                // the service's process, if it is known and was not sampled from outside
	outside     *cost.Sampled      // nil = not sampled from outside
	marked      *probe.Measurement // nil = calls were not watched
	unmarked    error              // why, if they were to be
	counted     *probe.Counted     // nil = requests were not counted from outside
	window      cost.Window
	warnings    []error
	total       *cost.Bill // once all is there
}

// stacks returns a profile's stacks, none of none.
func stacks(p *pprof.Profile) []cost.Stack {
	if p == nil {
		return nil
	}
	return p.Stacks
}

// sum charges every stack.
func (b *bill) sum() *cost.Bill {
	d := cost.NewBill(stacks(b.cpu), stacks(b.allocs), b.window)
	if b.waits != nil {
		w := b.window.Over(b.waits.Duration)
		if b.traced > 0 {
			w.Requests = b.traced
		}
		d.AddWaits(b.waits.Waits, w)
	}
	if b.marked != nil {
		addMarks(d, b.marked)
	}
	d.Source, d.Sampled = b.source, b.outside
	d.Warnings = append(d.Warnings, cli.Texts(b.warnings)...)
	return d
}

// page writes the bill as a page.
func (b *bill) page(w io.Writer) error {
	return page.Write(w, b.total, stacks(b.cpu))
}

// text shows the owners that matter, and what the rest comes to.
func (b *bill) text(t *cli.Terminal) error {
	d := b.total
	w := bufio.NewWriter(t.Out)
	fmt.Fprintf(w, "cost of %s", report.Printable(d.Source))
	if d.Seconds > 0 {
		fmt.Fprintf(w, " over %s s", tenths(d.Seconds))
	}
	if d.Requests > 0 {
		fmt.Fprintf(w, ", %s requests", unit.Number(d.Requests))
	}
	fmt.Fprintf(w, "\nCPU per %s %s", d.Per, unit.Format(d.CPU, unit.Nanoseconds))
	if b.allocs != nil {
		fmt.Fprintf(w, ", %s in %s allocations", unit.Format(d.Bytes, unit.Bytes), unit.Number(d.Objects))
	}
	fmt.Fprint(w, "\n\n")
	if b.cpu != nil && d.CPU == 0 {
		fmt.Fprintf(w, "The service was idle: nothing was seen to run. --load URL gives it something to do.\n")
	} else {
		b.owners(w, t.Width)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(w, "warning: %s\n", report.Printable(warning))
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
	ownerTable{d.Per, b.allocs != nil, width}.print(w, items)
	if others > 0 {
		fmt.Fprintf(w, "and %d more, %s in all\n", others, unit.Format(rest, unit.Nanoseconds))
	}
	if b.window.Requests == 0 {
		fmt.Fprintf(w, "\nNobody counted the requests, so costs are per %s: --load URL or --requests N\nmake them per request.\n", d.Per)
	}
	if b.counted != nil {
		fmt.Fprintf(w, "\n%s\n", countText(b.counted, b.window))
	}
	if b.local != 0 {
		fmt.Fprintf(w, "\ntare cost --pid %d looks at the same service from outside, into the kernel, and\ncounts its requests.\n", b.local)
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
		fmt.Fprintf(w, "    %s\n", report.Printable(cli.Fit(describe(&rows[i-1]), o.width-4)))
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

// fold writes the stacks of the CPU profile as text.
func (b *bill) fold(w io.Writer) error { return foldStacks(w, b.cpu.Stacks) }
