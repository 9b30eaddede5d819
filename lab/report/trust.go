package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/tally"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// trustFold says why the figures can be trusted, and how far.
func trustFold(a *verdict.Analysis) doc.Fold {
	m := &a.Manifest
	f := doc.Fold{Summary: "How far to trust this", ID: "trust"}
	for _, w := range a.Warnings {
		f.Blocks = append(f.Blocks, doc.Warning{Text: doc.Plain(w.Error())})
	}
	facts := [][2]string{{"design", design(a)}, {"trials", trialCount(a.Trials)}}
	for _, i := range a.Trials.Invalid {
		facts = append(facts, [2]string{"excluded trials", fmt.Sprintf("%d of %s: %s", i.N, i.Arm, firstOf(i.N, i.Reason))})
	}
	for _, w := range a.Trials.Warning {
		facts = append(facts, [2]string{"trial warnings", fmt.Sprintf("%d: %s", w.N, firstOf(w.N, w.Text))})
	}
	facts = append(facts, [][2]string{{"noise floor", noise(a)}, {"generator", generator(a)}, {"host", host(a)}, {"pinning", pinning(m.Pinning)}, {"self-test", selfTest(m)}}...)
	for _, e := range m.Env {
		if e.Verdict == "disturbs" {
			facts = append(facts, [2]string{"machine", strings.TrimSuffix(fmt.Sprintf("%s %s disturbs: %s", e.Name, e.Value, e.Remedy), ": ")})
		}
	}
	for _, arm := range slices.Sorted(maps.Keys(m.LeftOut)) {
		facts = append(facts, [2]string{"excluded arms", arm + ": " + m.LeftOut[arm]})
	}
	f.Blocks = append(f.Blocks, termsOf(false, facts), doc.Heading{Level: 3, Text: "What the figures do not say"}, notSaid(a))
	if m.Study.Notes != "" {
		f.Blocks = append(f.Blocks, doc.Heading{Level: 3, Text: "Notes of the study"}, doc.Paragraph{Text: doc.Plain(m.Study.Notes)})
	}
	if len(m.Env) > 0 {
		f.Blocks = append(f.Blocks, doc.Fold{Summary: "The machine", Lookup: true, Blocks: []doc.Block{environment(m)}})
	}
	if len(m.Programs) > 0 {
		f.Blocks = append(f.Blocks, doc.Fold{Summary: "The programs", Lookup: true, Blocks: programs(m)})
	}
	return f
}

// notSaid are the bounds of what the run can say.
func notSaid(a *verdict.Analysis) doc.List {
	all := []string{
		"The figures hold for this machine, these builds and these workloads. Other machines give other figures, above all in absolute terms.",
		"“No different” means within the threshold, not identical. “Undecided” means that these blocks do not decide, not that there is no difference.",
	}
	if p := a.Manifest.Study.Primary; p.Metric != "" {
		title := p.Metric
		if m, ok := study.MetricNamed(p.Metric); ok {
			title = m.Title
		}
		all = append(all, fmt.Sprintf("Only %s in workload %s decides. All other comparisons are descriptive: each interval holds for itself, and among many some are wrong by chance.", title, p.Workload),
			"An effect is the middle of the differences within blocks, not the difference of the medians. On a noisy machine the two may differ, even in sign.")
	}
	if !a.Manifest.Pinning.Disjoint {
		all = append(all, "The load generator and the arms shared CPUs, so response times include their competition.")
	}
	return listOf(append(all, "A synthetic load is not production traffic: it says nothing about other mixes, larger bodies, slow clients or real upstreams."))
}

// environment is what was found of the machine.
func environment(m *record.Manifest) doc.Table {
	t := doc.Table{Caption: "The machine", Unlabelled: true, Columns: []doc.Column{{Head: "what", Key: true}, {Head: "value"}, {Head: "verdict"}, {Head: "remedy"}}}
	for _, f := range m.Env {
		verdict := doc.Cell{Text: f.Verdict}
		if f.Verdict == "disturbs" {
			verdict.Tone = doc.Bad
		}
		t.Rows = append(t.Rows, doc.Row{Cells: []doc.Cell{{Text: f.Name}, {Text: f.Value}, verdict, {Text: f.Remedy}}})
	}
	return t
}

// programs are what the arms ran, and the modules that they were built from.
func programs(m *record.Manifest) []doc.Block {
	t := doc.Table{Caption: "The programs", Unlabelled: true, Columns: []doc.Column{{Head: "arm", Key: true}, {Head: "program"}, {Head: "size", Right: true}, {Head: "Go"}, {Head: "build ID"}}}
	var modules doc.Terms
	for _, arm := range m.Study.Arms {
		p, ok := m.Programs[arm.Name]
		if !ok {
			continue
		}
		name := doc.Cell{Text: arm.Name}
		if arm.Title != "" {
			name.Notes = []string{arm.Title}
		}
		t.Rows = append(t.Rows, doc.Row{Cells: []doc.Cell{name, {Text: strings.TrimSpace(p.Path + " " + ShellLine(p.Args)), Code: true},
			{Text: unit.Some(float64(p.Size), unit.Bytes)}, {Text: p.Go}, {Text: p.BuildID, Code: true}}})
		var of []string
		for _, module := range slices.Sorted(maps.Keys(p.Modules)) {
			of = append(of, module+" "+p.Modules[module])
		}
		if len(of) > 0 {
			modules.Items = append(modules.Items, doc.Term{Name: arm.Name, Text: doc.Plain(strings.Join(of, ", "))})
		}
	}
	blocks := []doc.Block{t}
	if len(modules.Items) > 0 {
		blocks = append(blocks, doc.Heading{Level: 3, Text: "Modules"}, modules)
	}
	return blocks
}

