// Package tally counts the trials of a run, and why some do not count.
package tally

import (
	"cmp"
	"fmt"
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

// Count counts texts in their order. Those that differ in their figures only are one, as the first.
func Count(texts []string) (counts []Warning) {
	at := map[string]int{}
	for _, text := range texts {
		k := Figureless(text)
		if _, ok := at[k]; !ok {
			at[k] = len(counts)
			counts = append(counts, Warning{Text: text})
		}
		counts[at[k]].N++
	}
	return counts
}

// Refusal says how many trials do not count and why most of these do not; "" if all do.
func (t Tally) Refusal() string {
	if len(t.Invalid) == 0 {
		return ""
	}
	do := "do"
	if t.Total-t.Valid == 1 {
		do = "does"
	}
	return fmt.Sprintf("%d of %s %s not count, most often because %s", t.Total-t.Valid, unit.Plural(t.Total, "trial"), do, t.Invalid[0].Reason)
}

// Of counts trials.
func Of(all []record.Trial) Tally {
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
		for _, reason := range once(trial.Invalid, Figureless) {
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

// unevenAlpha is the probability of warning of an arm whose trials are refused as often as the
// control's.
const unevenAlpha = 0.01

// Uneven warns of the arms whose trials are refused more often than the control's beside them, or
// less, than chance explains: what refuses a trial may be what the arm costs, and those that
// count are then the better ones, however many are run again. Of an arm that has none that
// counts there is nothing to warn of.
func Uneven(all []record.Trial, control string) (warnings []error) {
	type cell struct{ workload, arm string }
	tried, refused, cells := map[cell]int{}, map[cell]int{}, []cell(nil)
	for _, t := range all {
		if t.Block < 0 || t.Twin {
			continue
		}
		c := cell{t.Workload, t.Arm}
		if tried[c]++; tried[c] == 1 {
			cells = append(cells, c)
		}
		if len(t.Invalid) > 0 {
			refused[c]++
		}
	}
	for _, c := range cells {
		of := cell{c.workload, control}
		if c == of || refused[c] == tried[c] || refused[of] == tried[of] {
			continue
		}
		share := stats.ClopperPearson(refused[c], refused[c]+refused[of], unevenAlpha)
		if share.Contains(float64(tried[c]) / float64(tried[c]+tried[of])) {
			continue
		}
		warnings = append(warnings, fmt.Errorf("%s, workload %s: %d of %s do not count, but %d of %d of %s: if what an arm costs is why, the figures show its better trials alone",
			c.arm, c.workload, refused[c], unit.Plural(tried[c], "trial"), refused[of], tried[of], control))
	}
	return warnings
}

// once returns what a trial says, of each kind the first: each of its agents may say the same.
func once(texts []string, kind func(string) string) []string {
	said := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool {
		k := kind(text)
		again := said[k]
		said[k] = true
		return again
	})
}

func (t *Tally) addTrial(trial record.Trial) {
	t.Valid++
	if len(trial.Warnings) > 0 {
		t.Warned++
	}
	for _, w := range once(trial.Warnings, kindOf) {
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

// kindOf is a warning without its figures and without the metrics that the lag distorts.
func kindOf(warning string) string {
	if i := strings.Index(warning, ": the generator's lag"); i > 0 {
		warning = warning[i:]
	}
	return Figureless(warning)
}
