package lab

import (
	"time"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/hist"
)

// Figures returns the requests, the times in ns by metric, and the metrics
// missing that a generator's output has.
func Figures(out string, r study.Reports) (requests uint64, times map[string]float64, missing []string, err error) {
	s, err := figures([]byte(out), r)
	return s.requests, s.times, s.missing, err
}

// Responses reads a server's log and works out the true response times.
func Responses(path string, since time.Time, rate float64) (*hist.Hist, error) {
	log, err := readVisits(path, since)
	if err != nil {
		return nil, err
	}
	return responses(log, rate), nil
}
