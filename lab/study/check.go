package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/internal/shape"
)

// checker looks at what a file says as a whole: names that refer to each
// other, and what cannot be measured.
type checker struct {
	*shape.Reader
	*Study
	dir             string            // that files are named from
	arms, workloads []string          // by name; nil when a name could not be read
	programs        map[string]string // the last arm of each
}

func check(r *shape.Reader, s *Study, dir string) {
	c := checker{Reader: r, Study: s, dir: dir, programs: map[string]string{}}
	c.arms = names(len(s.Arms), func(i int) string { return s.Arms[i].Name })
	c.workloads = names(len(s.Workloads), func(i int) string { return s.Workloads[i].Name })
	c.unique("arms", c.arms)
	c.unique("workloads", c.workloads)
	for i := range s.Arms {
		c.arm(i)
	}
	for i := range s.Workloads {
		c.flow(i)
	}
	c.generators()
	c.control()
	for i := range s.Workloads {
		c.workload(i)
	}
	c.primary()
	c.trial("trial", s.Trial)
	c.looks()
	c.quick()
	c.attribute()
	for i := range s.Claims {
		c.claim(i)
	}
	for i := range s.Goals {
		c.goal(i)
	}
}

// names are the names of n things, or nil when there are none or one has none:
// what refers to it may then be right.
func names(n int, name func(int) string) []string {
	if n == 0 {
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
		if all[i] == "" {
			return nil
		}
	}
	return all
}

func (c *checker) unique(path string, all []string) {
	for i, name := range all {
		if first := slices.Index(all, name); first < i {
			c.Wrong(fmt.Sprintf("%s[%d].name", path, i), "%s[%d] is called %q already; names are unique", path, first, name)
		}
	}
}

// refer notes a name that is none of those known, and reports whether it is one.
func (c *checker) refer(path, name, what string, known []string) bool {
	if name == "" || known == nil {
		return false
	}
	if slices.Contains(known, name) {
		return true
	}
	c.Wrong(path, "no %s is called %q; %s", what, name, shape.Choice(name, what+"s", known))
	return false
}

// referAll checks a list of arms or workloads.
func (c *checker) referAll(path string, list []string, what string, known []string) {
	for i, name := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.refer(at, name, what, known)
		if slices.Index(list, name) < i && name != "" {
			c.Wrong(at, "%s %q is listed twice; list it once", what, name)
		}
	}
}

func (c *checker) arm(i int) {
	a, path := c.Arms[i], fmt.Sprintf("arms[%d]", i)
	if c.refer(path+".over", a.Over, "arm", c.arms) && a.Over == a.Name {
		c.Wrong(path+".over", "an arm is not over itself; name the arm without the layer")
	}
	if !c.program(path, a) || c.AA {
		return
	}
	program := a.identity()
	if other, again := c.programs[program]; again {
		c.Wrong(path, "arm %q is arm %q again; arms differ in program, args, build, env, sink, ref, with or how they are started, unless the study says aa: true", a.Name, other)
	}
	c.programs[program] = a.Name
}

// program checks that an arm says which program it is, and reports whether that
// could be read.
func (c *checker) program(path string, a Arm) bool {
	if c.Unread[path] {
		return false
	}
	var said []string
	for _, k := range []string{"go", "rival", "command", "url"} {
		if c.has(path + "." + k) {
			said = append(said, k)
		}
	}
	switch {
	case len(said) == 0:
		c.Wrong(path, "arm %q has no program; give exactly one of go, rival, command, url", a.Name)
		return false
	case len(said) > 1:
		c.Wrong(path+"."+said[1], "arm %q has %s; exactly one program is allowed", a.Name, strings.Join(said, " and "))
		return false
	}
	if said[0] == "command" && slices.Index(a.Command, "") == 0 {
		c.Wrong(path+".command", "arm %q: the first word, which is the program, is empty", a.Name)
	}
	if said[0] == "command" || said[0] == "url" {
		c.forbid(path, "args", "args go with go and rival; a command's arguments are part of command")
		c.forbid(path, "build", "it is for programs that tare builds, which are those of go and rival")
	}
	if said[0] != "go" {
		for _, key := range []string{"ref", "with"} {
			c.forbid(path, key, "it is for programs that tare builds from a directory, which are those of go")
		}
	}
	if said[0] == "url" {
		for _, key := range []string{"env", "sink", "listen", "ready", "before", "after", "dir", "env_file"} {
			c.forbid(path, key, "it is for programs that tare starts")
		}
	}
	return !c.Unread[path+"."+said[0]]
}

