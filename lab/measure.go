package lab

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// loadOptions are the load engine's for a workload against an arm.
func (r *runner) loadOptions(w study.Workload, base string) load.Options {
	o := load.Options{
		Connections:    w.Connections,
		Duration:       r.Study.Measured(w),
		WarmUp:         r.Study.Trial.WarmUpOr(),
		Slice:          r.Study.Trial.SliceOr(),
		Timeout:        w.TimeoutOr(),
		NewConnections: w.Fresh,
		Pipeline:       w.Pipeline,
		Seed:           r.Seed,
		TLS:            answer.TLS(base),
	}
	if r.pins.Disjoint {
		o.CPUs = r.pins.Instrument
		o.Threads = len(o.CPUs)
	}
	switch w.Schedule {
	case "constant":
		o.Schedule = pace.Constant(r.rates[w.Name])
	case "poisson":
		o.Schedule = pace.Poisson(r.rates[w.Name], r.Seed)
	}
	for _, g := range w.Targets {
		o.Targets = append(o.Targets, target(base, g))
	}
	return o
}

func target(base string, g study.Target) load.Target {
	t := load.Target{Method: g.Method, URL: base + g.Path, Body: []byte(g.Body), Weight: g.Weight}
	for _, name := range slices.Sorted(maps.Keys(g.Header)) {
		t.Header = append(t.Header, load.Field{Name: name, Value: g.Header[name]})
	}
	v := g.Verify
	t.Verify = load.Verify{Status: cmp.Or(v.Status, 200), Contains: v.Contains, Length: v.Length, SHA256: v.SHA256}
	for _, name := range slices.Sorted(maps.Keys(v.Header)) {
		t.Verify.Header = append(t.Verify.Header, load.Field{Name: name, Value: v.Header[name]})
	}
	return t
}

// keep turns what was read into the trial's metrics and verdict of validity.
func (s *session) keep(t *record.Trial, res *load.Result) {
	t.Elapsed = res.Elapsed
	t.Requests = res.Counts.Answered()
	for _, sl := range res.Series {
		t.Series = append(t.Series, record.Slice{
			AtMs: float64(sl.At) / float64(time.Millisecond), Answered: sl.Answered, Failed: sl.Failed,
			P50: float64(sl.P50), P99: float64(sl.P99),
		})
	}
	for _, w := range res.Warnings {
		t.Warnings = append(t.Warnings, w.Error())
	}
	if n := res.Counts.Failed(); n > 0 {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%d of %s failed", n, unit.Plural(res.Counts.Scheduled, "request")))
	}
	t.Steady = steady(res) || s.seen != nil && s.seen.Varies
	s.keepOperations(t)
	if s.extended && !t.Steady {
		t.Warnings = append(t.Warnings, "not steady, also when measured again")
	}
	t.Invalid = append(t.Invalid, s.faults(res)...)
	t.Readings = s.readings(res)
	if t.Requests == 0 {
		return
	}
	loadMetrics(t.Metrics, res)
	if err := cmp.Or(s.before.untold, s.after.untold); err != nil { // an arm so busy still has CPU, memory and answers
		t.Warnings = append(t.Warnings, fmt.Sprintf("the arm's own metrics are missing: %v", err))
		s.before.metrics, s.after.metrics = nil, nil
	}
	served := t.Requests
	if s.seen != nil {
		s.seen.Metrics(t.Metrics)
		served = max(1, res.Within+res.Carried) // users may stay long after the measured part
	} else {
		connectionMetrics(t.Metrics, res)
	}
	if s.w.Schedule != "closed" && s.w.Flow == nil {
		t.Metrics["throughput"] = achieved(res, s.r.rates[s.w.Name])
	}
	if left := responseMetrics(t.Metrics, t.Readings.Times, s.w); len(left) > 0 {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s: the generator's lag is more than %.0f %% of it",
			strings.Join(left, ", "), 100*record.MaxLagShare))
	}
	s.specimenMetrics(t.Metrics, float64(served))
	if s.seen == nil { // users go on after the measured part: what they ask for then was not put off
		s.deferred(t.Metrics, float64(served))
	}
}

// keepOperations puts what became of each operation on record.
func (s *session) keepOperations(t *record.Trial) {
	if s.seen == nil {
		return
	}
	for i := range s.seen.Operations {
		op := &s.seen.Operations[i]
		c := &op.Counts
		t.Operations = append(t.Operations, record.Operation{
			Name: op.Name, Requests: c.Answered(), Failed: c.Failed() + c.Dropped, Unverified: c.Unverified,
		})
		if len(op.Causes) > 0 {
			t.Warnings = append(t.Warnings, op.Name+": "+strings.Join(op.Causes, "; "))
		}
	}
}

