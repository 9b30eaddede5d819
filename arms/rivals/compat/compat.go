// Package compat finds out, by running, which real middlewares and handlers go
// with which servers.
//
// A [Probe] is one middleware or handler together with what a client expects of
// it. It is put before a [Server] in trials, each on a server of its own and over
// real connections. What does not hold becomes a [Finding], and the worst finding
// of all trials is the verdict:
//
//	works     nothing was found
//	degrades  the answers are right, but a promise that net/http makes to
//	          handlers or clients is not kept
//	breaks    a wrong answer or none, a hang, memory that changes under a
//	          handler, or the end of the server's process
//
// The package promises that a verdict comes from what was seen: none is written
// down. A server can end its process, never return from a trial, or leave
// something behind that harms the next, so whoever runs probes gives each trial a
// process and a time limit.
//
// It is for servers that claim to run unmodified http.Handlers. It measures no
// speed.
package compat

import (
	"fmt"
	"slices"
)

// Verdict is how a probe fares on a server. Greater is worse.
type Verdict int

// The verdicts.
const (
	Works Verdict = iota
	Degrades
	Breaks
)

// String returns the word that tables show.
func (v Verdict) String() string {
	switch v {
	case Works:
		return "works"
	case Degrades:
		return "degrades"
	case Breaks:
		return "breaks"
	}
	return fmt.Sprintf("Verdict(%d)", int(v))
}

// Finding is something that did not hold in a trial.
type Finding struct {
	Verdict Verdict
	Note    string // what was seen, the same in each trial that sees it
}

// Outcome is what the trials of one probe on one server came to. Its zero value
// is that nothing was found.
type Outcome struct {
	Verdict  Verdict
	Findings []Finding // each once, the worst first
}

// Add takes what one more trial found.
func (o *Outcome) Add(found ...Finding) {
	for _, f := range found {
		o.Verdict = max(o.Verdict, f.Verdict)
		if !slices.Contains(o.Findings, f) {
			o.Findings = append(o.Findings, f)
		}
	}
	slices.SortStableFunc(o.Findings, func(a, b Finding) int { return int(b.Verdict - a.Verdict) })
}

// Probe is one middleware or handler put to the test.
type Probe struct {
	Name string // as people know it
	From string // the package that it is from
	Asks string // what is expected of it, in a few words
	run  func(*Trial)
}

// Probes returns all probes, in the order of the table.
func Probes() []Probe {
	return slices.Concat(outsiders(), chiProbes(), standard(), streams(), wire(), keepers())
}
