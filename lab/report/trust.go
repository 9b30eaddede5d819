package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// trust writes why the figures can be trusted, and how far.
func (p *page) trust(a *verdict.Analysis) {
	p.heading("How far to trust this")
	m := &a.Manifest
	p.item("design", design(a))
	p.item("trials", trialCount(a.Trials))
	for _, i := range a.Trials.Invalid {
		p.item("", fmt.Sprintf("%d of %s did not count: %s", i.N, i.Arm, firstOf(i.N, i.Reason)))
	}
	for _, w := range a.Trials.Warning {
		p.item("", warned(w))
	}
	p.item("noise", noise(a))
	p.item("generator", generator(a))
	p.item("host", host(a))
	p.item("pinning", pinning(m.Pinning))
	p.item("self-test", selfTest(m))
	for _, f := range m.Env {
		if f.Verdict == "disturbs" {
			p.item("machine", strings.TrimSuffix(fmt.Sprintf("%s %s disturbs: %s", f.Name, f.Value, f.Remedy), ": "))
		}
	}
	for _, arm := range slices.Sorted(maps.Keys(m.LeftOut)) {
		p.item("left out", arm+": "+m.LeftOut[arm])
	}
	for _, w := range a.Warnings {
		p.itemIn(yellow, "warning", w.Error())
	}
	if len(m.Command) > 0 {
		p.item("repeat", shellLine(m.Command))
	}
}

func (p *page) item(head, text string) { p.itemIn(plain, head, text) }

func (p *page) itemIn(s style, head, text string) {
	if text != "" {
		p.wrapIn(s, fmt.Sprintf("  %-9s  ", head), text)
	}
}

func design(a *verdict.Analysis) string {
	m := &a.Manifest
	var looks []string
	for _, l := range a.Looks() {
		looks = append(looks, fmt.Sprint(l.Blocks))
	}
	text := fmt.Sprintf("randomised blocks, a fresh process a trial, control %s", m.Study.Control)
	if m.Study.Twin {
		text += " run twice a block"
	}
	text += fmt.Sprintf("; seed %d; %s, looks at %s", m.Seed, verdict.Count(a.Progress().Blocks, "block"), strings.Join(looks, ", "))
	switch m.Outcome {
	case "":
		return text + "; not finished"
	case "decided":
		what := "the primary comparisons were decided"
		if !a.Decided() {
			what = "what it was gated by was decided"
		}
		if last := a.Looks(); len(last) > 0 && a.Progress().Blocks >= last[len(last)-1].Blocks {
			return text + "; ended with the last block planned: " + what
		}
		return text + "; ended early: " + what
	case "cap":
		return text + "; ended with the last block planned"
	case "budget":
		return text + "; ended with its time"
	case "refused":
		return text + "; stopped early: most trials did not count"
	}
	return text + "; " + m.Outcome
}

func selfTest(m *record.Manifest) string {
	return cmp.Or(m.SelfTest, "never run on this machine (tare selftest)")
}

func trialCount(t verdict.Tally) string {
	text := fmt.Sprintf("%d, of which %d count", t.Total, t.Valid)
	reasons := 0
	for _, i := range t.Invalid {
		reasons += i.N
	}
	if out := t.Total - t.Valid; reasons > out {
		text += fmt.Sprintf("; %d do not, some for more than one reason", out)
	}
	if t.Drifted > 0 {
		text += fmt.Sprintf("; %d not steady", t.Drifted)
	}
	if t.Warned > 0 {
		text += fmt.Sprintf("; %d with warnings", t.Warned)
	}
	if t.Pilot > 0 {
		text += fmt.Sprintf("; %d more in the pilot", t.Pilot)
	}
	return text
}

// warned says what trials that count warn of.
func warned(w verdict.Warning) string {
	return fmt.Sprintf("%d warned: %s", w.N, firstOf(w.N, w.Text))
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
		return fmt.Sprintf("not known; an effect counts from the study's threshold of %s on", m.BandText())
	}
	text := fmt.Sprintf("the same program against itself shows up to %s of %s, by %s", m.FloorText(), m.Title, m.FloorBy)
	if m.Twin != nil && m.Twin.Withheld == "" {
		text += fmt.Sprintf("; the twin came out at %s (%s)", m.Twin.Figure(), m.Twin.Range())
	}
	return text
}

// generator says how near the load generator was to its limits.
func generator(a *verdict.Analysis) string {
	all := instrument(a, "generator_cpu")
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("used at most %s of its CPUs in a trial that counts", unit.Format(slices.Max(all), unit.Share))
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
	text := fmt.Sprintf("gave others %s of the CPU time wanted in the median trial that counts, at most %s", unit.Format(typical, unit.Share), unit.Format(slices.Max(all), unit.Share))
	if typical > calm {
		text += ": on a quieter one, or one's own, intervals are narrower"
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
		return "none: generator and arms shared all CPUs"
	case !p.Disjoint:
		return fmt.Sprintf("none: generator and arms shared CPUs %s; a busy generator slows the arm", cpus(p.Specimen))
	}
	return fmt.Sprintf("generator on CPUs %s, arms on %s", cpus(p.Instrument), cpus(p.Specimen))
}

func cpus(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}
