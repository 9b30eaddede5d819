// Package record keeps a run on disk.
//
// A run is a folder: manifest.json says what was planned and where,
// trials.jsonl holds one line a trial, appended and synced as soon as the
// trial has ended, hist/ the trials' histograms in HDR log form. Captures, which
// tell who spent what, are kept likewise: a line each in captures.jsonl, their
// raw profiles in profiles/. A run killed at any moment loses at most the trial
// or capture under way.
//
// One process writes a run: Create makes the folder, Resume takes up one that
// was interrupted, and both hold a lock on it until Finish or Close. Anybody
// may Open it meanwhile. What is promised: a trial for which Append returned
// nil is on disk, and a run that opens without error is as it was written,
// but for what Run.Warnings says. The files' fields are described in
// docs/run-folder.md. Nothing here interprets a measurement; that is lab/verdict.
package record

import (
	"time"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/hist"
)

// Schema is the version of the folder's layout. It grows when an older tare
// would misread a newer folder; a field more is no new version.
const Schema = 1

// AtLook is the outcome, in memory only, of a run that takes a look as planned.
const AtLook = "look"

// Manifest describes a run.
type Manifest struct {
	Schema   int                `json:"schema"`
	ID       string             `json:"id"`    // time and study, such as 20260102-150405-nesting
	Study    study.Study        `json:"study"` // as run: the quick form already applied
	Quick    bool               `json:"quick,omitzero"`
	Seed     uint64             `json:"seed"`
	Started  time.Time          `json:"started,omitzero"`
	Ended    time.Time          `json:"ended,omitzero"`       // zero while running or interrupted
	Idle     time.Duration      `json:"idle_ns,omitzero"`     // between them, while it was interrupted
	Outcome  string             `json:"outcome,omitzero"`     // "", "decided", "cap", "budget", "refused", "interrupted"
	Early    []int              `json:"early_looks,omitzero"` // blocks after which a session ended between two looks and took the next one early, before the run was gone on with
	Command  []string           `json:"command,omitzero"`     // that repeats the run
	Tare     string             `json:"tare,omitzero"`        // version
	Programs map[string]Program `json:"programs,omitzero"`    // by arm
	LeftOut  map[string]string  `json:"left_out,omitzero"`    // arms left out, with the reason
	Rates    map[string]float64 `json:"rates,omitzero"`       // offered rate by workload, requests a second
	Capacity map[string]float64 `json:"capacity,omitzero"`    // pilot capacity by arm, requests a second
	Pinning  Pinning            `json:"pinning"`
	Env      []Fact             `json:"env,omitzero"`
	Floor    map[string]float64 `json:"floor,omitzero"`        // calibrated noise floor by "metric" as |ln ratio|; empty = not calibrated
	FloorN   int                `json:"floor_blocks,omitzero"` // blocks that the floor holds for
	Code     []Code             `json:"code,omitzero"`         // machine code of the functions that the study asks for
	Units    map[string]string  `json:"units,omitzero"`        // base unit by metric: "ns", "B", "/s", "%" (a share from 0 to 1), "" (a count)
	SelfTest string             `json:"self_test,omitzero"`    // what `tare selftest` last found on this machine; "" = never run
	Warnings []string           `json:"warnings,omitzero"`
}

// Took is how long the run was under way, from session to session; 0 before it has ended.
func (m *Manifest) Took() time.Duration {
	if m.Started.IsZero() || m.Ended.IsZero() {
		return 0
	}
	return max(0, m.Ended.Sub(m.Started)-m.Idle)
}

// Program identifies what an arm ran.
type Program struct {
	Path    string            `json:"path,omitzero"` // base name only
	BuildID string            `json:"build_id,omitzero"`
	Size    int64             `json:"size,omitzero"`    // bytes, of a Go program
	Go      string            `json:"go,omitzero"`      // toolchain version
	Modules map[string]string `json:"modules,omitzero"` // versions of the modules built in
	Args    []string          `json:"args,omitzero"`
}

// Code is the machine code of one function in a program that arms ran.
type Code struct {
	Arms         []string      `json:"arms"`
	BuildID      string        `json:"build_id"`
	Func         string        `json:"func"`  // as the linker names it
	Calls        string        `json:"calls"` // how it calls others: "direct", "indirect", "direct and indirect", "none"
	Instructions []Instruction `json:"instructions"`
}

// Instruction is one instruction of a function.
type Instruction struct {
	At   string `json:"at"`            // file:line that it was made for
	Text string `json:"text"`          // in the syntax of Go's assembler
	Call bool   `json:"call,omitzero"` // one that the source asks for, not the runtime's own
}

// Pinning says which CPUs instrument and specimen had.
type Pinning struct {
	Instrument []int `json:"instrument,omitzero"`
	Specimen   []int `json:"specimen,omitzero"`
	Disjoint   bool  `json:"disjoint"`
}

// Fact is one line of the environment.
type Fact struct {
	Name    string `json:"name"`
	Value   string `json:"value,omitzero"`
	Verdict string `json:"verdict,omitzero"` // "ok", "note", "disturbs"
	Remedy  string `json:"remedy,omitzero"`
}

