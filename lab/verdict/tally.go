package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Tally counts a run's trials.
type Tally struct {
	Total   int       `json:"total"` // without the pilot
	Valid   int       `json:"valid"`
	Pilot   int       `json:"pilot"`
	Drifted int       `json:"not_steady"` // valid, but not steady
	Warned  int       `json:"warned"`     // valid, with a warning
	Invalid []Invalid `json:"invalid"`
	Warning []Warning `json:"warnings"` // of the valid ones, the most frequent first
}

// Warning counts the valid trials that warn of one thing. Warnings that differ only
// in their figures, or in what is left out, are one.
type Warning struct {
	Text string `json:"text"` // as in the first such trial
	N    int    `json:"n"`
}

// Invalid counts the trials of an arm that did not count for one reason.
// Reasons that differ in their figures only are one.
type Invalid struct {
	Arm    string `json:"arm"`
	Reason string `json:"reason"` // as in the first such trial
	N      int    `json:"n"`
}

var figures = regexp.MustCompile(`[0-9][0-9.,]*`)

// Figureless returns text with # in place of its figures, so that texts which
// differ in nothing else are equal.
func Figureless(text string) string { return figures.ReplaceAllString(text, "#") }

// Refusal says how many trials do not count and why most of these do not; "" if all do.
func (t Tally) Refusal() string {
	if len(t.Invalid) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s do not count, most often because %s", t.Total-t.Valid, unit.Plural(t.Total, "trial"), t.Invalid[0].Reason)
}

// TallyOf counts trials.
func TallyOf(all []record.Trial) Tally {
	type key struct{ arm, reason string }
	t := Tally{Invalid: []Invalid{}, Warning: []Warning{}}
	at := map[key]int{}
	for _, trial := range all {
		if trial.Block < 0 {
			t.Pilot++
			continue
		}
		t.Total++
		if len(trial.Invalid) == 0 {
			t.addTrial(trial)
		}
		for _, reason := range trial.Invalid {
			k := key{trial.Arm, Figureless(reason)}
			if _, ok := at[k]; !ok {
				at[k] = len(t.Invalid)
				t.Invalid = append(t.Invalid, Invalid{Arm: trial.Arm, Reason: reason})
			}
			t.Invalid[at[k]].N++
		}
	}
	slices.SortStableFunc(t.Invalid, func(a, b Invalid) int { return cmp.Compare(b.N, a.N) })
	slices.SortStableFunc(t.Warning, func(a, b Warning) int { return cmp.Compare(b.N, a.N) })
	return t
}

func (t *Tally) addTrial(trial record.Trial) {
	t.Valid++
	if len(trial.Warnings) > 0 {
		t.Warned++
	}
	for _, w := range trial.Warnings {
		i := slices.IndexFunc(t.Warning, func(have Warning) bool { return kindOf(have.Text) == kindOf(w) })
		if i < 0 {
			i = len(t.Warning)
			t.Warning = append(t.Warning, Warning{Text: w})
		}
		t.Warning[i].N++
	}
	if !trial.Steady {
		t.Drifted++
	}
}

// kindOf is a warning without its figures and without what it names as left out.
func kindOf(warning string) string {
	if i := strings.Index(warning, " left out"); i > 0 {
		warning = warning[i:]
	}
	return Figureless(warning)
}

// caveats are the warnings that follow from the analysis itself.
func (a *Analysis) caveats() []error {
	var ws []error
	add := func(format string, args ...any) { ws = append(ws, fmt.Errorf(format, args...)) }
	p := a.Manifest.Study.Primary
	m := a.Primary()
	switch {
	case m == nil:
		add("no valid trial measured the primary metric %s in workload %s", p.Metric, p.Workload)
	case m.Withheld != "":
		add("the primary metric %s is withheld: %s", p.Metric, m.Withheld)
	case m.FloorBy == "" && a.Manifest.Study.Twin:
		add("no noise floor is known: control and twin have %s, of the %d that make one, and this machine is not calibrated (tare calibrate); effects are held against the threshold alone", unit.Plural(m.twinned, "valid pair"), leastTwinPairs)
	case m.FloorBy == "":
		add("no noise floor is known: the study has no twin and this machine is not calibrated (tare calibrate); effects are held against the threshold alone")
	}
	switch n := a.Progress().Blocks; {
	case a.peeking:
		add("the run has not ended, and no look is planned after %s: intervals hold whenever one looks, which makes them wider", unit.Plural(n, "block"))
	case n > 0 && !slices.ContainsFunc(a.looks, func(l stats.Look) bool { return l.Blocks == n }):
		add("no look is planned after %s: judged at the level of the look at %s", unit.Plural(n, "block"), unit.Plural(lookAt(a.looks, n).Blocks, "block"))
	}
	if a.Manifest.Outcome == "refused" {
		add("the run stopped early, since most trials did not count; `tare env` shows what disturbs this machine, and a lower rate leaves the generator more room")
	}
	if a.Trials.Drifted > 0 {
		add("not steady: %d of %s", a.Trials.Drifted, unit.Plural(a.Trials.Valid, "valid trial"))
	}
	for _, w := range a.Workloads {
		if arms := a.incomplete(&w); len(arms) > 0 {
			add("workload %s: fewer than its %s for %s", w.Name, unit.Plural(w.Blocks, "block"), strings.Join(arms, ", "))
		}
	}
	for _, c := range a.elsewhere() {
		where := "outside its processes and the generator"
		if c.Metric.Name == "deferred_cpu" {
			where = "after the load"
		}
		add("%s, workload %s: %s of CPU per request %s against %s (%s): work that an arm puts off, or leaves to others, is not in its CPU per request",
			c.Arm, c.Workload, ShowSigned(c.Metric, c.Difference.Value), where, c.Against, c.size())
	}
	for _, c := range a.primary {
		if c.N == 0 {
			add("%s, %s, is not compared: %s", c.Arm, c.Metric.Title, c.Withheld)
		}
		if c.Heaps != "" {
			add("%s, %s: %s", c.Arm, c.Metric.Title, c.Heaps)
		}
		for _, w := range c.Effect.Warnings {
			add("%s, %s: %w", c.Arm, c.Metric.Title, w)
		}
	}
	return ws
}

// elsewhere are the arms for which the rest of the machine, or they themselves after the load,
// did more, or less, than for the control, beyond the floor of that and where CPU per request
// would count.
func (a *Analysis) elsewhere() (all []*Comparison) {
	for i := range a.Workloads {
		for _, m := range a.Workloads[i].Metrics {
			for j := range m.Compared {
				if c := &m.Compared[j]; m.Residual && (c.Verdict == stats.Faster || c.Verdict == stats.Slower) {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// incomplete are the arms with fewer pairs than the workload's blocks, by the
// metric that has the most.
func (a *Analysis) incomplete(w *Workload) []string {
	s, most := &a.Manifest.Study, map[string]int{}
	for _, arm := range s.ArmsOf(w.Workload) {
		if arm.Name != s.Control {
			most[arm.Name] = 0
		}
	}
	for _, m := range w.Metrics {
		for _, c := range m.Compared {
			most[c.Arm] = max(most[c.Arm], c.N)
		}
	}
	maps.DeleteFunc(most, func(_ string, pairs int) bool { return pairs >= w.Blocks })
	return slices.Sorted(maps.Keys(most))
}
