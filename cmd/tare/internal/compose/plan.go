package compose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
)

// Plan is everything that a study says which a command line asks for.
type Plan struct {
	Name    string // of the study
	Arms    []Service
	Targets []study.Target
	Others  []string // routes that are no targets, for a comment
	Start   ServiceFlags
	Listen  string // "any", a port, or "" for where TARE_ADDR says

	Connections int
	Rate        string // as study files have it: "1000/s" or "50%"; "" = closed loop
	Threshold   string // "1%"
	Metric      string
	WarmUp      time.Duration
	Measure     time.Duration
	Looks       []int
	Fewest      int          // blocks that can decide
	Capture     study.Source // of the captures after the blocks; "" = none
	AA          bool

	Patience     time.Duration // for a service to get ready; 0: as long as any may take
	FindProfiles bool          // AskServices finds out whether they expose net/http/pprof

	imported int     // of the targets, the last ones: those of a file, which a service may refuse
	ignored  []error // what of that file is not asked for
}

// NewPlan is a plan with the usual lengths for services that start so.
func NewPlan(name string, start ServiceFlags) *Plan {
	p := &Plan{Name: name, Start: start, Listen: "any", WarmUp: 300 * time.Millisecond, Measure: time.Second, Looks: []int{8, 12, 18, 30}}
	if start.Port != 0 {
		p.Listen = strconv.Itoa(start.Port)
	}
	return p
}

// workloadName is that of the only workload.
const workloadName = "load"

// Mark is how the file of a plan begins. The command that wrote it follows.
const Mark = "# Written by: "

// lineWriter writes a line of a file.
type lineWriter func(format string, args ...any)

// YAML writes the plan as a study file: what `tare run` reads is what was run.
func (p *Plan) YAML(command string) string {
	var b strings.Builder
	line := lineWriter(func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) })
	line(Mark+"%s", strings.NewReplacer("\n", " ", "\r", " ").Replace(command))
	line("# tare run measures it, tare gate passes or fails it, tare help study-files lists all keys.")
	line("name: %s", p.Name)
	line("title: %s", quote(p.title()))
	if p.AA {
		line("aa: true # the arms may be the same program; without this line that is a mistake, or passes a gate at once")
	}
	line("\n# The programs. Each starts afresh for every trial.")
	line("arms:")
	for i := range p.Arms {
		p.writeArm(line, &p.Arms[i])
	}
	line("control: %s # the others are compared with it", quote(p.Arms[0].Name))
	line("twin: true # measures the control twice: how far do equal programs differ on this machine?")
	line("\n# The load. Each target says what a correct response is; weight: 3 asks for it three times as often.")
	line("workloads:")
	line("  - name: %s", workloadName)
	p.writeSchedule(line)
	line("    connections: %d", p.Connections)
	line("    targets:")
	for i := range p.Targets {
		writeTarget(line, &p.Targets[i])
	}
	if len(p.Others) > 0 {
		line("      # The source also has: %s", strings.Join(p.Others, ", "))
	}
	line("\n# The metric that decides, and the smallest difference that matters.")
	line("primary: {metric: %s, workload: %s}", p.Metric, workloadName)
	line("threshold: %s", p.Threshold)
	line("\n# A trial, and after how many blocks of one trial each the run may stop.")
	line("trial: {warm_up: %s, measure: %s, slice: %s}", p.WarmUp, p.Measure, p.Measure/10)
	line("looks: %s", quote(p.Looks))
	if p.Capture != "" {
		line("\n# Afterwards: which middleware, router or handler costs more? %s", needs(p.Capture))
		line("attribute: {for: 2s, repeat: 6, workloads: {%s: [%s]}}", workloadName, p.Capture)
	}
	return b.String()
}

// needs says what a source of captures takes.
func needs(source study.Source) string {
	if source == study.EBPF {
		return "Needs Linux and root."
	}
	return "Needs net/http/pprof in each program."
}

func (p *Plan) writeSchedule(line lineWriter) {
	switch {
	case p.Rate == "":
		line("    schedule: closed # each connection asks again at once")
	case strings.HasSuffix(p.Rate, "%"):
		line("    schedule: constant")
		line("    rate: %s # of what the slowest arm can do; 1000/s is also possible", p.Rate)
	default:
		line("    schedule: constant")
		line("    rate: %s", p.Rate)
	}
}

// title names the arms.
func (p *Plan) title() string {
	names := make([]string, len(p.Arms)-1)
	for i, a := range p.Arms[1:] {
		names[i] = a.Name
	}
	return strings.Join(names, ", ") + " against " + p.Arms[0].Name
}

