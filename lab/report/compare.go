package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/across"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Compare writes how the arms that two runs share changed from the first to
// the second, each against the control that both ran: the primary metric and
// all metrics in which an arm changed, in full; the others by name, and what one
// run tells and the other does not. Without a
// shared control it writes nothing and returns the error of [across.Between],
// which says why not.
func Compare(w io.Writer, first, second *verdict.Analysis, o TextOptions) error {
	all, err := across.Between(first, second)
	if err != nil {
		return err
	}
	lacks := across.Lacking(first, second, all)
	p := newPage(w, o)
	a, b := &first.Manifest, &second.Manifest
	p.wrapIn(bold, "", fmt.Sprintf("%s against %s, through the control %s that both ran (build ID %s)",
		b.ID, a.ID, a.Study.Control, a.Programs[a.Study.Control].BuildID))
	p.wrapIn(dim, "", fmt.Sprintf("Effects are against the control. Change is the second less the first, with its %s interval; "+
		"a change counts from the wider of the two runs' bands on. Nothing is corrected for being many.", verdict.Confidence(all[0].Alpha)))
	var rest []across.Change
	usual := all[0].Alpha
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Workload == all[0].Workload && all[n].Metric.Name == all[0].Metric.Name {
			n++
		}
		if all[0].Primary || slices.ContainsFunc(all[:n], changed) {
			p.across(all[:n], usual)
		} else {
			rest = append(rest, all[0])
		}
		all = all[n:]
	}
	p.unchanged(rest)
	p.lacking(lacks)
	if text := differing(a, b); text != "" {
		p.line("")
		p.wrapIn(yellow, "", "The machine was not the same throughout: "+text+".")
	}
	return p.err
}

// unchanged names metrics, by workload.
func (p *page) unchanged(metrics []across.Change) {
	if len(metrics) == 0 {
		return
	}
	p.heading("Unchanged or undecided for every arm")
	var names []string
	for i, x := range metrics {
		names = append(names, x.Metric.Name)
		if i+1 == len(metrics) || metrics[i+1].Workload != x.Workload {
			p.wrap("  "+x.Workload+"  ", strings.Join(names, ", "))
			names = nil
		}
	}
}

// lacking names what is not compared, by workload.
func (p *page) lacking(all []across.Lack) {
	if len(all) == 0 {
		return
	}
	p.heading("Not compared: one run does not tell it, or is 0 where the other has a ratio")
	var texts []string
	for i, l := range all {
		switch {
		case l.Metric == "" && l.Arm == "":
			texts = append(texts, "all of it")
		case l.Metric == "":
			texts = append(texts, "arm "+l.Arm)
		case l.Arm == "":
			texts = append(texts, l.Metric)
		default:
			texts = append(texts, l.Metric+" of "+l.Arm)
		}
		if i+1 == len(all) || all[i+1].Workload != l.Workload {
			p.wrap("  "+l.Workload+"  ", strings.Join(texts, ", "))
			texts = nil
		}
	}
}

func changed(x across.Change) bool {
	return x.Effect.Verdict == stats.Faster || x.Effect.Verdict == stats.Slower
}

// across writes the table of one metric in one workload, with the level of its intervals
// where it is not the usual one.
func (p *page) across(all []across.Change, usual float64) {
	head := all[0]
	title := head.Workload + ", " + head.Metric.Title
	if head.Primary {
		title += " (primary)"
	}
	p.heading(title)
	interval := "interval"
	if head.Alpha != usual {
		interval = verdict.Confidence(head.Alpha) + " interval"
	}
	cols := []column{{head: "arm", left: true, most: p.width / 5}, {head: "first"}, {head: "second"}, {head: "change"},
		{head: interval, left: true}, {head: "n"}, {head: "verdict", left: true}}
	var rows [][]item
	for _, x := range all {
		rows = append(rows, []item{{text: x.Arm}, {text: onScale(&x, x.First)}, {text: onScale(&x, x.Second)},
			{text: x.Figure()}, {text: x.Range()}, {text: fmt.Sprint(x.Effect.N)}, changeWord(&x)})
	}
	p.table(cols, rows)
}

// onScale writes an effect of one run.
func onScale(x *across.Change, effect float64) string {
	if x.Scale == verdict.Ratio {
		return unit.Change(math.Expm1(effect))
	}
	return verdict.ShowSigned(x.Metric, effect)
}

func changeWord(x *across.Change) item {
	switch x.Effect.Verdict {
	case stats.Faster:
		return item{"better", green}
	case stats.Slower:
		return item{"worse", red}
	case stats.Equivalent:
		return item{"unchanged", dim}
	case stats.Small:
		return item{"small", dim}
	}
	return item{"undecided", dim}
}

// momentary are the facts of the environment that no two looks at a machine agree on.
var momentary = []string{"overheating", "steal", "cpu in use", "busy processes", "load average", "cpu pressure", "memory pressure",
	"io pressure", "memory", "swap", "time-wait", "connection tracking", "timer"}

// differing names the facts of the environment that differ between two runs; of the
// momentary ones those that disturbed one run alone.
func differing(a, b *record.Manifest) string {
	then := map[string]record.Fact{}
	for _, f := range a.Env {
		then[f.Name] = f
	}
	var names []string
	for _, f := range b.Env {
		old, ok := then[f.Name]
		if !ok || old.Value == f.Value {
			continue
		}
		if slices.Contains(momentary, f.Name) && (old.Verdict == "disturbs") == (f.Verdict == "disturbs") {
			continue
		}
		names = append(names, fmt.Sprintf("%s %s, then %s", f.Name, old.Value, f.Value))
	}
	return strings.Join(names, "; ")
}
