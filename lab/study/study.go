// Package study turns the declaration of a study into a plan of trials.
//
// A study asks one question: arms (programs under comparison) × workloads,
// compared with a control arm in randomised blocks. It is data: a YAML file,
// built in or a user's own. This package reads and checks such files and
// derives the plan as a pure function of declaration and seed; it starts
// nothing.
package study

import "time"

// Study is a declared study.
type Study struct {
	Name     string `json:"name,omitzero"`     // letters, digits, dashes; unique among the known studies
	Title    string `json:"title,omitzero"`    // one line
	Question string `json:"question,omitzero"` // what the study answers
	Kind     Kind   `json:"kind,omitzero"`     // "" = servers
	Notes    string `json:"notes,omitzero"`    // what a reader must know; shown in the report
	AA       bool   `json:"aa,omitzero"`       // identical arms are meant: an A/A study

	Arms      []Arm      `json:"arms,omitzero"`
	Control   string     `json:"control,omitzero"` // name of the arm the others are compared with
	Twin      bool       `json:"twin,omitzero"`    // run the control twice in every block; the twin's effect is the run's own noise floor
	Workloads []Workload `json:"workloads,omitzero"`
	Primary   Primary    `json:"primary,omitzero"`
	Threshold float64    `json:"threshold,omitzero"` // practical band: the smallest relative effect that matters, such as 0.01
	Trial     Trial      `json:"trial,omitzero"`
	Looks     []int      `json:"looks,omitzero"` // blocks after which the run may stop; nil = 8, 12, 18, 30
	Quick     Quick      `json:"quick,omitzero"`
	Attribute Attribute  `json:"attribute,omitzero"` // who spends what, asked after the blocks
	Claims    []Claim    `json:"claims,omitzero"`
	Goals     []Goal     `json:"goals,omitzero"` // the authors' own
	// Disassemble are functions whose machine code is shown, as the linker names them.
	Disassemble []string `json:"disassemble,omitzero"`

	File string `json:"file,omitzero"` // where it was read from; "" = built in
}

// Kind says what the arms are.
type Kind string

// The kinds.
const (
	Servers    Kind = ""           // arms are servers, loaded by tare
	Generators Kind = "generators" // arms are load generators, run against one fixed server a workload
)

// Arm is one treatment. Exactly one of Go, Rival, Command and URL is set.
type Arm struct {
	Name    string   `json:"name,omitzero"`
	Title   string   `json:"title,omitzero"`   // "" = Name
	Go      string   `json:"go,omitzero"`      // Go package: ./arms/x in this module, or a user's package directory or import path
	Rival   string   `json:"rival,omitzero"`   // "gin" = arms/rivals/gin at its pinned version, "gin@v1.8.2" = at that one
	Command []string `json:"command,omitzero"` // program and arguments; ${TARE_ADDR} … are expanded
	URL     string   `json:"url,omitzero"`     // something already running
	Args    []string `json:"args,omitzero"`    // for Go and Rival
	Build   []string `json:"build,omitzero"`   // for Go and Rival: flags of go build, and NAME=value for its environment
	Env     []string `json:"env,omitzero"`     // NAME=value
	Sink    string   `json:"sink,omitzero"`    // where the arm's standard output goes: "" or "discard", "file", "pipe" (read by tare)
	X       *float64 `json:"x,omitzero"`       // position on the study's scale (layers, routes) for slopes
	Needs   []string `json:"needs,omitzero"`   // programs that must be installed, or with arguments must succeed; the arm is left out by name where they do not

	Ref   string   `json:"ref,omitzero"`   // for Go: the commit at which a directory is built, as Git names it
	With  []string `json:"with,omitzero"`  // for Go: variants of the build, see package variant
	Layer string   `json:"layer,omitzero"` // what it has and Over has not; arms of one layer are weighed side by side
	Over  string   `json:"over,omitzero"`  // the arm that Layer is added to

	Service // of a program that knows nothing of TARE_ADDR

	Generator // of a study of generators
}

// Service says how tare starts a program that was not made for it. Not for a URL.
type Service struct {
	// Listen is "" for a program that listens where TARE_ADDR says, "any" for one
	// that listens wherever it does, or the one of its ports that is meant.
	Listen  string `json:"listen,omitzero"`
	Ready   string `json:"ready,omitzero"`    // path that answers with a status below 400 once it is ready; "" = the first target
	Before  string `json:"before,omitzero"`   // shell command before each start; a failure ends the run
	After   string `json:"after,omitzero"`    // shell command after each end
	Dir     string `json:"dir,omitzero"`      // working directory; "" = an empty one for Go, tare's for Command
	EnvFile string `json:"env_file,omitzero"` // file of NAME=value lines for the environment; Env goes before it
}

