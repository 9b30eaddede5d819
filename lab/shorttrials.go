package lab

import (
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/stats"
)

// A trial is worth its name with one of these behind it. Studies may ask for
// less; their reports then say so.
const (
	leastMeasured = 2 * time.Second
	leastRequests = 20_000
)

// warnTrials puts into the manifest which workloads' trials are short of both, and
// under which the generator came to its limit.
func (r *runner) warnTrials() error {
	found := slices.Concat(r.findShortTrials(), r.limited())
	if len(found) == 0 {
		return nil
	}
	return r.writer.Update(func(m *record.Manifest) {
		for _, text := range found {
			if !slices.Contains(m.Warnings, text) { // as it may be in a resumed run
				m.Warnings = append(m.Warnings, text)
			}
		}
	})
}

func (r *runner) findShortTrials() []string {
	var all []string
	for _, w := range r.Study.Workloads {
		var requests []float64
		for _, t := range r.trials {
			if t.Workload == w.Name && t.Block >= 0 && len(t.Invalid) == 0 {
				requests = append(requests, float64(t.Requests))
			}
		}
		d := r.Study.Measured(w)
		if len(requests) == 0 || d >= leastMeasured || stats.Median(requests) >= leastRequests {
			continue
		}
		all = append(all, fmt.Sprintf("workload %s: a trial measures %s and fewer than %d requests; the figures of a load need %s or that many requests",
			w.Name, d, leastRequests, leastMeasured))
	}
	return all
}
