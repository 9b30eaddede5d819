package stats

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// ReplicatesSchema is the version of the form in which [Replicates] are kept.
const ReplicatesSchema = 1

// Replicates are recorded A/A trials: the same arm under several names, which
// show what a machine does to measurements all by itself. They are kept as one
// JSON object:
//
//	{"schema": 1,
//	 "about":  "how, where and when they were recorded",
//	 "metrics": {"cpu_per_request": [[9098.5, 9205.8, 9104.8, 8843.2], …], …}}
//
// A metric holds one list a block, in order of time, and a list the values of
// the k ≥ 2 identical arms, positive, in the metric's base unit and in order of
// execution, each from a fresh process. k and the number of blocks are the same
// throughout.
type Replicates struct {
	Schema  int                    `json:"schema"`
	About   string                 `json:"about"`
	Metrics map[string][][]float64 `json:"metrics"`
}

// ReadReplicates reads and checks replicates.
func ReadReplicates(r io.Reader) (*Replicates, error) {
	var rep Replicates
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rep); err != nil {
		return nil, fmt.Errorf("reading replicates: %w", err)
	}
	if err := rep.Validate(); err != nil {
		return nil, fmt.Errorf("reading replicates: %w", err)
	}
	return &rep, nil
}

// Validate says what is wrong with r, or nil.
func (r *Replicates) Validate() error {
	if r.Schema != ReplicatesSchema {
		return fmt.Errorf("schema %d: this version reads %d", r.Schema, ReplicatesSchema)
	}
	if len(r.Metrics) == 0 {
		return fmt.Errorf("no metrics")
	}
	var blocks, arms int
	for name, rows := range r.Metrics {
		if blocks == 0 && len(rows) > 0 {
			blocks, arms = len(rows), len(rows[0])
		}
		if len(rows) != blocks || blocks == 0 || arms < 2 {
			return fmt.Errorf("metric %q: %d blocks, of %d arms in the first: want as many as the others, and two arms or more", name, len(rows), arms)
		}
		for b, row := range rows {
			if len(row) != arms {
				return fmt.Errorf("metric %q, block %d: %d values, want %d", name, b, len(row), arms)
			}
			for _, v := range row {
				if !(v > 0) || math.IsInf(v, 0) {
					return fmt.Errorf("metric %q, block %d: value %v: must be positive and finite", name, b, v)
				}
			}
		}
	}
	return nil
}

// Write writes r in the form that [ReadReplicates] reads.
func (r *Replicates) Write(w io.Writer) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("writing replicates: %w", err)
	}
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("writing replicates: %w", err)
	}
	return nil
}

// Logs are the natural logarithms of a metric's values, the scale on which
// [NoiseFloor] and [RankIntervals] want them; nil for an unknown metric.
func (r *Replicates) Logs(metric string) [][]float64 {
	rows := r.Metrics[metric]
	logs := make([][]float64, len(rows))
	for b, row := range rows {
		logs[b] = make([]float64, len(row))
		for a, v := range row {
			logs[b][a] = math.Log(v)
		}
	}
	return logs
}
