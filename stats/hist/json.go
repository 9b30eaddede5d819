package hist

import "encoding/json"

// IsZero reports whether nothing was recorded, so that JSON can omit h.
func (h *Hist) IsZero() bool { return h.Count() == 0 }

// MarshalJSON gives a table of nanoseconds: count, mean, maximum, and each quantile that has
// enough records behind it by [Needed]: 20 for p50, 1,000 for p99.
func (h *Hist) MarshalJSON() ([]byte, error) {
	backed := func(q float64) *int64 {
		if h.Count() < Needed(q) {
			return nil
		}
		return new(h.Quantile(q))
	}
	return json.Marshal(struct {
		Count uint64  `json:"count"`
		Mean  float64 `json:"mean_ns"`
		P50   *int64  `json:"p50_ns,omitempty"`
		P75   *int64  `json:"p75_ns,omitempty"`
		P90   *int64  `json:"p90_ns,omitempty"`
		P95   *int64  `json:"p95_ns,omitempty"`
		P99   *int64  `json:"p99_ns,omitempty"`
		P999  *int64  `json:"p99.9_ns,omitempty"`
		P9999 *int64  `json:"p99.99_ns,omitempty"`
		Max   int64   `json:"max_ns"`
	}{h.Count(), h.Mean(), backed(.5), backed(.75), backed(.9), backed(.95), backed(.99), backed(.999), backed(.9999), h.Max()})
}
