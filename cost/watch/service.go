package watch

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/cost/watch/past"
)

// groups adds processes up by the build that they run.
type groups struct {
	list  []Seen
	of    map[Build]int // place in list
	over  time.Duration
	begun time.Time
}

func newGroups(over time.Duration, begun time.Time) *groups {
	return &groups{of: map[Build]int{}, over: over, begun: begun}
}

// at is what was seen of a build.
func (g *groups) at(b Build) *Seen {
	k, ok := g.of[b]
	if !ok {
		k = len(g.list)
		g.of[b] = k
		g.list = append(g.list, Seen{Build: b, Window: cost.Window{Duration: g.over}})
	}
	return &g.list[k]
}

// add adds a process. Its requests are as many as its CPU makes of those that were counted
// in a part of the time, or in an earlier interval if they were not counted in this one; of
// a build of which not all processes are counted they are not known.
func (g *groups) add(in *instance, p *bpf.Process, n counted) {
	s := g.at(in.Build)
	s.PIDs = append(s.PIDs, p.PID)
	if in.pod != "" && !slices.Contains(s.Pods, in.pod) {
		s.Pods = append(s.Pods, in.pod)
	}
	s.CPU += p.CPU
	s.Stacks = append(s.Stacks, p.Stacks...)
	switch {
	case n.CPU > 0:
		in.last, in.counted = n, g.begun
	case n.Windows == 0:
		n = in.last
	}
	s.uncounted = s.uncounted || n.Windows == 0 && p.CPU > 0
	if n.CPU > 0 {
		requests := n.Requests * p.CPU.Seconds() / n.CPU.Seconds()
		s.Window.Requests += requests
		s.Window.Margin = math.Hypot(s.Window.Margin, requests*n.Margin)
		if s.Counted.IsZero() || in.counted.Before(s.Counted) {
			s.Counted = in.counted
		}
	}
}

// done is what was seen of all builds.
func (g *groups) done() []Seen {
	for k := range g.list {
		if s := &g.list[k]; s.uncounted {
			s.Window.Requests, s.Window.Margin, s.Counted = 0, 0, time.Time{}
		}
	}
	return g.list
}

// addAnswers adds the times of answers that processes gave.
func (g *groups) addAnswers(all map[*instance][]reply.Bucket) {
	for in, times := range all {
		s := g.at(in.Build)
		s.Answers = AddAnswers(s.Answers, times)
	}
}

// AddAnswers adds distributions of times up, whose buckets are the same.
func AddAnswers(a, b []reply.Bucket) []reply.Bucket {
	sum := map[time.Duration]reply.Bucket{}
	for _, x := range slices.Concat(a, b) {
		at := sum[x.From]
		sum[x.From] = reply.Bucket{From: x.From, Below: x.Below, Count: at.Count + x.Count}
	}
	return slices.SortedFunc(maps.Values(sum), func(x, y reply.Bucket) int { return cmp.Compare(x.From, y.From) })
}

// Quantile is a time that a share of the answers was no longer than, to a sixteenth; 0 of
// none.
func Quantile(times []reply.Bucket, q float64) time.Duration {
	var all, so uint64
	for _, b := range times {
		all += b.Count
	}
	rank := uint64(math.Ceil(q * float64(all)))
	for _, b := range times {
		if so += b.Count; so >= rank && rank > 0 {
			return (b.From + b.Below) / 2
		}
	}
	return 0
}

// bills charges what was seen, service by service, and forgets services that have gone.
func (w *Watcher) bills(all []Seen) []Service {
	by := map[string][]Seen{}
	for _, s := range all {
		by[s.Service] = append(by[s.Service], s)
	}
	var services []Service
	for name, builds := range by {
		at := w.past[name]
		if at == nil {
			at = past.New()
			w.past[name] = at
		}
		services = append(services, newService(name, builds, at))
	}
	maps.DeleteFunc(w.past, func(name string, _ *past.Chains) bool { return by[name] == nil })
	slices.SortFunc(services, func(a, b Service) int { return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(a.Name, b.Name)) })
	return services
}

// newService adds the builds of a service up.
func newService(name string, builds []Seen, at *past.Chains) Service {
	slices.SortFunc(builds, func(a, b Seen) int { return cmp.Compare(a.ID, b.ID) })
	s := Service{Name: name, Builds: builds}
	window := cost.Window{Duration: builds[0].Window.Duration}
	counted := true
	var stacks []cost.Stack
	for _, b := range builds {
		s.CPU += b.CPU
		stacks = append(stacks, b.Stacks...)
		s.Answers = AddAnswers(s.Answers, b.Answers)
		counted = counted && (b.Window.Requests > 0 || b.CPU == 0)
		window.Requests += b.Window.Requests
		window.Margin = math.Hypot(window.Margin, b.Window.Margin)
	}
	if !counted {
		window.Requests, window.Margin = 0, 0
	}
	s.Bill, s.Rules = at.Bill(stacks, window), at.Rules()
	s.Bill.Source = name
	s.Bill.NamePackages(builds[len(builds)-1].module, builds[len(builds)-1].program)
	for _, b := range builds {
		for _, warning := range b.Warnings {
			s.Bill.Warnings = append(s.Bill.Warnings, warning.Error())
		}
	}
	return s
}
