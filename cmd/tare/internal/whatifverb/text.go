package whatifverb

import (
	"bufio"
	"fmt"
	"io"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/whatif"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// printText shows what a microsecond costs, and what that comes from.
func printText(t *cli.Terminal, w *whatif.Result) error {
	out := bufio.NewWriter(t.Out)
	ns := func(v float64) string { return unit.Format(v, unit.Nanoseconds) }
	fmt.Fprintf(out, "what if %s", doc.Printable(w.Owner))
	if w.Where != "" {
		fmt.Fprintf(out, " (%s)", doc.Printable(w.Where))
	}
	fmt.Fprintf(out, " took %s longer? process %d, %d pairs of windows, %s requests\n\n", ns(w.Slow), w.PID, w.Pairs, unit.Number(w.Requests))
	fmt.Fprintf(out, "  %-22s %12s %12s   %s\n", "", "as it is", "slowed down", "effect, 95 % interval")
	fmt.Fprintf(out, "  %-22s %12s %12s   %s, %s\n", "CPU per request", ns(w.Off.CPU), ns(w.On.CPU), unit.Signed(w.Effect.Value, unit.Nanoseconds), w.Effect.Between(ns))
	fmt.Fprintf(out, "  %-22s %12s %12s   %s, %s\n\n", "requests a second", unit.Number(w.Off.Rate), unit.Number(w.On.Rate), unit.Change(w.Rate.Value), w.Rate.Between(unit.Change))
	fmt.Fprintf(out, "It was called %s times a request, and slowed down by %s a request in all.\n", unit.Number(w.Calls), ns(w.Taken))
	plain := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	fmt.Fprintf(out, "1 µs in it costs a request %s µs of CPU, %s.\n", plain(w.PerTaken.Value), w.PerTaken.Between(plain))
	if w.PerTaken.Undecided() {
		fmt.Fprintf(out, "That is not distinguishable from chance: use a longer --for or a quieter machine.\n")
	}
	printOwnTime(out, w)
	if w.Layers != nil {
		printLayers(out, w.Layers)
	}
	for _, warning := range w.Warnings {
		fmt.Fprintf(out, "warning: %s\n", doc.Printable(warning))
	}
	return out.Flush()
}

// printOwnTime shows what the owner itself takes, and what removing it would save.
func printOwnTime(out io.Writer, w *whatif.Result) {
	ns := func(v float64) string { return unit.Format(v, unit.Nanoseconds) }
	switch {
	case w.Own.CPU > 0:
		fmt.Fprintf(out, "It takes %s ± %s of CPU a request itself", ns(w.Own.CPU), ns(w.Own.Margin))
	case w.Own.P50 > 0:
		fmt.Fprintf(out, "It takes %s of a request itself by the clock, median (mean %s),\nwaiting included", ns(w.Own.P50*w.Calls), ns(w.Own.Mean*w.Calls))
	default:
		return
	}
	if w.Saved != nil {
		fmt.Fprintf(out, ": without it one would cost about\n%s less, %s.\n", ns(w.Saved.Value), w.Saved.Between(ns))
	} else {
		fmt.Fprintf(out, ".\nThat does not show what removing it would save.\n")
	}
	if w.Own.P50 > 0 {
		fmt.Fprintf(out, "A call by the clock: p50 %s, p99 %s.\n", ns(w.Own.P50), ns(w.Own.P99))
	}
}

// printLayers shows the owners that spent more or less than chance explains.
func printLayers(out io.Writer, all []whatif.Layer) {
	ns := func(v float64) string { return unit.Format(v, unit.Nanoseconds) }
	fmt.Fprintf(out, "\nWhere the difference lies, CPU a request, by sampling:\n")
	const most = 8
	shown := 0
	for _, l := range all {
		if shown == most || !l.Differs() {
			continue
		}
		shown++
		margin := "–" // what was not sampled has none
		if l.Margin > 0 {
			margin = ns(l.Margin)
		}
		fmt.Fprintf(out, "  %10s ± %-9s %s\n", unit.Signed(l.Change, unit.Nanoseconds), margin, doc.Printable(l.Owner))
	}
	if shown == 0 {
		fmt.Fprintf(out, "  in nobody by more than chance explains: sample longer, by --layers\n")
	}
}
