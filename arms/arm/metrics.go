package arm

import (
	"math"
	"runtime/metrics"
	"sync"
)

// metricsReader reads all of the runtime's metrics into the same memory each
// time. It is safe for concurrent use.
type metricsReader struct {
	mu      sync.Mutex
	samples []metrics.Sample
}

func newMetricsReader() *metricsReader {
	all := metrics.All()
	r := &metricsReader{samples: make([]metrics.Sample, len(all))}
	for i, d := range all {
		r.samples[i].Name = d.Name
	}
	metrics.Read(r.samples) // lays out the histograms now, not under load
	return r
}

// read returns every number by its name in runtime/metrics, and of every
// histogram three: the name followed by :p50, :p99 and :max.
func (r *metricsReader) read() map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	metrics.Read(r.samples)
	m := make(map[string]float64, len(r.samples)+3*16)
	for _, s := range r.samples {
		switch s.Value.Kind() {
		case metrics.KindUint64:
			m[s.Name] = float64(s.Value.Uint64())
		case metrics.KindFloat64:
			m[s.Name] = s.Value.Float64()
		case metrics.KindFloat64Histogram:
			h := s.Value.Float64Histogram()
			m[s.Name+":p50"] = quantile(h, .5)
			m[s.Name+":p99"] = quantile(h, .99)
			m[s.Name+":max"] = quantile(h, 1)
		}
	}
	return m
}

// quantile returns the finite upper bound of the bucket in which the quantile
// lies; 0 if nothing was counted.
func quantile(h *metrics.Float64Histogram, q float64) float64 {
	var total uint64
	for _, n := range h.Counts {
		total += n
	}
	rank := uint64(math.Ceil(q * float64(total)))
	var seen uint64
	for i, n := range h.Counts {
		if seen += n; n > 0 && seen >= rank {
			if up := h.Buckets[i+1]; !math.IsInf(up, 0) {
				return up
			}
			return h.Buckets[i] // the last bucket is open: its lower bound is what is known
		}
	}
	return 0
}