func design(a *verdict.Analysis) string {
	m, begun := &a.Manifest, a.Progress().Begun
	var looks []string
	for _, l := range a.Looks() {
		looks = append(looks, fmt.Sprint(l.Blocks))
	}
	text := fmt.Sprintf("randomised blocks, a fresh process for each trial, control %s", m.Study.Control)
	if m.Study.Twin {
		text += " run twice in each block"
	}
	text += fmt.Sprintf("; seed %d; %s; may stop after %s blocks", m.Seed, unit.Plural(begun, "block"), strings.Join(looks, ", "))
	switch m.Outcome {
	case "":
		return text + "; unfinished"
	case "decided":
		what := "the primary comparisons were decided"
		if !a.Decided() {
			what = "all budgets were decided"
		}
		if last := a.Looks(); len(last) > 0 && begun >= last[len(last)-1].Blocks {
			return text + "; ran all planned blocks: " + what
		}
		return text + "; stopped early: " + what
	case "cap":
		return text + "; ran all planned blocks"
	case "budget":
		return text + "; the time budget ended it"
	case "refused":
		return text + "; stopped early: most trials did not count, or not for what it decides on"
	}
	return text + "; " + m.Outcome
}

func selfTest(m *record.Manifest) string {
	return cmp.Or(m.SelfTest, "never run on this machine (tare selftest)")
}

func trialCount(t tally.Tally) string {
	text := fmt.Sprintf("%d, %d of them valid", t.Total, t.Valid)
	reasons := 0
	for _, i := range t.Invalid {
		reasons += i.N
	}
	if out := t.Total - t.Valid; reasons > out {
		text += fmt.Sprintf("; %d invalid, some for several reasons", out)
	}
	if t.Drifted > 0 {
		text += fmt.Sprintf("; %d not steady (figures drift within the trial)", t.Drifted)
	}
	if t.Warned > 0 {
		text += fmt.Sprintf("; %d with warnings", t.Warned)
	}
	if t.Pilot > 0 {
		text += fmt.Sprintf("; %d more in the pilot", t.Pilot)
	}
	return text
}

// firstOf marks what only the first of n said, whose figures are its own.
func firstOf(n int, text string) string {
	if n > 1 {
		text += " (the first of them)"
	}
	return text
}

func noise(a *verdict.Analysis) string {
	m := a.Primary()
	if m == nil || m.Withheld != "" {
		return ""
	}
	if m.FloorBy == "" {
		return fmt.Sprintf("unknown; differences count beyond the study's threshold of %s", m.BandText())
	}
	text := fmt.Sprintf("identical programs differ by up to %s in %s (source: %s)", m.FloorText(), m.Title, m.FloorBy)
	if m.Twin != nil && m.Twin.Withheld == "" {
		text += fmt.Sprintf("; the control's second trials differ from its first by %s (%s)", m.Twin.Figure(), m.Twin.Range())
	}
	return text
}

// generator says how near the load generator was to its limits.
func generator(a *verdict.Analysis) string {
	all := instrument(a, "generator_cpu")
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("used at most %s of its CPUs in a valid trial", unit.Format(slices.Max(all), unit.Share))
}

// calm is the share of the CPU time that a host may give to others before it is
// worth a word of advice.
const calm = 0.02

// host says how much of the CPU time that was wanted it gave to others.
func host(a *verdict.Analysis) string {
	all := instrument(a, "host_withheld")
	if len(all) == 0 || slices.Max(all) == 0 {
		return ""
	}
	typical := stats.Median(all)
	text := fmt.Sprintf("gave others %s of the CPU time that this machine asked for in the median valid trial, at most %s", unit.Format(typical, unit.Share), unit.Format(slices.Max(all), unit.Share))
	if typical > calm {
		text += "; a quieter or dedicated host gives narrower intervals"
	}
	return text
}

// instrument is a metric of the instrument, of all trials that count.
func instrument(a *verdict.Analysis, metric string) (all []float64) {
	for i := range a.Workloads {
		m := a.Workloads[i].Metric(metric)
		if m == nil || !m.Instrument {
			continue
		}
		for _, l := range m.Levels {
			for _, point := range l.Points {
				all = append(all, point.Value)
			}
		}
	}
	return all
}

func pinning(p record.Pinning) string {
	switch {
	case len(p.Instrument) == 0 && len(p.Specimen) == 0:
		return "none: the load generator and the arms shared all CPUs"
	case !p.Disjoint:
		return fmt.Sprintf("none: the load generator and the arms shared %s; a busy generator slows the arms", cpus(p.Specimen))
	}
	return fmt.Sprintf("load generator on %s, arms on %s", cpus(p.Instrument), cpus(p.Specimen))
}

func cpus(list []int) string {
	noun := "CPUs "
	if len(list) == 1 {
		noun = "CPU "
	}
	return noun + strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}