// readings are what the metrics and the faults are made from.
func (s *session) readings(res *load.Result) *record.Readings {
	c := &res.Counts
	times := map[string]record.Lagged{}
	addLagged(times, "", res.Response, res.Late)
	if s.seen != nil {
		for i := range s.seen.Operations {
			op := &s.seen.Operations[i]
			addLagged(times, op.Name+"/", op.Response, res.Late)
		}
	}
	if len(times) == 0 {
		times = nil
	}
	return &record.Readings{
		Window: res.Window, Within: res.Within, Carried: res.Carried, InTime: res.InTime,
		Scheduled: c.Scheduled, Failed: c.Failed(), Dropped: c.Dropped, Unverified: c.Unverified, MeanFlight: res.MeanFlight,
		Threads: res.Threads, CPU: res.CPU, Spun: res.Spun,
		Before: s.before.spent(), After: s.after.spent(), Times: times,
	}
}

func (m *mark) spent() record.CPU {
	return record.CPU{Arm: m.usage.CPU, Tare: m.own, Busy: m.cpus.Busy, Idle: m.cpus.Idle, Stolen: m.cpus.Stolen, Capacity: m.cpus.Capacity}
}

// loadMetrics are those that the generator saw.
func loadMetrics(m map[string]float64, res *load.Result) {
	c := res.Counts
	m["throughput"] = res.Throughput()
	m["service_p50"] = float64(res.Service.Quantile(.5))
	m["service_p99"] = float64(res.Service.Quantile(.99))
	m["errors"] = float64(c.Failed()+c.Dropped+c.Unverified) / float64(c.Scheduled)
	if res.Late.Count() > 0 {
		m["lag_p99"] = float64(res.Late.Quantile(.99))
	}
	m["generator_cpu"] = res.Busy()
	m["generator_cpu_per_request"] = float64(res.CPU-res.Spun) / float64(c.Answered())
	m["generator_rss"] = float64(res.MaxRSS)
}

// connectionMetrics are those that users of a flow do not see.
func connectionMetrics(m map[string]float64, res *load.Result) {
	c := res.Counts
	m["first_byte_p50"] = float64(res.FirstByte.Quantile(.5))
	m["answer_bytes"] = float64(res.BytesIn) / float64(max(1, c.Answered()))
	m["reuse"] = float64(res.Reused) / float64(max(1, c.Answered()+c.Failed()))
	m["peak_flight"] = float64(res.PeakFlight)
	if n := res.Full + res.Resumed; n > 0 {
		m["handshake_p50"], m["resumed"] = float64(res.Handshake.Quantile(.5)), float64(res.Resumed)/float64(n)
	}
}

// responseMetrics are the response times, except those that say more of the
// generator's lag than of the arm; their names are returned, those of operations in one. What
// an arm costs in CPU does not depend on when it was asked, so such a trial still counts.
func responseMetrics(m map[string]float64, times map[string]record.Lagged, w study.Workload) (left []string) {
	names := append([]string{"response_mean"}, quantileNames()...)
	put := func(prefix string) (left []string) {
		for _, name := range names {
			l, ok := times[prefix+name]
			switch {
			case !ok:
			case l.Late(l.Response):
				left = append(left, name)
			default:
				m[prefix+name] = l.Response
			}
		}
		return left
	}
	left = put("")
	if w.Flow == nil {
		return left
	}
	n := 0
	for _, op := range w.Flow.Operations {
		n += len(put(op + "/"))
	}
	if n > 0 {
		left = append(left, "and times of operations")
	}
	return left
}

// addLagged adds response times with the generator's lag at each, which is 0 in a closed
// loop; prefix begins the names of metrics. Quantiles that too few requests are behind are
// left out.
func addLagged(times map[string]record.Lagged, prefix string, response, lag *hist.Hist) {
	if response.Count() == 0 {
		return
	}
	times[prefix+"response_mean"] = record.Lagged{Response: response.Mean(), Lag: lag.Mean()}
	for _, r := range responseQuantiles {
		if spec, ok := study.MetricNamed(prefix + r.metric); ok && response.Count() >= uint64(spec.Requests) {
			times[prefix+r.metric] = record.Lagged{Response: float64(response.Quantile(r.q)), Lag: float64(lag.Quantile(r.q))}
		}
	}
}

func quantileNames() (names []string) {
	for _, r := range responseQuantiles {
		names = append(names, r.metric)
	}
	return names
}

var responseQuantiles = [...]struct {
	metric string
	q      float64
}{
	{"response_p50", .5}, {"response_p90", .9}, {"response_p95", .95}, {"response_p99", .99},
	{"response_p999", .999}, {"response_p9999", .9999}, {"response_max", 1},
}

