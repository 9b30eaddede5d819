package watchverb

import (
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/cost/watch"
	"github.com/tarehq/tare/cost/watch/total"
)

// counts are the figures of the services, of which all but the gauges only grow.
type counts struct {
	owners, requests, cpu, counted, perRequest, processes, info, pods, answers []telemetry.Point
}

// figures are what all intervals come to, and the last of them.
func (o *output) figures(i *watch.Interval) *telemetry.Figures {
	var c counts
	last := map[string]*watch.Service{}
	for k := range i.Services {
		last[i.Services[k].Name] = &i.Services[k]
	}
	all := o.totals.All()
	for k := range all {
		c.add(&all[k], last[all[k].Service], o.exemplar(all[k].Service, last[all[k].Service], i))
	}
	own, watched := o.totals.Own()
	one := func(v float64) []telemetry.Point { return []telemetry.Point{{Value: v}} }
	failures := []telemetry.Point{}
	for _, what := range []string{"keep", "otlp", "profile", "upload", "write"} {
		failures = append(failures, telemetry.Point{Labels: labels("what", what), Value: float64(o.failed[what])})
	}
	return &telemetry.Figures{At: i.Begun.Add(i.Duration), Since: o.begun, Families: []telemetry.Family{
		{Name: "owner.cpu", Help: "CPU that an owner spent itself, by cause.", Kind: telemetry.Counter, Unit: "s", Points: c.owners},
		{Name: "service.cpu", Help: "CPU of a service, as the kernel counted it.", Kind: telemetry.Counter, Unit: "s", Points: c.cpu},
		{Name: "service.counted_cpu", Help: "CPU of a service in the intervals in which its requests were counted.", Kind: telemetry.Counter, Unit: "s", Points: c.counted},
		{Name: "requests", Help: "Requests that a service answered, as counted in a part of the time.", Kind: telemetry.Counter, Unit: "{request}", Points: c.requests},
		{Name: "request.cpu", Help: "CPU a request in the last interval.", Kind: telemetry.Gauge, Unit: "s", Points: c.perRequest},
		{Name: "answer", Help: "Times from when data arrives until the service sends.", Kind: telemetry.Histogram, Unit: "s", Points: c.answers},
		{Name: "service.processes", Help: "Processes of a service in the last interval.", Kind: telemetry.Gauge, Unit: "{process}", Points: c.processes},
		{Name: "service.info", Help: "Builds of a service that ran in the last interval.", Kind: telemetry.Gauge, Points: c.info},
		{Name: "service.pod_info", Help: "Pods of a service that ran in the last interval.", Kind: telemetry.Gauge, Points: c.pods},
		{Name: "watch.cpu", Help: "CPU that watching took in its own process.", Kind: telemetry.Counter, Unit: "s", Points: one(watched.CPU)},
		{Name: "watch.kernel", Help: "CPU that taking samples took of the services.", Kind: telemetry.Counter, Unit: "s", Points: one(watched.Kernel)},
		{Name: "watch.memory", Help: "Resident memory of the process that watches.", Kind: telemetry.Gauge, Unit: "By", Points: one(float64(own.Memory))},
		{Name: "watch.rate", Help: "Samples a second of each CPU; 0 if services profile themselves.", Kind: telemetry.Gauge, Unit: "{sample}/s", Points: one(float64(own.Hz))},
		{Name: "watch.backoff", Help: "How often the rate was halved, and intervals doubled, to keep to the budget.", Kind: telemetry.Gauge, Points: one(float64(own.Backoff))},
		{Name: "watch.intervals", Help: "Intervals that were watched.", Kind: telemetry.Counter, Unit: "{interval}", Points: one(float64(watched.Intervals))},
		{Name: "watch.lost", Help: "Samples for which there was no room.", Kind: telemetry.Counter, Unit: "{sample}", Points: one(float64(watched.Lost))},
		{Name: "watch.failures", Help: "What could not be kept, sent or made.", Kind: telemetry.Counter, Unit: "{failure}", Points: failures},
	}}
}

// labels makes labels of names and values by turns.
func labels(pairs ...string) []telemetry.Label {
	all := make([]telemetry.Label, 0, len(pairs)/2)
	for k := 0; k+1 < len(pairs); k += 2 {
		all = append(all, telemetry.Label{Name: pairs[k], Value: pairs[k+1]})
	}
	return all
}

// add adds a service; last is what it did in the last interval, nil if it did not run.
func (c *counts) add(s *total.Total, last *watch.Service, e *telemetry.Exemplar) {
	name := labels("service", s.Service)
	for _, r := range s.Rows {
		c.owners = append(c.owners, telemetry.Point{Labels: labels("service", s.Service, "owner", r.Owner, "kind", r.Kind, "cause", r.Cause), Value: r.CPU})
	}
	c.cpu = append(c.cpu, telemetry.Point{Labels: name, Value: s.CPU, Exemplar: e})
	if s.Counted {
		c.requests = append(c.requests, telemetry.Point{Labels: name, Value: s.Requests})
		c.counted = append(c.counted, telemetry.Point{Labels: name, Value: s.CountedCPU})
	}
	c.processes = append(c.processes, telemetry.Point{Labels: name, Value: float64(s.Processes)})
	if len(s.Answers) > 0 {
		c.answers = append(c.answers, telemetry.Point{Labels: name, Times: newTimes(s.Answers)})
	}
	if last == nil {
		return
	}
	for _, b := range last.Builds {
		c.info = append(c.info, telemetry.Point{Labels: labels("service", s.Service, "build", b.ID, "revision", b.Revision, "go", b.Go), Value: 1})
		for _, pod := range b.Pods {
			c.pods = append(c.pods, telemetry.Point{Labels: labels("service", s.Service, "build", b.ID, "pod", pod), Value: 1})
		}
	}
	if last.Bill.Requests > 0 {
		c.perRequest = append(c.perRequest, telemetry.Point{Labels: name, Value: last.Bill.CPU / 1e9})
	}
}

// exemplar is the profile of the last interval that is kept of a service; nil if none is.
func (o *output) exemplar(service string, last *watch.Service, i *watch.Interval) *telemetry.Exemplar {
	const most = 120 // characters, of 128 that names and values may have together
	path := o.kept[service]
	if path == "" || last == nil || len(path) > most {
		return nil
	}
	return &telemetry.Exemplar{Labels: labels("profile", strings.ReplaceAll(path, `\`, "/")), Value: last.CPU.Seconds(), At: i.Begun.Add(i.Duration)}
}

// bounds of times of answers, in seconds.
var bounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// newTimes has a distribution in few buckets. One that is across a bound counts beyond it,
// and all are taken for their middles: both are off by at most a sixteenth.
func newTimes(all []reply.Bucket) *telemetry.Times {
	t := &telemetry.Times{}
	for _, bound := range bounds {
		t.Buckets = append(t.Buckets, telemetry.Bucket{Most: bound})
	}
	for _, b := range all {
		t.Count += b.Count
		t.Sum += float64(b.Count) * ((b.From + b.Below) / 2).Seconds()
		for k, bound := range bounds {
			if b.Below <= time.Duration(bound*1e9) {
				t.Buckets[k].Count += b.Count
				break
			}
		}
	}
	return t
}
