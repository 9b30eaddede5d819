package flow

import (
	"encoding/json"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// Result is what a run measured. Times and counts are of the measured part.
type Result struct {
	Started   time.Time     `json:"started"`    // of the measured part
	Elapsed   time.Duration `json:"elapsed_ns"` // of it: to its end, or to the last answer if that came later
	Ended     string        `json:"ended"`      // "" or why it ended early, such as "interrupted"
	Sessions  Sessions      `json:"sessions"`
	Requests  Operation     `json:"requests"` // of all steps
	Steps     []Operation   `json:"steps"`    // in the file's order, set-up and tear-down left out
	WarmUp    uint64        `json:"warm_up"`  // requests before the measured part
	Window    time.Duration `json:"-"`        // planned length of the measured part
	Within    uint64        `json:"-"`        // requests of the measured part, answered within Window
	Carried   uint64        `json:"-"`        // of those before it, answered within Window
	Generator Generator     `json:"generator"`
	Series    []load.Slice  `json:"series"`       // of all requests, per Options.Slice
	Memory    []uint64      `json:"memory_bytes"` // of the service at the end of each slice; 0 = not known
	Warnings  load.Warnings `json:"warnings"`
}

// Sessions are what became of users, each from arrival to the end of the flow.
type Sessions struct {
	Begun      uint64     `json:"begun"`           // in the measured part; the sum of the next three
	Completed  uint64     `json:"completed"`       // all steps taken
	Failed     uint64     `json:"failed"`          // a step went wrong and ended the flow
	Unfinished uint64     `json:"unfinished"`      // still under way when the run ended
	Dropped    uint64     `json:"dropped"`         // arrived while Users.Most were there; not begun
	Peak       int        `json:"peak_users"`      // at a time, warm-up included
	Waited     *hist.Hist `json:"waited,omitzero"` // for answers, response times added up; of those completed, ns
	Whole      *hist.Hist `json:"whole,omitzero"`  // arrival → end, think time included; of those completed, ns
}

// Operation is a step's requests.
type Operation struct {
	Flow     string           `json:"flow"`
	Step     string           `json:"step"`
	Counts   load.Counts      `json:"counts"`
	Untaken  uint64           `json:"untaken"`           // answers that a value could not be taken from; among Counts.Unverified
	Response *hist.Hist       `json:"response,omitzero"` // from when the user wanted it → last byte, ns
	Service  *hist.Hist       `json:"service,omitzero"`  // start → last byte, ns
	Causes   []string         `json:"causes"`            // what went wrong, the first 3 that differ
	FailIf   []load.Threshold `json:"-"`

	statusAsked bool
}

// Generator is what the run cost and delayed by itself.
type Generator struct {
	CPU    time.Duration `json:"cpu_ns"`        // user and system, of the measured part
	MaxRSS uint64        `json:"max_rss_bytes"` // of the process
	Lag    *hist.Hist    `json:"lag,omitzero"`  // from when a user wanted a request to its start, ns
	Bound  bool          `json:"bound"`         // it was (nearly) the bottleneck: Warnings say why
}

// mostCauses is how many causes an operation keeps.
const mostCauses = 3

// Judged is the operation in the form that thresholds judge.
func (o *Operation) Judged(elapsed time.Duration) *load.Result {
	return &load.Result{Elapsed: elapsed, Counts: o.Counts, Response: o.Response, Service: o.Service, StatusAsked: o.statusAsked}
}

// Judged is sessions in the form that thresholds judge: their times are what users waited
// for answers. Those that failed or were dropped count as errors, and as slower than any
// bound; unfinished ones do not count.
func (s *Sessions) Judged(elapsed time.Duration) *load.Result {
	c := load.Counts{Scheduled: s.Completed + s.Failed + s.Dropped, Short: s.Failed, Dropped: s.Dropped}
	c.Status[2] = s.Completed
	return &load.Result{Elapsed: elapsed, Counts: c, Response: s.Waited, Service: s.Waited}
}

// MarshalJSON gives r in a shape that later versions keep: keys are stable, new ones may
// come, "schema" grows when one changes its meaning.
func (r *Result) MarshalJSON() ([]byte, error) {
	type fields Result
	return json.Marshal(struct {
		Schema int `json:"schema"`
		*fields
	}{1, (*fields)(r)})
}

// Snapshot is the state of a running load.
type Snapshot struct {
	Elapsed  time.Duration // of the measured part; negative while warming up
	Total    time.Duration // planned
	Users    int           // under way
	Thinking int           // of these
	Sessions Sessions      // so far, without their times
	Counts   load.Counts   // of requests, warm-up left out
	Rate     float64       // requests answered a second, over about the last second
	P50, P99 time.Duration // response times of the last whole slice
}
