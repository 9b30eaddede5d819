package study

import (
	"slices"
	"strings"

	"github.com/tarehq/tare/stats/unit"
)

// Metric is one number that a trial can yield.
type Metric struct {
	Name   string // as in trials.jsonl and study files
	Title  string // for people
	Unit   string // a base unit of package unit
	Higher bool   // higher is better
	// Requests that a trial needs before the metric may be shown (quantiles); 0 = none.
	Requests int
	// Attributed is told by captures, not by trials.
	Attributed bool
	// Residual is CPU time beside that per request: compared by difference, and sized as that.
	Residual bool
	Grain    float64 // the least difference that matters where values are about 0, in Unit
	Outside  bool    // told of what tare did not start, too: of an arm that is a URL
	Each     bool    // told of each operation of a flow, too, by the name OPERATION/NAME
	// Operation that it is told of; "" = all requests.
	Operation string
}

// Metrics are all metrics in the order in which they are shown.
func Metrics() []Metric { return metrics[:] }

// MetricNamed returns the metric of that name.
func MetricNamed(name string) (Metric, bool) {
	op, plain := cutOperation(name)
	for _, m := range metrics {
		if m.Name == plain && (op == "" || m.Each) {
			return m.of(op), true
		}
	}
	return Metric{}, false
}

