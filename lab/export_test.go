package lab

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/load"
)

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
	return judging(schedule, rate).faults(res)
}

// Throughput is what is kept of it, likewise.
func Throughput(schedule string, rate float64, res *load.Result) float64 {
	return Kept(schedule, rate, res).Metrics["throughput"]
}

// Kept is the trial that is kept of it, likewise.
func Kept(schedule string, rate float64, res *load.Result) record.Trial {
	t := record.Trial{Workload: "w", Metrics: map[string]float64{}}
	judging(schedule, rate).keep(&t, res)
	return t
}

// Voided reports whether a trial is to be run again for want of the primary metric.
func Voided(metric string, t record.Trial) bool {
	s := &study.Study{Primary: study.Primary{Metric: metric, Workload: t.Workload}}
	return (&runner{Options: Options{Study: s}}).voided(&t)
}

// OneTrial builds the arms of a study and runs one trial of the first, under its first
// workload at a rate.
func OneTrial(ctx context.Context, o Options, rate float64) (record.Trial, error) {
	o.Progress = func(Event) {}
	r := newRunner(o)
	if err := r.prepare(ctx); err != nil {
		return record.Trial{}, err
	}
	w := r.Study.Workloads[0]
	r.rates = map[string]float64{w.Name: rate}
	t, _, err := r.trial(ctx, study.Cell{Arm: r.Study.Arms[0].Name, Workload: w.Name})
	return t, err
}

func judging(schedule string, rate float64) *session {
	w := study.Workload{Name: "w", Schedule: schedule}
	if schedule == "tolerant" {
		w.Schedule, w.Failures = "closed", 0.05
	}
	return &session{
		r: &runner{rates: map[string]float64{w.Name: rate}}, w: w, proc: &arm.Process{},
		after: mark{usage: arm.Usage{CPU: time.Second}},
	}
}

// Steadily loads as a trial does, by run, whose results hold no answer, and
// returns the result that counts and the trial kept of it.
func Steadily(ctx context.Context, warmUp time.Duration, run func(context.Context, load.Options) (*load.Result, error)) (*load.Result, record.Trial, error) {
	s := &session{r: &runner{}, w: study.Workload{Schedule: "closed"}, proc: &arm.Process{}}
	res, err := s.steadily(ctx, load.Options{WarmUp: warmUp}, run)
	t := record.Trial{Metrics: map[string]float64{}}
	if res != nil {
		s.keep(&t, res)
	}
	return res, t, err
}

// Spent are the metrics of what the kernel says of an arm before and after so many
// requests.
func Spent(before, after arm.Usage, requests float64) map[string]float64 {
	s := &session{r: &runner{}, proc: &arm.Process{}, before: mark{usage: before}, after: mark{usage: after}}
	m := map[string]float64{}
	s.specimenMetrics(m, requests)
	return m
}

// AllocatesAt is where the arm's own code is said to allocate most.
var AllocatesAt = most

// CPUs are those that the generator and the specimen are given.
func CPUs(pins record.Pinning) (load.Options, []int) {
	r := &runner{Options: Options{Study: &study.Study{}}, pins: pins}
	return r.loadOptions(study.Workload{}, ""), r.specimenCPUs()
}

// Arrange shares the CPUs of this machine out.
var Arrange = arrange

// LooksOf are the numbers of blocks after which a run on record looks, that may
// have so many.
func LooksOf(m record.Manifest, blocks int) []int {
	return (&runner{Options: Options{Blocks: blocks}, manifest: m}).looks()
}

// Limited is what is said of these trials of workloads closed and open.
func Limited(kind study.Kind, trials ...record.Trial) []string {
	s := &study.Study{Kind: kind, Workloads: []study.Workload{{Name: "closed", Schedule: "closed"}, {Name: "open", Schedule: "constant"}}}
	return (&runner{Options: Options{Study: s}, trials: trials}).limited()
}

// SameAs reports whether a run of programs with these build IDs may be gone on with.
func SameAs(w *record.Writer, old, now map[string]string) error {
	programs := func(ids map[string]string) map[string]record.Program {
		all := map[string]record.Program{}
		for name, id := range ids {
			all[name] = record.Program{BuildID: id}
		}
		return all
	}
	return (&runner{writer: w}).sameAs(programs(old), programs(now))
}

// Refused is why a run of these trials stops early.
func Refused(all []record.Trial) string {
	return (&runner{Options: Options{Study: &study.Study{}}, trials: all}).refused()
}

// RefusedBy is Refused of a study, by whose primary metric the run is decided or by something else.
func RefusedBy(s *study.Study, primary bool, all []record.Trial) string {
	o := Options{Study: s}
	if !primary {
		o.Decided = func(*verdict.Analysis) bool { return false }
	}
	return (&runner{Options: o, trials: all}).refused()
}

// Untold is the trial kept of a load before which an arm did not tell its metrics in time,
// and after which it did.
func Untold(res *load.Result) record.Trial {
	s := judging("closed", 0)
	s.before.untold = context.DeadlineExceeded
	s.after.metrics = map[string]float64{"/sched/goroutines:goroutines": 9, "/gc/heap/allocs:bytes": 1e6,
		"/cpu/classes/total:cpu-seconds": 2, "/cpu/classes/idle:cpu-seconds": 1}
	t := record.Trial{Metrics: map[string]float64{}}
	s.keep(&t, res)
	return t
}

// LoadOf is what a profile is kept for.
func LoadOf(s *study.Study) string { return loadOf(s) }
