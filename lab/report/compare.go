package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/across"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Compare is a page of how the arms that two runs share changed from the first to the
// second, each against the control that both ran. The primary metric, and metrics in
// which an arm changed, have tables; the others are named, and so is what only one run
// has. Without a shared control it returns the error of [across.Between], which says
// why.
func Compare(first, second *verdict.Analysis) (doc.Page, error) {
	all, err := across.Between(first, second)
	if err != nil {
		return doc.Page{}, err
	}
	lacks := across.FindUncompared(first, second, all)
	a, b := &first.Manifest, &second.Manifest
	var p doc.Page
	p.Add(doc.Heading{Level: 1, Text: fmt.Sprintf("%s against %s, through the control %s that both ran (build ID %s)",
		b.ID, a.ID, a.Study.Control, a.Programs[a.Study.Control].BuildID)},
		doc.Note(fmt.Sprintf("Effects are against the control. Change is how much the second run's effect exceeds the first's: their ratios to the control divided, less 1, or their differences subtracted. It has its %s; "+
			"a change counts from the wider of the two runs' bands on. No correction is made for multiple comparisons.", all[0].Called())))
	var rest doc.Terms
	usual := all[0].Alpha
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Workload == all[0].Workload && all[n].Metric.Name == all[0].Metric.Name {
			n++
		}
		if all[0].Primary || slices.ContainsFunc(all[:n], changed) {
			p.Add(acrossBlocks(all[:n], usual)...)
		} else {
			rest = addName(rest, all[0].Workload, all[0].Metric.Name)
		}
		all = all[n:]
	}
	if len(rest.Items) > 0 {
		p.Add(doc.Heading{Level: 2, Text: "Unchanged or undecided for every arm"}, rest)
	}
	if len(lacks) > 0 {
		p.Add(doc.Heading{Level: 2, Text: "Not compared: one run does not have it, or is 0 where the other has a ratio"}, lacking(lacks))
	}
	if text := differing(a, b); text != "" {
		p.Add(doc.Warning{Text: doc.Plain("The machine was not the same throughout: " + text + ".")})
	}
	return p, nil
}

// addName adds a name to those of a workload, which come one after the other.
func addName(t doc.Terms, workload, name string) doc.Terms {
	if last := len(t.Items) - 1; last >= 0 && t.Items[last].Name == workload {
		t.Items[last].Text[0].Text += ", " + name
		return t
	}
	t.Items = append(t.Items, doc.Term{Name: workload, Text: doc.Plain(name)})
	return t
}

// lacking names what is not compared, by workload.
func lacking(all []across.Uncompared) doc.Terms {
	var t doc.Terms
	for _, l := range all {
		name := l.Metric + " of " + l.Arm
		switch {
		case l.Metric == "" && l.Arm == "":
			name = "all of it"
		case l.Metric == "":
			name = "arm " + l.Arm
		case l.Arm == "":
			name = l.Metric
		}
		t = addName(t, l.Workload, name)
	}
	return t
}

func changed(x across.Change) bool {
	return x.Effect.Verdict == stats.Faster || x.Effect.Verdict == stats.Slower
}

// acrossBlocks are the table of one metric in one workload, with the level of its
// intervals where it is not the usual one.
func acrossBlocks(all []across.Change, usual float64) []doc.Block {
	head := all[0]
	title := head.Workload + ", " + head.Metric.Title
	if head.Primary {
		title += " (primary)"
	}
	interval := "interval"
	if head.Alpha != usual {
		interval = head.Called()
	}
	t := doc.Table{Caption: title, Unlabelled: true, Columns: []doc.Column{{Head: "arm", Key: true, Shrink: true}, {Head: "first", Right: true}, {Head: "second", Right: true},
		{Head: "change", Right: true}, {Head: interval}, {Head: "n", Right: true}, {Head: "verdict"}}}
	for _, x := range all {
		t.Rows = append(t.Rows, doc.Row{Cells: append(doc.Cells(x.Arm, onScale(&x, x.First), onScale(&x, x.Second), x.Figure(), x.Range(), fmt.Sprint(x.Effect.N)), changeCell(&x))})
	}
	return []doc.Block{doc.Heading{Level: 2, Text: title}, t}
}

// onScale writes an effect of one run.
func onScale(x *across.Change, effect float64) string {
	if x.Scale == verdict.Ratio {
		return unit.Change(math.Expm1(effect))
	}
	return verdict.ShowSigned(x.Metric, effect)
}

// changeCell has the word for a change.
func changeCell(x *across.Change) doc.Cell {
	words := map[stats.Verdict]string{stats.Faster: "better", stats.Slower: "worse", stats.Equivalent: "unchanged", stats.Small: "small"}
	return doc.Cell{Text: cmp.Or(words[x.Effect.Verdict], "undecided"), Tone: toneOf(x.Effect.Verdict)}
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
