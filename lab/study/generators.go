package study

import (
	"fmt"
	"regexp"

	"github.com/tarehq/tare/internal/shape"
)

// What only studies of generators say.

// generatorKeys are those of an arm that is a load generator.
func generatorKeys() []shape.Key[Arm] {
	args := func() shape.Of[[]string] { return shape.List(shape.Argument(), 1) }
	return []shape.Key[Arm]{
		shape.Field("closed", "Generators: arguments for a closed loop.", args(), func(a *Arm) *[]string { return &a.Closed }),
		shape.Field("open", "Generators: arguments for a constant rate, whether or not answers come.", args(), func(a *Arm) *[]string { return &a.Open }),
		shape.Field("paced", "Generators: arguments for a closed loop that is held back to a rate.", args(), func(a *Arm) *[]string { return &a.Paced }),
		shape.Field("under", "Generators: a command that runs the program, to which it and its arguments are given.", args(), func(a *Arm) *[]string { return &a.Under }),
		shape.Field("reports", "Generators: where in what it prints the figures are.", reportsShape(), func(a *Arm) *Reports { return &a.Reports }),
	}
}

func reportsShape() shape.Of[Reports] {
	return shape.Object("reports", []shape.Key[Reports]{
		shape.Field("requests", "The number of requests answered.", expression(), func(r *Reports) *string { return &r.Requests }).Must(),
		shape.Field("p50", "The response time's p50.", expression(), func(r *Reports) *string { return &r.P50 }),
		shape.Field("p90", "The response time's p90.", expression(), func(r *Reports) *string { return &r.P90 }),
		shape.Field("p99", "The response time's p99.", expression(), func(r *Reports) *string { return &r.P99 }),
		shape.Field("p999", "The response time's p99.9.", expression(), func(r *Reports) *string { return &r.P999 }),
		shape.Field("max", "The longest response time.", expression(), func(r *Reports) *string { return &r.Max }),
		shape.Field("lag_p99", "The p99 of how late requests began.", expression(), func(r *Reports) *string { return &r.LagP99 }),
		shape.Field("unit", "The unit of times that are printed as plain numbers.", shape.OneOf("units are", "ns", "us", "ms", "s"), func(r *Reports) *string { return &r.Unit }),
	})
}

// expression is a regular expression that finds one figure.
func expression() shape.Of[string] {
	want := "a regular expression as Go's package regexp reads it, with one group for the figure, such as ([0-9]+) requests"
	return shape.Text(shape.Schema{Type: "string", MinLength: 1}, want, func(s string) (string, bool) {
		re, err := regexp.Compile(s)
		return s, err == nil && re.NumSubexp() == 1
	})
}

// generators checks what makes a study one of generators, and that no other
// says so.
func (c *checker) generators() {
	for i := range c.Arms {
		c.generator(fmt.Sprintf("arms[%d]", i), c.Arms[i])
	}
	for i := range c.Workloads {
		c.generated(fmt.Sprintf("workloads[%d]", i), c.Workloads[i])
	}
}

func (c *checker) generator(path string, a Arm) {
	if c.Unread[path] {
		return
	}
	calls := []string{"closed", "open", "paced"}
	if c.Kind != Generators {
		for _, k := range append(calls, "under", "reports") {
			c.forbid(path, k, "it is for load generators; say kind: generators")
		}
		return
	}
	c.forbid(path, "url", "a generator is a program that tare starts")
	if !c.has(path + ".reports") {
		c.Wrong(path, "arm %q lacks the key reports; say where in its output the number of requests is", a.Name)
	}
	if !c.has(path+".closed") && !c.has(path+".open") && !c.has(path+".paced") {
		c.Wrong(path, "arm %q is never called; give its arguments as closed, open or paced", a.Name)
	}
	if c.has(path + ".open") {
		c.forbid(path, "paced", "open says how it is held to a rate already")
	}
}

// generated checks a workload of generators.
func (c *checker) generated(path string, w Workload) {
	if c.Kind != Generators {
		c.forbid(path, "server", "it is for studies that say kind: generators")
		return
	}
	if !c.has(path + ".server") {
		c.Wrong(path, "workload %q lacks the key server: the program that the generators load", w.Name)
	}
	if w.Server != nil {
		c.program(path+".server", *w.Server)
	}
	for _, k := range []string{"loop", "fresh", "timeout", "failures", "idle", "pipeline", "flow"} {
		c.forbid(path, k, "generators do what their arguments say")
	}
	if w.Connections == 0 && !c.Unread[path+".connections"] {
		c.Wrong(path, "workload %q lacks the key connections, which generators are given", w.Name)
	}
	if w.Rate.Share > 0 {
		c.Wrong(path+".rate", "a generator is held to a fixed rate, such as 1000/s")
	}
	if w.Schedule == "poisson" {
		c.Wrong(path+".schedule", "generators share a schedule only if it is closed or constant")
		return
	}
	if len(w.Targets) > 1 {
		c.Wrong(path+".targets[1]", "generators are given one target; leave the others out")
	}
	for _, a := range c.ArmsOf(w) {
		if _, ok := a.Call(w); !ok && (a.Closed != nil || a.Open != nil || a.Paced != nil) {
			c.Wrong(path+".schedule", "arm %q cannot be asked for a %s schedule; give its arguments, or list the arms that can", a.Name, w.Schedule)
		}
	}
}

// Call returns the arguments that make a generator offer the workload, and
// whether it can be asked to.
func (a Arm) Call(w Workload) (args []string, ok bool) {
	args = a.Closed
	if w.Schedule == "constant" {
		args = a.Open
		if args == nil {
			args = a.Paced
		}
	}
	return args, args != nil
}
