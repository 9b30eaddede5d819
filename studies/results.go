package studies

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/tarehq/tare/lab/study"
)

//go:embed results.json
var resultsFile []byte

// Result is what runs found of a published claim.
type Result struct {
	State string `json:"state"`         // the verdict, or why there is none
	Says  string `json:"says,omitzero"` // the verdict in one sentence

	// Of the run that the verdict comes from, the newest that settled it or else the
	// newest of all; absent before the first.
	Run     string    `json:"run,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Machine string    `json:"machine,omitzero"`
	Quick   bool      `json:"quick,omitzero"`  // it was the study's short form
	Needs   int       `json:"needs,omitzero"`  // where it cannot tell: about so many blocks in all would decide
	Rounds  int       `json:"rounds,omitzero"` // likewise: about so many more rounds of captures that count
	Runs    []string  `json:"runs,omitzero"`   // all that measured what decides, by the same rule, the newest first

	// Of the check that gave the verdict, or of the first published row where no study
	// has one.
	Metric   string `json:"metric,omitzero"`
	Figure   string `json:"published,omitzero"`
	Measured string `json:"measured,omitzero"`
	Interval string `json:"interval,omitzero"` // of Measured

	Checks   []Outcome `json:"checks,omitzero"`   // of the study that tests it, those that decide first
	Deciding int       `json:"deciding,omitzero"` // how many decide, all of which have to hold
}

// Outcome is a published statement beside what was measured of it.
type Outcome struct {
	Says     string `json:"says"`
	Metric   string `json:"metric,omitzero"`
	Figure   string `json:"published,omitzero"`
	Measured string `json:"measured,omitzero"`
	Interval string `json:"interval,omitzero"` // of Measured

	Rule study.Check `json:"rule,omitzero"` // what was held against what, without words
}

// Rules are what decides on each claim that one of the studies tests: the checks of its
// headline, as RuleOf has them.
func Rules(all []*study.Study) map[string][]study.Check {
	by := map[string][]study.Check{}
	for _, s := range all {
		for i := range s.Claims {
			for _, check := range s.Claims[i].Headline() {
				by[s.Claims[i].ID] = append(by[s.Claims[i].ID], RuleOf(check, cmp.Or(check.Against, s.Control)))
			}
		}
	}
	return by
}

// RuleOf is what a check holds against what, without its words.
func RuleOf(k study.Check, against string) study.Check {
	k.Says, k.Absolute, k.Against = "", "", against
	return k
}

// RuledBy reports whether the result was decided by these rules.
func (r *Result) RuledBy(today []study.Check) bool {
	if len(today) != r.Deciding || len(today) > len(r.Checks) {
		return false
	}
	for i, rule := range today {
		if !reflect.DeepEqual(rule, r.Checks[i].Rule) {
			return false
		}
	}
	return true
}

// Results returns what runs on the authors' machine found, by claim.
func Results() (map[string]Result, error) {
	var all map[string]Result
	if err := json.Unmarshal(resultsFile, &all); err != nil {
		return nil, fmt.Errorf("reading the results kept: %w", err)
	}
	return all, nil
}