// Trial is one execution of one cell.
type Trial struct {
	Seq      int                `json:"seq"`   // from 0, in order of execution
	Block    int                `json:"block"` // from 0; -1 = pilot
	Arm      string             `json:"arm"`
	Twin     bool               `json:"twin,omitzero"` // the control's second trial in the block
	Workload string             `json:"workload"`
	Start    time.Time          `json:"start,omitzero"`
	Elapsed  time.Duration      `json:"elapsed_ns,omitzero"` // of the measured part
	Requests uint64             `json:"requests"`
	Metrics  map[string]float64 `json:"metrics,omitzero"` // by study.Metric name, in base units
	Facts    map[string]string  `json:"facts,omitzero"`   // what the arm reports of itself
	Invalid  []string           `json:"invalid,omitzero"` // reasons; empty = valid
	Warnings []string           `json:"warnings,omitzero"`
	Steady   bool               `json:"steady"`
	Series   []Slice            `json:"series,omitzero"`
	Hist     string             `json:"hist,omitzero"`     // base name below hist/, without the ending; "" = none
	Attempt  int                `json:"attempt,omitzero"`  // 0, 1 when run again in a later block …
	Answers  []Answer           `json:"answers,omitzero"`  // samples after the load, of targets whose body is not verified whole
	Readings *Readings          `json:"readings,omitzero"` // nil of a generator's trial, and of one that got no load

	Operations []Operation `json:"operations,omitzero"` // of the users' flow, in the order in which they are first taken
}

// Operation is what became of the requests of one operation.
type Operation struct {
	Name       string `json:"name"`
	Requests   uint64 `json:"requests"` // answered
	Failed     uint64 `json:"failed"`   // without a whole answer, or not sent
	Unverified uint64 `json:"unverified"`
}

// RequestsOf is how many requests of an operation were answered; of "" all.
func (t *Trial) RequestsOf(operation string) uint64 {
	if operation == "" {
		return t.Requests
	}
	for _, o := range t.Operations {
		if o.Name == operation {
			return o.Requests
		}
	}
	return 0
}

// Readings are what was counted in the measured part of a trial. Its metrics follow
// from them, and so do the reasons for which it, or some of these, do not count.
type Readings struct {
	Window  time.Duration `json:"window_ns"` // in which requests could begin
	Within  uint64        `json:"within"`    // answered in it
	Carried uint64        `json:"carried"`   // likewise, of the warm-up's requests
	InTime  uint64        `json:"in_time"`   // Within, and what took hardly longer than the window

	Scheduled  uint64  `json:"scheduled"`
	Failed     uint64  `json:"failed"`
	Dropped    uint64  `json:"dropped"`
	Unverified uint64  `json:"unverified"`
	MeanFlight float64 `json:"mean_in_flight"`

	Threads int           `json:"generator_threads"`
	CPU     time.Duration `json:"generator_cpu_ns"`
	Spun    time.Duration `json:"generator_spun_ns"` // of CPU, polling before intended starts

	Before CPU `json:"before"`
	After  CPU `json:"after"`

	// Times are the response times of the open loop beside the generator's lag, by
	// metric, those among them that the lag voids.
	Times map[string]Lagged `json:"times,omitzero"`
}

// Answer is a sample of an arm's answers.
type Answer struct {
	Target string `json:"target"` // method and path
	Status int    `json:"status"`
	Length int64  `json:"length"` // of the body, in bytes
	SHA256 string `json:"sha256"` // of the body
	Stable bool   `json:"stable"` // the next answer had the same status and body
}

// CPU is CPU time used up to a moment.
type CPU struct {
	Arm    time.Duration `json:"arm_ns"`    // with its descendants; 0 where nobody tells
	Tare   time.Duration `json:"tare_ns"`   // this process, the generator in it; likewise
	Busy   time.Duration `json:"busy_ns"`   // all CPUs of the machine, to 10 ms
	Idle   time.Duration `json:"idle_ns"`   // likewise
	Stolen time.Duration `json:"stolen_ns"` // likewise

	// Capacity is what all CPUs could have done, exactly; 0 = not reported. Less Idle
	// and Stolen it is what they did. Busy is not where a kernel counts that at ticks.
	Capacity time.Duration `json:"capacity_ns,omitzero"`
}

// Unsure is how far off the CPU time of the machine between two moments may be: three of its
// counters, idle, waiting for disks and stolen, are told to 10 ms.
const Unsure = 30 * time.Millisecond

// Lagged is a response time and the generator's lag at the same quantile, in ns.
type Lagged struct {
	Response float64 `json:"response_ns"`
	Lag      float64 `json:"lag_ns"`
}

// MaxLagShare is the generator's lag beyond which it distorts a response time, as a share of that.
const MaxLagShare = 0.10

// Late reports whether the lag distorts response times like the one given, in ns.
func (l Lagged) Late(response float64) bool { return l.Lag > MaxLagShare*response }

// PlannedBlocks is the number of planned blocks of which there are trials. Blocks that make up
// for trials that do not count are no part of the plan.
func PlannedBlocks(all []Trial) int {
	seen := map[int]bool{}
	for _, t := range all {
		if t.Attempt == 0 && t.Block >= 0 {
			seen[t.Block] = true
		}
	}
	return len(seen)
}

// Slice is one period of a trial.
type Slice struct {
	AtMs     float64 `json:"at_ms"`
	Answered uint64  `json:"answered"`
	Failed   uint64  `json:"failed,omitzero"`
	P50      float64 `json:"p50_ns"` // ns
	P99      float64 `json:"p99_ns"` // ns
}

// Run is a run read back.
type Run struct {
	Dir      string
	Manifest Manifest
	Trials   []Trial
	Captures []Capture
	Warnings []error // a torn last line, …
}

// Histograms are those kept of a trial. Each may be nil.
type Histograms struct {
	Response, Service *hist.Hist
	Operations        map[string]*hist.Hist // response times by operation
}