// Generator says how a load generator is called and how it tells what it saw.
// Arguments follow the arm's own; nil: it cannot be asked for that.
type Generator struct {
	Closed  []string `json:"closed,omitzero"` // for a closed loop
	Open    []string `json:"open,omitzero"`   // for a constant rate, whether or not answers come
	Paced   []string `json:"paced,omitzero"`  // instead of Open: for a closed loop that is held back to a rate
	Under   []string `json:"under,omitzero"`  // command that runs the program, to which it and its arguments are given
	Reports Reports  `json:"reports,omitzero"`
}

// Reports are regular expressions, matched in what a generator prints; the
// last match's one group is the figure. "" = it does not tell.
type Reports struct {
	Requests string `json:"requests,omitzero"` // answered
	P50      string `json:"p50,omitzero"`      // of the response time, as the next
	P90      string `json:"p90,omitzero"`
	P99      string `json:"p99,omitzero"`
	P999     string `json:"p999,omitzero"`
	Max      string `json:"max,omitzero"`
	LagP99   string `json:"lag_p99,omitzero"` // intended start → start
	Unit     string `json:"unit,omitzero"`    // of times that it prints as plain numbers: ns, us, ms, s
}

// Workload is what is asked of an arm.
type Workload struct {
	Name        string        `json:"name,omitzero"`
	Title       string        `json:"title,omitzero"`
	Targets     []Target      `json:"targets,omitzero"`
	Schedule    string        `json:"schedule,omitzero"`    // "closed", "constant", "poisson"
	Connections int           `json:"connections,omitzero"` // closed: kept busy; open: at most
	Rate        Rate          `json:"rate,omitzero"`        // open loop
	Fresh       float64       `json:"fresh,omitzero"`       // share of requests on a new connection, 0 to 1
	Timeout     time.Duration `json:"timeout_ns,omitzero"`  // 0 = 10 s
	Failures    float64       `json:"failures,omitzero"`    // most of the requests that may fail in a trial that counts, 0 to 1; 0 = 0.001
	Measure     time.Duration `json:"measure_ns,omitzero"`  // the measured part of a trial; 0 = the study's
	Loop        time.Duration `json:"loop_ns,omitzero"`     // also run the arm's in-process loop over the targets this long; 0 = not
	Pipeline    int           `json:"pipeline,omitzero"`    // closed: requests sent at once on a connection; 0 and 1 = one
	Idle        int           `json:"idle,omitzero"`        // connections held open beside the load, idle since one answer each; 0 = none
	Live        bool          `json:"live,omitzero"`        // collect garbage amid the load and measure what is left
	Lines       bool          `json:"lines,omitzero"`       // after the load, tell the lines that allocate most and that goroutines stand at
	Counters    bool          `json:"counters,omitzero"`    // count cache hits during the loop, where the machine can
	Arms        []string      `json:"arms,omitzero"`        // only these; nil = all
	Server      *Arm          `json:"server,omitzero"`      // that all generators load; nil unless the arms are generators
	Flow        *Flow         `json:"flow,omitzero"`        // what users do in place of asking for Targets; Schedule then follows from who comes
	Profile     string        `json:"profile,omitzero"`     // that they arrive by; "" = as the flow says
}

// Rate is an offered rate: so many requests a second, or a share of the
// capacity of the slowest arm, measured before the first block.
type Rate struct {
	PerSecond float64 `json:"per_second,omitzero"`
	Share     float64 `json:"share,omitzero"` // 0.5 for "50%"
}

// Target is one request of a workload.
type Target struct {
	Method string            `json:"method,omitzero"` // "" = GET
	Path   string            `json:"path,omitzero"`
	Header map[string]string `json:"header,omitzero"`
	Body   string            `json:"body,omitzero"`
	Weight int               `json:"weight,omitzero"` // 0 = 1
	Verify Verify            `json:"verify,omitzero"`
}

// Verify says what makes an answer correct.
type Verify struct {
	Status   int               `json:"status,omitzero"` // 0 = 200
	Header   map[string]string `json:"header,omitzero"` // each present with this value
	Contains string            `json:"contains,omitzero"`
	Length   *int64            `json:"length,omitzero"`
	SHA256   string            `json:"sha256,omitzero"`
}