// Metrics are all that the study's trials can yield, in the order in which they are shown.
func (s *Study) Metrics() []Metric {
	all := Metrics()
	for _, w := range s.Workloads {
		if w.Flow == nil {
			continue
		}
		for _, op := range w.Flow.Operations {
			for _, m := range metrics {
				if m = m.of(op); m.Each && !slices.Contains(all, m) {
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// Plain is a metric's name without its operation.
func Plain(name string) string { _, plain := cutOperation(name); return plain }

// cutOperation parts the name of a metric from its operation, which may be "".
func cutOperation(name string) (op, plain string) {
	i := strings.LastIndexByte(name, '/')
	return name[:max(0, i)], name[i+1:]
}

// of is the metric told of an operation.
func (m Metric) of(op string) Metric {
	if op != "" {
		m.Name, m.Title, m.Operation = op+"/"+m.Name, op+": "+m.Title, op
	}
	return m
}

var metrics = [...]Metric{
	{Name: "throughput", Title: "throughput", Unit: unit.PerSecond, Higher: true, Outside: true},
	{Name: "cpu_per_request", Title: "CPU per request", Unit: unit.Nanoseconds},
	{Name: "residual_cpu", Title: "CPU per request outside arm and generator", Unit: unit.Nanoseconds, Residual: true},
	{Name: "deferred_cpu", Title: "CPU per request after the load", Unit: unit.Nanoseconds, Residual: true},
	{Name: "response_mean", Title: "response time, mean", Unit: unit.Nanoseconds, Outside: true, Each: true},
	{Name: "response_p50", Title: "response time, p50", Unit: unit.Nanoseconds, Requests: 20, Outside: true, Each: true},
	{Name: "response_p90", Title: "response time, p90", Unit: unit.Nanoseconds, Requests: 100, Outside: true, Each: true},
	{Name: "response_p95", Title: "response time, p95", Unit: unit.Nanoseconds, Requests: 200, Outside: true},
	{Name: "response_p99", Title: "response time, p99", Unit: unit.Nanoseconds, Requests: 1000, Outside: true, Each: true},
	{Name: "response_p999", Title: "response time, p99.9", Unit: unit.Nanoseconds, Requests: 10000, Outside: true},
	{Name: "response_p9999", Title: "response time, p99.99", Unit: unit.Nanoseconds, Requests: 100000, Outside: true},
	{Name: "response_max", Title: "response time, max", Unit: unit.Nanoseconds, Outside: true, Each: true},
	{Name: "service_p50", Title: "service time, p50", Unit: unit.Nanoseconds, Requests: 20, Outside: true},
	{Name: "service_p99", Title: "service time, p99", Unit: unit.Nanoseconds, Requests: 1000, Outside: true},
	{Name: "first_byte_p50", Title: "time to first byte, p50", Unit: unit.Nanoseconds, Requests: 20, Outside: true},
	{Name: "answer_bytes", Title: "received per answer, header included", Unit: unit.Bytes, Outside: true},
	{Name: "handshake_p50", Title: "TLS handshake, p50", Unit: unit.Nanoseconds, Requests: 20, Outside: true},
	{Name: "resumed", Title: "TLS handshakes that resumed a session", Unit: unit.Share, Higher: true, Outside: true},
	{Name: "loop_time", Title: "handler in process", Unit: unit.Nanoseconds},
	{Name: "loop_bytes", Title: "allocated per request, in process", Unit: unit.Bytes, Grain: 1},
	{Name: "loop_allocs", Title: "allocations per request, in process", Unit: unit.Count, Grain: 0.01},
	{Name: "loop_cache_hits", Title: "loads that hit the first cache, in process", Unit: unit.Share, Higher: true},
	{Name: "alloc_bytes", Title: "allocated per request", Unit: unit.Bytes, Grain: 1},
	{Name: "alloc_objects", Title: "allocations per request", Unit: unit.Count, Grain: 0.01},
	{Name: "gc_per_10k", Title: "GC cycles per 10,000 requests", Unit: unit.Count},
	{Name: "gc_cpu", Title: "share of CPU in GC", Unit: unit.Share},
	{Name: "handlers_cpu", Title: "CPU in the code of middlewares and handlers", Unit: unit.Nanoseconds, Attributed: true},
	{Name: "memory_cpu", Title: "CPU for allocating and collecting", Unit: unit.Nanoseconds, Attributed: true},
	{Name: "scheduling_cpu", Title: "CPU for scheduling, locks and channels", Unit: unit.Nanoseconds, Attributed: true},
	{Name: "kernel_cpu", Title: "CPU in system calls", Unit: unit.Nanoseconds, Attributed: true},
	{Name: "gc_pause_p99", Title: "pause for the collector, p99", Unit: unit.Nanoseconds},
	{Name: "heap_live", Title: "heap in use amid the load, after a collection", Unit: unit.Bytes},
	{Name: "stack_live", Title: "stack in use amid the load", Unit: unit.Bytes},
	{Name: "stack_memory", Title: "memory of stacks amid the load", Unit: unit.Bytes},
	{Name: "pool_misses", Title: "takes from a pool that found it empty", Unit: unit.Share},
	{Name: "pool_returns", Title: "returns to a pool for each take", Unit: unit.Share, Higher: true},
	{Name: "collector_bytes", Title: "to and from a collector, per 1,000 requests", Unit: unit.Bytes},
	{Name: "startup", Title: "start-up", Unit: unit.Nanoseconds},
	{Name: "rss_idle", Title: "memory when idle (RSS)", Unit: unit.Bytes},
	{Name: "idle_connection", Title: "memory of an idle connection (RSS)", Unit: unit.Bytes},
	{Name: "rss_peak", Title: "memory at the peak (RSS)", Unit: unit.Bytes},
	{Name: "pss", Title: "memory after the load (PSS)", Unit: unit.Bytes},
	{Name: "switches_per_request", Title: "context switches per request", Unit: unit.Count},
	{Name: "faults_per_request", Title: "page faults per request", Unit: unit.Count},
	{Name: "threads", Title: "threads at the end of the load", Unit: unit.Count},
	{Name: "goroutines", Title: "goroutines at the end of the load", Unit: unit.Count},
	{Name: "goroutine_growth", Title: "goroutines gained per 1,000 requests", Unit: unit.Count},
	{Name: "peak_flight", Title: "requests in flight or waiting for a connection, most", Unit: unit.Count, Outside: true},
	{Name: "reuse", Title: "requests on a reused connection", Unit: unit.Share, Higher: true, Outside: true},
	{Name: "time_wait", Title: "sockets left in TIME_WAIT", Unit: unit.Count},
	{Name: "errors", Title: "requests that failed", Unit: unit.Share, Outside: true, Each: true},
	{Name: "status_4xx", Title: "answers with a status of 4xx", Unit: unit.Share, Outside: true, Each: true},
	{Name: "relative_mean", Title: "mean response time as a multiple of all operations'", Unit: unit.Count, Outside: true, Each: true},
	{Name: "lag_p99", Title: "generator lag, p99", Unit: unit.Nanoseconds, Requests: 1000, Outside: true},
	{Name: "generator_cpu", Title: "generator's share of its CPUs", Unit: unit.Share, Outside: true},
	{Name: "generator_cpu_per_request", Title: "generator's CPU per request", Unit: unit.Nanoseconds, Outside: true},
	{Name: "generator_rss", Title: "generator's memory at the peak (RSS)", Unit: unit.Bytes, Outside: true},
	{Name: "host_withheld", Title: "CPU time that the host gave to others, of that wanted", Unit: unit.Share, Outside: true},
	{Name: "count_error", Title: "requests that generator and server count differently", Unit: unit.Count},
	{Name: "p50_error", Title: "p50 off the server's log, of it or of 5 ms", Unit: unit.Share, Requests: 20},
	{Name: "p90_error", Title: "p90 off the server's log, of it or of 5 ms", Unit: unit.Share, Requests: 100},
	{Name: "p99_error", Title: "p99 off the server's log, of it or of 5 ms", Unit: unit.Share, Requests: 1000},
	{Name: "p999_error", Title: "p99.9 off the server's log, of it or of 5 ms", Unit: unit.Share, Requests: 10000},
	{Name: "max_error", Title: "max off the server's log, of it or of 5 ms", Unit: unit.Share},
}
