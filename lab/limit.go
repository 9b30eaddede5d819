package lab

import (
	"fmt"
	"slices"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// limited says under which workloads trials do not count since the generator came to
// its limit first, and what to ask instead: run again, they come out the same.
func (r *runner) limited() []string {
	if r.Study.Kind == study.Generators {
		return nil // there the arms are what loads
	}
	var all []string
	for _, w := range r.Study.Workloads {
		if !slices.ContainsFunc(r.trials, func(t record.Trial) bool { return t.Workload == w.Name && outrun(t) }) {
			continue
		}
		instead := "offer a lower rate"
		if w.Schedule == "closed" {
			instead = "ask it at a rate that leaves room, such as `schedule: constant` with `rate: 50%`, and compare CPU per request and response times"
		}
		all = append(all, fmt.Sprintf("workload %s: the generator came to its limit before an arm did, and what an arm takes at most is not known of such trials, however often they are run again; %s",
			w.Name, instead))
	}
	return all
}

// outrun reports whether a trial does not count and had the generator at its limit.
func outrun(t record.Trial) bool {
	return t.Block >= 0 && len(t.Invalid) > 0 && t.Metrics["generator_cpu"] > maxGeneratorShare
}
