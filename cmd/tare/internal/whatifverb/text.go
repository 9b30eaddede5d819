package whatifverb

import (
	"fmt"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/whatif"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

func ns(v float64) string { return unit.Format(v, unit.Nanoseconds) }

// resultPage shows what a microsecond costs, and what that comes from.
func resultPage(w *whatif.Result) doc.Page {
	owner := w.Owner
	if w.Where != "" {
		owner += " (" + w.Where + ")"
	}
	var p doc.Page
	add := func(format string, args ...any) { p.Add(doc.Paragraphf(format, args...)) }
	p.Add(doc.Heading{Level: 1, Text: fmt.Sprintf("what if %s took %s longer?", owner, ns(w.Slow))})
	add("process %d, %s of windows, %s requests", w.PID, unit.Plural(w.Pairs, "pair"), unit.Number(w.Requests))
	p.Add(doc.Table{
		Caption: "effect", Unlabelled: true,
		Columns: []doc.Column{{Key: true}, {Head: "as it is", Right: true}, {Head: "slowed down", Right: true}, {Head: "effect, 95 % interval"}},
		Rows: []doc.Row{
			{Cells: doc.Cells("CPU per request", ns(w.Off.CPU), ns(w.On.CPU), unit.Signed(w.Effect.Value, unit.Nanoseconds)+", "+w.Effect.Between(ns))},
			{Cells: doc.Cells("requests a second", unit.Number(w.Off.Rate), unit.Number(w.On.Rate), unit.Change(w.Rate.Value)+", "+w.Rate.Between(unit.Change))},
		},
	})
	times := "once"
	if calls := unit.Number(w.Calls); calls != "1" {
		times = calls + " times"
	}
	plain := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	text := fmt.Sprintf("The service calls it %s a request. The probe slows it down by %s a request. 1 µs in it costs a request %s µs of CPU, %s.",
		times, ns(w.Taken), plain(w.PerTaken.Value), w.PerTaken.Between(plain))
	if w.PerTaken.Undecided() {
		text += " That is not distinguishable from chance: use a longer --for or a quieter machine."
	}
	add("%s", text)
	if own := describeOwnTime(w); own != "" {
		add("%s", own)
	}
	if w.Layers != nil {
		p.Add(layerBlocks(w.Layers)...)
	}
	p.Add(cli.Warnings(w.Warnings)...)
	return p
}

// describeOwnTime says what the owner itself takes, and what removing it would save; ""
// if neither is known.
func describeOwnTime(w *whatif.Result) string {
	var text string
	switch {
	case w.Own.CPU > 0:
		text = fmt.Sprintf("It takes %s ± %s of CPU a request itself", ns(w.Own.CPU), ns(w.Own.Margin))
	case w.Own.P50 > 0:
		text = fmt.Sprintf("It takes %s of a request itself by the clock, median (mean %s), waiting included", ns(w.Own.P50*w.Calls), ns(w.Own.Mean*w.Calls))
	default:
		return ""
	}
	if w.Saved != nil {
		text += fmt.Sprintf(": without it one would cost about %s less, %s.", ns(w.Saved.Value), w.Saved.Between(ns))
	} else {
		text += ". That does not show what removing it would save."
	}
	if w.Own.P50 > 0 {
		text += fmt.Sprintf(" A call by the clock: p50 %s, p99 %s.", ns(w.Own.P50), ns(w.Own.P99))
	}
	return text
}

// layerBlocks show the owners that spent more or less than chance explains.
func layerBlocks(all []whatif.Layer) []doc.Block {
	t := doc.Table{
		Caption: "layers", Unlabelled: true,
		Columns: []doc.Column{{Head: "change", Right: true}, {Head: "±", Right: true}, {Head: "owner", Key: true, Shrink: true}},
	}
	const most = 8
	for _, l := range all {
		if len(t.Rows) < most && l.Differs() {
			t.Rows = append(t.Rows, doc.Row{Cells: doc.Cells(unit.Signed(l.Change, unit.Nanoseconds), unit.Some(l.Margin, unit.Nanoseconds), l.Owner)})
		}
	}
	head := doc.Heading{Level: 2, Text: "Where the difference is, CPU a request, by sampling"}
	if len(t.Rows) == 0 {
		return []doc.Block{head, doc.Paragraphf("No owner differs by more than chance explains: a longer --layers narrows that.")}
	}
	return []doc.Block{head, t}
}
