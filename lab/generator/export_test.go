package generator

import (
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// Figures returns the requests, the times in ns by metric, and the metrics
// missing that a generator's output has.
func Figures(out string, r study.Reports) (requests uint64, times map[string]float64, missing []string, err error) {
	s, err := figures([]byte(out), r)
	return s.requests, s.times, s.missing, err
}

// Compare holds a trial's figures against the log in dir of a second of an open
// loop at a rate.
func Compare(dir string, rate float64, t *record.Trial) error {
	o := Options{
		Arm:      study.Arm{Generator: study.Generator{Open: []string{"URL"}}},
		Workload: study.Workload{Schedule: "constant", Rate: study.Rate{PerSecond: rate}},
	}
	g := &generation{Options: o, seconds: 1, dir: dir, since: time.Unix(0, 0)}
	return g.compare(t)
}
