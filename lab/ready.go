package lab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/variant"
)

// readiness asks whether a program is ready: its own path for that, or else the first
// target, answered as the workload asks.
func readiness(p arm.Program, first study.Target) func(ctx context.Context, base string) error {
	if p.Service.Ready == "" {
		return func(ctx context.Context, base string) error { return answer.Ask(ctx, base, first) }
	}
	return func(ctx context.Context, base string) error {
		a, err := answer.Fetch(ctx, base, study.Target{Path: p.Service.Ready})
		if err == nil && a.Status >= http.StatusBadRequest {
			err = fmt.Errorf("%s answers with status %d", p.Service.Ready, a.Status)
		}
		return err
	}
}

// profileWithin bounds the time from a program's first answer to its whole profile.
const profileWithin = 30 * time.Second

// loadOf tells the first workload's requests from those of other studies, whatever is
// known of correct answers.
func loadOf(s *study.Study) string {
	text := fmt.Sprint(s.Workloads[0].Connections)
	if f := s.Workloads[0].Flow; f != nil {
		text += fmt.Sprintf("\n%v %s", s.Workloads[0].Profile, f.Says)
	}
	for _, g := range s.Workloads[0].Targets {
		text += fmt.Sprintf("\n%s %q %d %q %q", g.Method, g.Path, g.Weight, g.Header, g.Body)
	}
	return text
}

// takeProfile loads a program under the first workload, closed loop, until it has
// written its CPU profile.
func (r *runner) takeProfile(ctx context.Context, p arm.Program, path string) error {
	s, err := withSecrets(r.Study)
	if err != nil {
		return err
	}
	w := s.Workloads[0]
	w.Schedule, w.Loop, w.Idle = "closed", 0, 0
	r.reportEvent(Event{Stage: Profiling, Workload: w.Name, Text: "taking a CPU profile for pgo, then building with it"})
	one, err := r.startReady(ctx, p, w, firstAnswer(p, w.Targets[0]), &record.Trial{Metrics: map[string]float64{}})
	if err != nil {
		return err
	}
	defer one.stop()
	loading, stop := context.WithCancelCause(ctx)
	o := r.loadOptions(w, one.proc.URL())
	o.Duration, o.WarmUp = profileWithin, 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := one.offer(loading, o)
		stop(cmp.Or(err, fmt.Errorf("the program wrote no profile within %v of load", profileWithin)))
	}()
	err = variant.AwaitProfile(loading, path)
	stop(nil)
	<-ended
	if err != nil {
		err = cmp.Or(ctx.Err(), one.proc.Failure(err), err)
	}
	return err
}