// identity is what an arm runs, as far as the declaration tells.
func (a Arm) identity() string {
	sink := a.Sink
	if sink == "discard" {
		sink = ""
	}
	return fmt.Sprintf("%q %q %q %q %q %q %q %q %q %q %q %q %q %q %q", a.Go, a.Rival, a.Command, a.URL, a.Args, a.Build, a.Env, sink,
		a.Ref, a.With, a.Service, a.Closed, a.Open, a.Paced, a.Under)
}

func (c *checker) has(path string) bool { _, ok := c.Stood[path]; return ok }

// forbid notes a key that has no place there.
func (c *checker) forbid(path, key, why string) {
	if c.has(path + "." + key) {
		c.Wrong(path+"."+key, "%s does not belong here: %s", key, why)
	}
}

func (c *checker) control() {
	c.refer("control", c.Control, "arm", c.arms)
	if len(c.arms) == 1 && !c.Twin {
		c.Wrong("arms", "a single arm has nothing to be compared with; give two, or twin: true for a study of the noise floor")
	}
}

// path is that of a workload.
func (c *checker) path(i int) string { return fmt.Sprintf("workloads[%d]", i) }

// workload checks one workload's schedule and arms.
func (c *checker) workload(i int) {
	w, path := c.Workloads[i], c.path(i)
	rated := c.has(path + ".rate")
	switch {
	case w.Flow != nil: // of which it is said already
	case w.Schedule == "closed" && rated:
		c.Wrong(path+".rate", "a closed schedule has no rate: each request follows an answer; leave rate out, or take constant or poisson")
	case (w.Schedule == "constant" || w.Schedule == "poisson") && !rated:
		c.Wrong(path+".schedule", "schedule %s lacks a rate; give one, such as 1000/s or 50%% of capacity, or take closed", w.Schedule)
	}
	if w.Schedule != "" && w.Schedule != "closed" && w.Flow == nil {
		c.forbid(path, "pipeline", "requests sent at once have no starts of their own; take schedule: closed")
	}
	if w.Fresh > 0 {
		c.forbid(path, "pipeline", "requests on new connections are not sent at once; leave fresh out")
	}
	c.referAll(path+".arms", w.Arms, "arm", c.arms)
	if len(w.Arms) > 0 && c.Control != "" && !slices.Contains(w.Arms, c.Control) {
		c.Wrong(path+".arms", "the control %q is missing; every workload needs it, since arms are compared with it", c.Control)
	}
	if w.Measure > 0 {
		c.trial(path+".measure", c.Trial.with(Trial{Measure: w.Measure}))
	}
	if w.Loop == 0 && !c.has(path+".loop") {
		c.forbid(path, "counters", "hardware counters watch the in-process loop, which this workload does not run; give it loop, such as loop: 200ms")
	}
	if len(w.Arms) == 1 && !c.Twin {
		c.Wrong(path+".arms", "a single arm has nothing to be compared with; list another")
	}
	for i, t := range w.Targets {
		c.target(fmt.Sprintf("%s.targets[%d]", path, i), t)
	}
}

func (c *checker) primary() {
	p := c.Primary
	c.refer("primary.workload", p.Workload, "workload", c.workloads)
	if p.Arm != "" && p.Arm == c.Control {
		c.Wrong("primary.arm", "%q is the control, which is what the arm is compared with; name another arm, or none for all", p.Arm)
	}
	if m, _ := MetricNamed(p.Metric); m.Attributed {
		c.Wrong("primary.metric", "%s is measured by profiles after the blocks, but the primary metric decides how many blocks there are: name another", p.Metric)
	}
	if !c.Unread["kind"] && c.Instrumental(p.Metric) {
		c.Wrong("primary.metric", "%s describes the load generator or the host, and arms are not compared by it; name another", p.Metric)
	}
	c.compared("primary.metric", p.Metric, p.Workload)
	c.takesPart("primary.arm", p.Arm, p.Workload)
	c.checkMeasurable("primary.metric", p.Metric)
}

// checkMeasurable refuses a primary metric that only an arm's process reports where an arm
// is a URL: one of the two, or all that there are beside the control.
func (c *checker) checkMeasurable(path, metric string) {
	if m, ok := MetricNamed(metric); !ok || m.Outside {
		return
	}
	var attached, started bool // beside the control
	for _, a := range c.Arms {
		switch {
		case a.URL != "" && (a.Name == c.Control || a.Name == c.Primary.Arm):
			c.Wrong(path, "arm %q is a URL, whose process tare does not see, and %s comes from the process; name a metric of the answers, such as response_p99", a.Name, metric)
			return
		case a.URL != "":
			attached = true
		case a.Name != c.Control:
			started = true
		}
	}
	if attached && !started {
		c.Wrong(path, "all arms beside the control are URLs, whose processes tare does not see, and %s comes from the process; name a metric of the answers, such as response_p99", metric)
	}
}

