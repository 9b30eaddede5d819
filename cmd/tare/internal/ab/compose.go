package ab

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/study"
)

// plan is everything that the study of one command line says.
type plan struct {
	arms    []service
	targets []study.Target
	set     setting

	connections int
	rate        string // as study files have it: "1000/s" or "50%"; "" = closed loop
	threshold   string // "1%"
	metric      string
	warmUp      time.Duration
	measure     time.Duration
	looks       []int
	capture     string // source of the captures after the blocks; "" = none
	aa          bool
}

// setting is what all services that tare starts have in common.
type setting struct {
	listen        string // "any", or a port
	ready         string
	before, after string
	dir, envFile  string
}

// workloadName is that of the only workload.
const workloadName = "load"

// yaml writes the plan as a study file: what `tare run` reads is what was run.
func (p *plan) yaml(command string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Written by: %s", strings.NewReplacer("\n", " ", "\r", " ").Replace(command))
	line("name: ab")
	line("title: %s", quote(p.title()))
	if p.aa {
		line("aa: true")
	}
	line("arms:")
	for i := range p.arms {
		p.writeArm(line, &p.arms[i])
	}
	line("control: %s", quote(p.arms[0].name))
	line("twin: true")
	line("workloads:")
	line("  - name: %s", workloadName)
	if p.rate == "" {
		line("    schedule: closed")
	} else {
		line("    schedule: constant")
		line("    rate: %s", p.rate)
	}
	line("    connections: %d", p.connections)
	line("    targets:")
	for i := range p.targets {
		writeTarget(line, &p.targets[i])
	}
	line("primary: {metric: %s, workload: %s}", p.metric, workloadName)
	line("threshold: %s", p.threshold)
	line("trial: {warm_up: %s, measure: %s, slice: %s}", p.warmUp, p.measure, p.measure/10)
	line("looks: %s", quote(p.looks))
	if p.capture != "" {
		line("attribute: {for: 2s, repeat: 6, workloads: {%s: [%s]}}", workloadName, p.capture)
	}
	return b.String()
}

// title names the arms.
func (p *plan) title() string {
	names := make([]string, len(p.arms)-1)
	for i, a := range p.arms[1:] {
		names[i] = a.name
	}
	return strings.Join(names, ", ") + " against " + p.arms[0].name
}

func (p *plan) writeArm(line func(string, ...any), a *service) {
	line("  - name: %s", quote(a.name))
	if a.url != "" {
		line("    url: %s", quote(a.url))
		return
	}
	if a.pkg != "" {
		line("    go: %s", quote(asDirectory(a.pkg)))
		optional(line, "    ref", a.ref)
		list(line, "    with", a.with)
		list(line, "    args", a.args)
	} else {
		list(line, "    command", append(append([]string{}, a.command...), a.args...))
	}
	list(line, "    env", a.env)
	s := &p.set
	optional(line, "    listen", s.listen)
	optional(line, "    ready", s.ready)
	optional(line, "    before", s.before)
	optional(line, "    after", s.after)
	optional(line, "    dir", s.dir)
	optional(line, "    env_file", s.envFile)
}

// asDirectory keeps a folder's name from being read as an import path.
func asDirectory(path string) string {
	if looksLikePath(path) {
		return path
	}
	return "./" + path
}

func writeTarget(line func(string, ...any), t *study.Target) {
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

func optional(line func(string, ...any), key, value string) {
	if value != "" {
		line("%s: %s", key, quote(value))
	}
}

func list(line func(string, ...any), key string, values []string) {
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