func (p *Plan) writeArm(line lineWriter, a *Service) {
	line("  - name: %s", quote(a.Name))
	if a.URL != "" {
		line("    url: %s", quote(a.URL))
		return
	}
	if a.Pkg != "" {
		line("    go: %s", quote(asDirectory(a.Pkg)))
		optional(line, "    ref", a.Ref)
		list(line, "    with", a.With)
		list(line, "    args", a.Args)
	} else {
		list(line, "    command", slices.Concat(a.Command, a.Args))
	}
	list(line, "    env", a.Env)
	if p.Listen == "any" {
		line("    listen: any # the port that it opens")
	} else {
		optional(line, "    listen", p.Listen)
	}
	optional(line, "    ready", p.Start.Ready)
	optional(line, "    before", braces.Replace(p.Start.Before))
	optional(line, "    after", braces.Replace(p.Start.After))
	optional(line, "    dir", p.Start.Workdir)
	optional(line, "    env_file", p.Start.EnvFile)
}

// asDirectory keeps a folder's name from being read as an import path.
func asDirectory(path string) string {
	if looksLikePath(path) {
		return path
	}
	return "./" + path
}

func writeTarget(line lineWriter, t *study.Target) {
	line("      - path: %s", quote(t.Path))
	optional(line, "        method", t.Method)
	if len(t.Header) > 0 {
		line("        header: %s", quote(t.Header))
	}
	optional(line, "        body", t.Body)
	if t.Weight > 1 {
		line("        weight: %d", t.Weight)
	}
	v := t.Verify
	var is []string
	if v.Status != 0 {
		is = append(is, fmt.Sprintf("status: %d", v.Status))
	}
	if v.Length != nil {
		is = append(is, fmt.Sprintf("length: %d", *v.Length))
	}
	if v.SHA256 != "" {
		is = append(is, "sha256: "+v.SHA256)
	}
	if len(is) > 0 {
		line("        verify: {%s}", strings.Join(is, ", "))
	}
}

func optional(line lineWriter, key, value string) {
	if value != "" {
		line("%s: %s", key, quote(value))
	}
}

func list(line lineWriter, key string, values []string) {
	if len(values) > 0 {
		line("%s: %s", key, quote(values))
	}
}

// quote writes a value as JSON, which YAML reads as it is.
func quote(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings, numbers and lists of them always encode
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// HasTwins reports whether two arms are the same in all that was typed: an A/A study.
func (p *Plan) HasTwins() bool {
	for i, a := range p.Arms {
		if slices.ContainsFunc(p.Arms[:i], func(b Service) bool { return a.Text == b.Text }) {
			return true
		}
	}
	return false
}

// DefaultMetric is the one that decides unless another is named: the CPU, which is read of
// processes on Linux alone, or else what responses show at the plan's rate.
func (p *Plan) DefaultMetric(goos string) string {
	switch {
	case goos == "linux" && !slices.ContainsFunc(p.Arms, func(a Service) bool { return a.URL != "" }):
		return "cpu_per_request"
	case p.Rate == "":
		return "throughput"
	}
	return "response_p50"
}

// Study is what the plan says, read as any study file is.
func (p *Plan) Study(command string) (*study.Study, error) {
	s, err := study.Parse(p.Name, []byte(p.YAML(command)))
	if err != nil {
		return nil, fmt.Errorf("planning the comparison: %w", err)
	}
	return s, nil
}

// MostBlocks is the most blocks that are worth while.
const MostBlocks = 30

// Fit plans as many blocks as the time allows (0: as many as are worth while), if the start and
// the end of a service take so long, and says how many those are: p.Fewest and a spare one, or
// more. Without the time for the spare one it is p.Fewest, and without that the number is 0.
func (p *Plan) Fit(budget, restart time.Duration) (said string, blocks int) {
	trials := time.Duration(len(p.Arms) + 1)
	block := trials * (restart + p.WarmUp + p.Measure + lab.Overhead)
	captures := time.Duration(0)
	if p.Capture != "" {
		captures = 6 * (trials - 1) * (restart + p.WarmUp + 2*time.Second)
	}
	pilot := trials * (restart + time.Second)
	n, besides := MostBlocks, pilot+captures
	if budget > 0 {
		n = lab.Fit(budget-pilot, block, captures, p.Fewest+1)
	}
	if n <= p.Fewest+1 && besides+time.Duration(n)*block > budget { // blocks come first
		besides = pilot
	}
	last := min(MostBlocks, max(p.Fewest, n))
	p.Looks = slices.DeleteFunc([]int{8, 12, 18}, func(look int) bool { return look >= last || last == p.Fewest+1 }) // a look before the spare block takes from its error rate
	p.Looks = append(p.Looks, last)
	if n < p.Fewest {
		need := besides + time.Duration(p.Fewest)*block
		return fmt.Sprintf("%s is too short to decide: %d blocks take about %s", budget, p.Fewest, need.Round(time.Second)), 0
	}
	return fmt.Sprintf("at most %d blocks of %d trials, about %s; measuring stops once it is decided", last, trials,
		(besides + time.Duration(last)*block).Round(time.Second)), last
}