// compared checks that a metric can tell arms apart under a workload.
func (c *checker) compared(path, metric, workload string) {
	i := slices.Index(c.workloads, workload)
	if i < 0 {
		return
	}
	w := c.Workloads[i]
	at := fmt.Sprintf("workloads[%d]", i)
	if c.has(at + ".loop") {
		w.Loop = max(w.Loop, 1) // what could not be read is told where it stands
	}
	if c.has(at + ".idle") {
		w.Idle = max(w.Idle, 1)
	}
	if why := w.explainMissing(metric); why != "" {
		c.Wrong(path, "%s", why)
	}
}

// takesPart checks that an arm known by name runs under a workload.
func (c *checker) takesPart(path, arm, workload string) {
	if !c.refer(path, arm, "arm", c.arms) {
		return
	}
	i := slices.Index(c.workloads, workload)
	if i >= 0 && c.Workloads[i].Arms != nil && !slices.Contains(c.Workloads[i].Arms, arm) {
		c.Wrong(path, "arm %q is not among the arms of workload %q: %s", arm, workload, strings.Join(c.Workloads[i].Arms, ", "))
	}
}

// trial checks that a trial has slices enough to tell whether it was steady.
func (c *checker) trial(path string, t Trial) {
	if t.MeasureOr() < 10*t.SliceOr() {
		c.Wrong(path, "%s of measuring in slices of %s makes fewer than 10 slices; measure at least %s, or cut slice", t.MeasureOr(), t.SliceOr(), 10*t.SliceOr())
	}
}

func (c *checker) looks() {
	for i := 1; i < len(c.Looks); i++ {
		if c.Looks[i] <= c.Looks[i-1] && c.Looks[i] > 0 {
			c.Wrong(fmt.Sprintf("looks[%d]", i), "a look after %d blocks follows one after %d; looks increase, such as [8, 12, 18, 30]", c.Looks[i], c.Looks[i-1])
		}
	}
}

// quick checks that the short form is a study of its own.
func (c *checker) quick() {
	q := c.Quick
	c.referAll("quick.arms", q.Arms, "arm", c.arms)
	c.referAll("quick.workloads", q.Workloads, "workload", c.workloads)
	c.keeps("quick.arms", q.Arms, "control", c.Control)
	c.keeps("quick.arms", q.Arms, "primary arm", c.Primary.Arm)
	c.keeps("quick.workloads", q.Workloads, "primary workload", c.Primary.Workload)
	if len(q.Arms) == 1 && !c.Twin {
		c.Wrong("quick.arms", "a single arm has nothing to be compared with; list another")
	}
	// Of names that are no arms, and of a primary workload that is left out, it is said above.
	named := (q.Workloads == nil || slices.Contains(q.Workloads, c.Primary.Workload)) &&
		!slices.ContainsFunc(q.Arms, func(name string) bool { return !slices.Contains(c.arms, name) })
	if p := c.Primary.Workload; named && len(q.Arms) > 1 && c.compares(p) && !c.QuickForm().compares(p) {
		c.Wrong("quick.arms", "none but the control is left under the primary workload %q; keep an arm that it is for", p)
	}
	if c.has("quick.trial") {
		c.trial("quick.trial", c.Trial.with(q.Trial))
	}
	if q.Trial.Slice > 0 && q.Trial.Measure == 0 {
		c.slices()
	}
}

// slices checks that the short form's slices fit the workloads that are measured for
// times of their own.
func (c *checker) slices() {
	for _, w := range c.Workloads {
		if t := c.Trial.with(Trial{Measure: w.Measure, Slice: c.Quick.Trial.Slice}); w.Measure > 0 &&
			(c.Quick.Workloads == nil || slices.Contains(c.Quick.Workloads, w.Name)) && t.MeasureOr() < 10*t.SliceOr() {
			c.Wrong("quick.trial.slice", "workload %q measures %s, which slices of %s make fewer than 10 of; cut slice, or give measure beside it",
				w.Name, t.MeasureOr(), t.SliceOr())
		}
	}
}

func (c *checker) keeps(path string, list []string, what, name string) {
	if len(list) > 0 && name != "" && !slices.Contains(list, name) {
		c.Wrong(path, "the %s %q is missing; the short form needs it", what, name)
	}
}
