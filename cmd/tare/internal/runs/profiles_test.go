package runs

import (
	"testing"
	"time"

	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// What became of the profiles is counted: those that count, those that do not, and those for
// which the budget had no time.
func TestCountProfiles(t *testing.T) {
	s, err := study.Parse("ab", []byte(`
name: ab
title: one against another
arms:
  - {name: old, url: "http://127.0.0.1:1"}
  - {name: new, url: "http://127.0.0.1:2"}
control: old
workloads:
  - {name: load, schedule: closed, connections: 8, targets: [{path: /}]}
primary: {metric: throughput, workload: load}
threshold: 1%
trial: {warm_up: 300ms, measure: 1s, slice: 100ms}
looks: [6]
attribute: {for: 2s, repeat: 2, workloads: {load: [pprof]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	capture := func(round int, arm, invalid string) record.Capture {
		c := record.Capture{Round: round, Arm: arm, Workload: "load", Sources: []study.Source{study.Pprof}}
		if invalid != "" {
			c.Invalid = []string{invalid}
		}
		return c
	}
	begun := time.Now()
	var trials []record.Trial // which start every 1.8 s, 0.5 s more than they measure
	for i := range 6 {
		trials = append(trials, record.Trial{Seq: i, Block: i / 2, Start: begun.Add(time.Duration(i) * 1800 * time.Millisecond)})
	}
	for _, tt := range []struct {
		name, outcome string
		captures      []record.Capture
		want          comment.Profiles
	}{
		{"all", "decided", []record.Capture{capture(0, "old", ""), capture(0, "new", ""), capture(1, "old", ""), capture(1, "new", "")}, comment.Profiles{Planned: 4, Usable: 4}},
		{"no time", "budget", nil, comment.Profiles{Planned: 4, Budget: 40 * time.Second}},
		{"little time", "cap", []record.Capture{capture(0, "old", "")}, comment.Profiles{Planned: 4, Usable: 1, Budget: 40 * time.Second}},
		{"refused", "decided", []record.Capture{capture(0, "old", "not permitted"), capture(0, "new", "not permitted")}, comment.Profiles{Planned: 4, Lost: "old under load: no capture counts: not permitted"}},
		{"interrupted", "interrupted", nil, comment.Profiles{Planned: 4}},
	} {
		run := &record.Run{Manifest: record.Manifest{Study: *s, Seed: 1, Outcome: tt.outcome}, Trials: trials, Captures: tt.captures}
		if got := CountProfiles(run); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
	s.Attribute = study.Attribute{}
	if got := CountProfiles(&record.Run{Manifest: record.Manifest{Study: *s, Outcome: "cap"}, Trials: trials}); got != (comment.Profiles{}) {
		t.Errorf("a study without profiles: got %+v", got)
	}
}