// specimenMetrics are those that the kernel and the arm itself told, per
// request over the measured part.
func (s *session) specimenMetrics(m map[string]float64, requests float64) {
	b, a := s.before.usage, s.after.usage
	if s.before.err == nil && s.after.err == nil && a.CPU > 0 {
		// Threads and children that ended may have taken theirs along: of less than
		// before nothing is known.
		per := func(metric string, before, after uint64) {
			if after >= before {
				m[metric] = float64(after-before) / requests
			}
		}
		per("cpu_per_request", uint64(b.CPU), uint64(a.CPU))
		per("switches_per_request", b.Voluntary+b.Involuntary, a.Voluntary+a.Involuntary)
		per("faults_per_request", b.MinorFaults+b.MajorFaults, a.MinorFaults+a.MajorFaults)
		m["rss_peak"] = float64(a.PeakRSS)
		m["threads"] = float64(a.Threads)
	}
	if u, err := s.proc.Usage(true); err == nil && u.PSS > 0 {
		m["pss"] = float64(u.PSS)
	}
	if socks, err := s.proc.Sockets(); err == nil {
		m["time_wait"] = float64(socks["TIME_WAIT"])
	}
	per := func(metric, runtime string, scale float64) {
		before, ok := s.before.metrics[runtime]
		if after, ok2 := s.after.metrics[runtime]; ok && ok2 {
			m[metric] = (after - before) * scale / requests
		}
	}
	per("alloc_bytes", "/gc/heap/allocs:bytes", 1)
	per("alloc_objects", "/gc/heap/allocs:objects", 1)
	per("gc_per_10k", "/gc/cycles/total:gc-cycles", 1e4)
	per("collector_bytes", "collector/bytes", 1e3)
	s.insideMetrics(m, requests)
	s.gcShare(m)
	s.residual(m, requests)
	if part, known := s.after.cpus.Withheld(s.before.cpus); known {
		m["host_withheld"] = part
	}
}

// residual is what the CPUs did outside the arm's processes and this one, such as for an arm elsewhere.
func (s *session) residual(m map[string]float64, requests float64) {
	b, a := s.before.spent(), s.after.spent()
	if a.Capacity == 0 || a.Tare == 0 || a.Arm == 0 || s.before.err != nil || s.after.err != nil {
		return // the system does not report it, or the arm is a URL
	}
	if rest := s.after.cpus.Used(s.before.cpus) - (a.Arm - b.Arm) - (a.Tare - b.Tare); rest > -record.Unsure {
		m["residual_cpu"] = float64(rest) / requests // else idle time is counted at ticks, too
	}
}

// After the load an arm is looked at until it rests, or for so long at most.
const (
	restLook  = 20 * time.Millisecond
	restLooks = 2   // in a row at which it rests
	restShare = 0.1 // of one CPU: an arm that uses less rests
	restMost  = time.Second
)

// deferred is what the arm's processes did after the measured part, until they rested: work
// that they had put off is no part of their CPU per request.
func (s *session) deferred(m map[string]float64, requests float64) {
	b := s.after.usage.CPU
	if s.after.err != nil || b == 0 {
		return // the system does not report it, or the arm is a URL
	}
	last, rested := b, 0
	for begun := time.Now(); rested < restLooks && time.Since(begun) < restMost; rested++ {
		time.Sleep(restLook)
		u, err := s.proc.Usage(false)
		if err != nil || u.CPU < b { // it has ended, or a child took its own along
			return
		}
		m["deferred_cpu"] = float64(u.CPU-b) / requests
		if float64(u.CPU-last) > restShare*float64(restLook) {
			rested = -1
		}
		last = u.CPU
	}
}

func (s *session) gcShare(m map[string]float64) {
	delta := func(name string) float64 { return s.after.metrics[name] - s.before.metrics[name] }
	busy := delta("/cpu/classes/total:cpu-seconds") - delta("/cpu/classes/idle:cpu-seconds")
	if busy > 0 {
		m["gc_cpu"] = delta("/cpu/classes/gc/total:cpu-seconds") / busy
	}
}

// steady applies the steady-state rule to the throughput of the slices. The last one
// holds what came after the measured part, too, which is no part of it.
func steady(res *load.Result) bool {
	rates := make([]float64, 0, len(res.Series))
	for _, sl := range res.Series {
		rates = append(rates, float64(sl.Answered))
	}
	if n := len(rates); n > 0 {
		rates[n-1] = max(0, rates[n-1]-float64(res.Counts.Answered()-res.Within))
	}
	return stats.Steady(rates).OK
}
