// Package tally counts the trials of a run, and why some do not count.
package tally

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/record"
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
