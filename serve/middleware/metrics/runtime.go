package metrics

import (
	"math"
	"runtime/metrics"
	"strings"
)

// ofRuntime are the metrics of package runtime/metrics on the page.
var ofRuntime = []string{
	"/cpu/classes/gc/total:cpu-seconds",
	"/cpu/classes/total:cpu-seconds",
	"/gc/cycles/total:gc-cycles",
	"/gc/heap/allocs:bytes",
	"/gc/heap/allocs:objects",
	"/gc/heap/goal:bytes",
	"/memory/classes/heap/objects:bytes",
	"/memory/classes/heap/stacks:bytes",
	"/memory/classes/total:bytes",
	"/sched/gomaxprocs:threads",
	"/sched/goroutines:goroutines",
	"/sched/latencies:seconds",
	"/sched/pauses/total/gc:seconds",
	"/sync/mutex/wait/total:seconds",
}

// addRuntime adds those of them that this version of Go has.
func addRuntime(p *page) {
	all := map[string]metrics.Description{}
	for _, d := range metrics.All() {
		all[d.Name] = d
	}
	samples := make([]metrics.Sample, len(ofRuntime))
	for i, name := range ofRuntime {
		samples[i].Name = name
	}
	metrics.Read(samples)
	for _, s := range samples {
		d := all[s.Name]
		name, kind := runtimeName(d), gauge
		if d.Cumulative {
			kind = counter
		}
		help, _, _ := strings.Cut(d.Description, ". ")
		switch s.Value.Kind() {
		case metrics.KindUint64:
			p.family(name, kind, help).add("", nil, float64(s.Value.Uint64()))
		case metrics.KindFloat64:
			p.family(name, kind, help).add("", nil, s.Value.Float64())
		case metrics.KindFloat64Histogram:
			bounds, counts := coarsen(s.Value.Float64Histogram())
			p.family(name, histogram, help).histogram(nil, bounds, &reading{counts: counts, sum: math.NaN()})
		}
	}
}

// runtimeName returns the name that client_golang gives the metric.
func runtimeName(d metrics.Description) string {
	name := "go" + strings.NewReplacer("/", "_", "-", "_", ":", "_").Replace(d.Name)
	if d.Cumulative && d.Kind != metrics.KindFloat64Histogram {
		name += "_total"
	}
	return name
}

// coarsen returns a histogram with a bound for each factor of four at least: the runtime
// has hundreds.
func coarsen(h *metrics.Float64Histogram) (bounds []float64, counts []uint64) {
	n, last := uint64(0), 0.0
	for i, c := range h.Counts {
		n += c
		if upper := h.Buckets[i+1]; upper > 0 && upper >= 4*last && !math.IsInf(upper, 1) {
			bounds, counts = append(bounds, upper), append(counts, n)
			n, last = 0, upper
		}
	}
	return bounds, append(counts, n)
}
