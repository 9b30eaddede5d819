package study

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Instrumental reports whether a metric describes the load generator or the host
// here, not the arms: they are not compared by it.
func (s *Study) Instrumental(metric string) bool {
	if s.Kind == Servers && (strings.HasPrefix(metric, "generator_") || strings.HasPrefix(metric, "lag_")) {
		return true
	}
	return strings.HasPrefix(metric, "host_")
}

// CheckComparable returns why no workload compares an arm with the control by a metric,
// whatever is measured; nil where one may. The error names what is missing. It is
// safe to call concurrently.
func (s *Study) CheckComparable(metric string) error {
	m, ok := MetricNamed(metric)
	switch {
	case !ok:
		return fmt.Errorf("no metric is called %q", metric)
	case s.Instrumental(metric):
		return fmt.Errorf("%s describes the load generator or the host, not an arm", metric)
	}
	var first string
	for _, w := range s.Workloads {
		why := cmp.Or(w.explainMissing(metric), s.explainUnseen(m, w))
		if why == "" {
			return nil
		}
		first = cmp.Or(first, why)
	}
	return errors.New(first)
}

// explainMissing says what a workload lacks that arms are compared by a metric under it; "" is
// nothing.
func (w Workload) explainMissing(metric string) string {
	switch {
	case metric == "loop_cache_hits" && !w.Counters:
		return fmt.Sprintf("%s is counted by the processor, which workload %q does not ask; give it counters: true", metric, w.Name)
	case slices.Contains([]string{"heap_live", "stack_live", "stack_memory"}, metric) && !w.Live:
		return fmt.Sprintf("%s is what a collection amid the load leaves, and workload %q has none; give it live: true", metric, w.Name)
	case strings.HasPrefix(metric, "loop_") && w.Loop == 0:
		return fmt.Sprintf("%s comes from the in-process loop, which workload %q does not run; give it loop, such as loop: 200ms", metric, w.Name)
	case metric == "idle_connection" && w.Idle == 0:
		return fmt.Sprintf("%s is measured on idle connections, and workload %q has none: give it idle, such as idle: 10000", metric, w.Name)
	}
	return cmp.Or(w.explainOperation(metric), w.Unfit(metric))
}

// Unfit says why the schedule of a workload lets no arms be compared by a metric, though
// it is measured; "" is no reason.
func (w Workload) Unfit(metric string) string {
	switch {
	case strings.HasPrefix(Plain(metric), "response_") && w.Schedule == "closed":
		return fmt.Sprintf("%s is compared at equal offered rates only, and workload %q is closed; name one with schedule constant or poisson", metric, w.Name)
	case metric == "throughput" && w.Schedule != "" && w.Schedule != "closed":
		return fmt.Sprintf("the throughput under workload %q is the rate that it offers; name a closed one", w.Name)
	}
	return ""
}

// explainUnseen says why a metric is not known of the control and of another arm under a
// workload; "" where it may be.
func (s *Study) explainUnseen(m Metric, w Workload) string {
	arms := s.ArmsOf(w)
	if len(arms) < 2 {
		return fmt.Sprintf("workload %q has no arm beside the control", w.Name)
	}
	profiled := slices.DeleteFunc(slices.Clone(arms), func(a Arm) bool { return !s.Attribute.covers(a.Name, w.Name) })
	started := slices.DeleteFunc(slices.Clone(arms), func(a Arm) bool { return a.URL != "" })
	switch {
	case m.Attributed && !s.comparable(profiled):
		return fmt.Sprintf("%s is measured by profiles, but attribute does not ask for them from the control and another arm under workload %q", m.Name, w.Name)
	case !m.Outside && !s.comparable(started):
		return fmt.Sprintf("%s comes from the process, which tare does not see of an arm that is a URL; name a metric of the answers, such as response_p99", m.Name)
	}
	return ""
}

// comparable reports whether the control and another are among arms.
func (s *Study) comparable(arms []Arm) bool {
	return len(arms) > 1 && slices.ContainsFunc(arms, func(a Arm) bool { return a.Name == s.Control })
}