// Primary names the one comparison that the run is planned for.
type Primary struct {
	Metric   string `json:"metric,omitzero"`
	Workload string `json:"workload,omitzero"`
	Arm      string `json:"arm,omitzero"` // "" = every arm against the control, family-wise by Holm
}

// Trial says how long a trial takes.
type Trial struct {
	WarmUp  time.Duration `json:"warm_up_ns,omitzero"` // 0 = 300 ms
	Measure time.Duration `json:"measure_ns,omitzero"` // 0 = 2 s
	Slice   time.Duration `json:"slice_ns,omitzero"`   // 0 = 200 ms
}

// Quick is the short form of a study; empty fields leave the study's own.
type Quick struct {
	Arms      []string  `json:"arms,omitzero"`
	Workloads []string  `json:"workloads,omitzero"`
	Blocks    int       `json:"blocks,omitzero"`
	Trial     Trial     `json:"trial,omitzero"`
	Attribute Attribute `json:"attribute,omitzero"` // its Truth is the study's
}

// Claim is a published statement that the study tests.
type Claim struct {
	ID     string  `json:"id,omitzero"` // as in claims.yaml, such as P1.nesting
	Checks []Check `json:"checks,omitzero"`
	// Deciding is how many of the checks, from the first on, decide together: all of
	// them must hold; 0 = the first alone.
	Deciding int `json:"deciding,omitzero"`
}

// Headline are the checks that decide on the claim.
func (c *Claim) Headline() []Check { return c.Checks[:min(max(1, c.Deciding), len(c.Checks))] }

// Check is one testable part of a claim. Effect-like checks compare Arm with
// Against on Metric in Workload.
type Check struct {
	Kind     CheckKind `json:"kind,omitzero"`
	Says     string    `json:"says,omitzero"` // the part of the statement that is checked, one line
	Metric   string    `json:"metric,omitzero"`
	Workload string    `json:"workload,omitzero"`
	Arm      string    `json:"arm,omitzero"`
	Against  string    `json:"against,omitzero"` // "" = the control
	Plus     []string  `json:"plus,omitzero"`    // Interaction: the arms whose separate effects are added

	// Published figures, in the metric's base unit (ns, bytes, 1/s). Nil:
	// the claim gives none, and only the direction is judged.
	PublishedArm     *float64 `json:"published_arm,omitzero"`
	PublishedAgainst *float64 `json:"published_against,omitzero"`
	// PublishedRatio is Arm's figure over Against's where the claim gives
	// nothing but that ("31 % less" = 0.69). Direction is then set.
	PublishedRatio *float64 `json:"published_ratio,omitzero"`
	// PublishedDifference is Arm's figure less Against's where the claim gives
	// nothing but that ("6.6 µs of the 37.2 are escapes"). Direction is then set.
	PublishedDifference *float64 `json:"published_difference,omitzero"`
	// Direction is the claimed sign: "more", "less", or "" to take it from the figures.
	Direction string `json:"direction,omitzero"`
	// Absolute says why the absolute figures of the publication cannot be
	// compared with this machine's ("" = they can).
	Absolute string `json:"absolute,omitzero"`

	Fact  string   `json:"fact,omitzero"`  // Fact: name of a fact the arm reports
	Value string   `json:"value,omitzero"` // Fact: the claimed value
	Op    string   `json:"op,omitzero"`    // Bound: "<=", ">="
	Bound *float64 `json:"bound,omitzero"` // Bound: in the metric's base unit; with Against, of how much more Arm has
	// BoundRatio bounds, in place of Bound, Arm's value over Against's.
	BoundRatio *float64 `json:"bound_ratio,omitzero"`
}

// Paired reports whether what is bounded is of two arms: a ratio, or what one has more.
func (k *Check) Paired() bool { return k.BoundRatio != nil || k.Bound != nil && k.Against != "" }

// CheckKind says how a check is judged.
type CheckKind string

// The kinds of check.
const (
	Effect      CheckKind = "effect"      // direction, ratio and difference of Arm against Against
	Interaction CheckKind = "interaction" // Arm's difference from Against exceeds the sum of the Plus arms' differences
	Fact        CheckKind = "fact"        // a value the arm reports, such as a server default
	Bound       CheckKind = "bound"       // a metric of Arm, or its ratio to or difference from Against's, holds a bound
)
