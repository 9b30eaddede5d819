package lab

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/load"
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

// TruthSince is what the parts of an arm cost a request between two answers.
func TruthSince(before, after string, requests float64) (map[string]record.Truth, error) {
	var b, a truth
	if err := errors.Join(json.Unmarshal([]byte(before), &b.parts), json.Unmarshal([]byte(after), &a.parts)); err != nil {
		return nil, err
	}
	return a.since(b, requests), nil
}

// Faults are the reasons for which a trial of one workload does not count, which
// was offered so many requests a second. The schedule "tolerant" is a closed one
// where one request in twenty may fail.
func Faults(schedule string, rate float64, res *load.Result) []string {
	w := study.Workload{Name: "w", Schedule: schedule}
	if schedule == "tolerant" {
		w.Schedule, w.Failures = "closed", 0.05
	}
	s := &session{r: &runner{rates: map[string]float64{w.Name: rate}}, w: w, proc: &arm.Process{}}
	return s.faults(res)
}
