package lab

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/inside"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// Answer is what an arm answered to a target before any load.
type Answer struct {
	Arm           string
	Addr          string // host:port at which it was found
	Target        study.Target
	answer.Answer      // of its body the beginning
	Stable        bool // a second answer of the same process had the same status and body
	PID           int  // of the process; 0: it runs elsewhere
	Go            bool // the process runs a Go program, or may

	// If Options.FindProfiles asks for it:
	Profiled  bool  // the process exposes net/http/pprof
	Unsampled error // why the kernel cannot sample the process; nil: it can

	Startup time.Duration // of the process, to its first answer; 0 for a URL
	Ending  time.Duration // of the process, after it was asked to end; 0 for a URL
}

// keptBytes of a body are kept, to show by what others differ.
const keptBytes = 4 << 10

// Same reports whether two answers have the same status and body.
func (a Answer) Same(b Answer) bool { return a.Status == b.Status && a.SHA256 == b.SHA256 }

// Answers builds every arm of a study, starts each once, and asks it for each target of
// the first workload twice. Of the options, Study, Builder, Progress and Budget count: an arm
// has no more time than that to get ready, or [answer.Within] if that is more. It is ready at
// its first answer below status 400, or below 500 after some time. What the workload says of
// correct answers is not looked at: this is how one finds out what to ask for.
func Answers(ctx context.Context, o Options) ([]Answer, error) {
	r := newRunner(o)
	r.asking = true
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	filled, err := withSecrets(r.Study)
	if err != nil {
		return nil, err
	}
	var all []Answer
	for _, a := range filled.Arms {
		r.reportEvent(Event{Stage: Piloting, Arm: a.Name, Text: fmt.Sprintf("waiting up to %.0fs for %s to listen", r.readyFor(a.Listen).Seconds(), a.Name)})
		of, err := r.answersOf(ctx, a.Name, filled.Workloads[0])
		if err != nil {
			return nil, r.unfit(ctx, a.Name, filled.Workloads[0].Name, err)
		}
		all = append(all, of...)
	}
	return all, nil
}

// readyFor bounds the time from a program's start to its first answer.
func (r *runner) readyFor(listen string) time.Duration {
	most := answer.ReadyFor(listen)
	if r.asking && r.Budget > 0 {
		most = min(most, max(r.Budget, answer.Within))
	}
	return most
}

func (r *runner) answersOf(ctx context.Context, name string, w study.Workload) (all []Answer, err error) {
	p := *r.programs[name]
	p.Sink = arm.SinkErrors // some say there why they do not answer
	t := record.Trial{Metrics: map[string]float64{}}
	s, err := r.startReady(ctx, p, w, firstAnswer(p, w.Targets[0]), &t)
	if err != nil {
		return nil, err
	}
	defer func() {
		asked := time.Now()
		s.stop()
		ended := time.Since(asked)
		for i := range all {
			all[i].Ending = ended
		}
	}()
	one := Answer{Arm: name, Addr: s.proc.Addr(), PID: s.pid(ctx), Startup: time.Duration(t.Metrics["startup"])}
	one.Go = proc.IsGo(one.PID)
	if r.FindProfiles {
		one.Profiled, one.Unsampled = inside.Exposed(ctx, s.proc) != nil, (&sampler{s: s}).prepare(ctx)
	}
	for _, g := range w.Targets {
		one.Target = g
		if one.Answer, one.Stable, err = answer.FetchTwice(ctx, s.proc.URL(), g); err != nil {
			return nil, err
		}
		one.Body = bytes.Clone(one.Body[:min(len(one.Body), keptBytes)])
		all = append(all, one)
	}
	return all, nil
}

// settleWithin is how long answers of status 4xx are not taken for a program's own: some
// answer so until they have read their routes.
const settleWithin = 2 * time.Second

// firstAnswer takes any answer that is not an error for readiness, and in the end one of
// status 4xx, where the program has no path of its own for that.
func firstAnswer(p arm.Program, first study.Target) func(ctx context.Context, base string) error {
	if p.Service.Ready != "" {
		return readiness(p, first)
	}
	var refused time.Time // the first answer of status 4xx came
	return func(ctx context.Context, base string) error {
		a, err := answer.Fetch(ctx, base, first)
		if err == nil && a.Status >= http.StatusBadRequest && refused.IsZero() {
			refused = time.Now()
		}
		if err == nil && (a.Status >= http.StatusInternalServerError || a.Status >= http.StatusBadRequest && time.Since(refused) < settleWithin) {
			err = fmt.Errorf("%s answers with status %d", first.Path, a.Status)
		}
		return err
	}
}
