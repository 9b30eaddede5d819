package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// htmlTrust says why the figures can be trusted, and how far.
type htmlTrust struct {
	Facts    []pair
	Warnings []string
	Invalid  []verdict.Invalid
	Env      []record.Fact
	Programs []htmlProgram
	LeftOut  []pair
	Not      []string // what the figures do not say
}

// htmlProgram is what an arm ran.
type htmlProgram struct {
	Arm, Title, Args, BuildID, Go, Modules string
	Fold                                   string // how many modules, where they are too many to stand in a row
}

// mostModules is the number of modules up to which a row shows them: on a phone
// a column of twenty, scrolled out of sight, left a screen of nothing.
const mostModules = 6

func newTrust(a *verdict.Analysis) htmlTrust {
	m := &a.Manifest
	t := htmlTrust{Warnings: messages(a.Warnings), Invalid: a.Trials.Invalid, Env: m.Env, Not: notSaid(a)}
	for _, f := range []pair{{"Design", design(a)}, {"Trials", trialCount(a.Trials)}, {"Noise floor", noise(a)},
		{"Generator", generator(a)}, {"Host", host(a)}, {"Pinning", pinning(m.Pinning)}, {"Self-test", selfTest(m)}} {
		if f.Text != "" {
			t.Facts = append(t.Facts, f)
		}
	}
	for _, w := range a.Trials.Warning {
		t.Facts = append(t.Facts, pair{"Trials warned", warned(w)})
	}
	for _, arm := range m.Study.Arms {
		p, ok := m.Programs[arm.Name]
		if !ok {
			continue
		}
		var modules []string
		for _, name := range slices.Sorted(maps.Keys(p.Modules)) {
			modules = append(modules, name+" "+p.Modules[name])
		}
		program := htmlProgram{Arm: arm.Name, Title: arm.Title, Args: strings.TrimSpace(p.Path + " " + shellLine(p.Args)), BuildID: p.BuildID, Go: p.Go, Modules: strings.Join(modules, ", ")}
		if len(modules) > mostModules {
			program.Fold = verdict.Count(len(modules), "module")
		}
		t.Programs = append(t.Programs, program)
	}
	for _, arm := range slices.Sorted(maps.Keys(m.LeftOut)) {
		t.LeftOut = append(t.LeftOut, pair{arm, m.LeftOut[arm]})
	}
	return t
}

// notSaid are the bounds of what the run can say.
func notSaid(a *verdict.Analysis) []string {
	all := []string{
		"The figures are this machine's, for these builds and these workloads; another machine has others, above all in absolute terms.",
		"“No different” means within the threshold, not identical. “Undecided” means that these blocks cannot tell, not that there is nothing.",
	}
	if p := a.Manifest.Study.Primary; p.Metric != "" {
		title := p.Metric
		if m, ok := study.MetricNamed(p.Metric); ok {
			title = m.Title
		}
		all = append(all, fmt.Sprintf("Only %s in workload %s is decided on. All other comparisons are descriptive: each interval holds for itself, and among many some are wrong by chance.", title, p.Workload))
	}
	if !a.Manifest.Pinning.Disjoint {
		all = append(all, "Generator and arms shared CPUs: response times hold what the two took from each other.")
	}
	return append(all, "A synthetic load is no production traffic: nothing is said of other mixes, larger bodies, slow clients or real upstreams.")
}
