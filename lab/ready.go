package lab

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
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

const (
	profileWithin = 30 * time.Second // from a program's first answer to its whole profile
	profilePoll   = 100 * time.Millisecond
)

// takeProfile loads a program under the first workload, closed loop, until it has
// written its CPU profile.
func (r *runner) takeProfile(ctx context.Context, p arm.Program, path string) error {
	s, err := withSecrets(r.Study)
	if err != nil {
		return err
	}
	w := s.Workloads[0]
	w.Schedule, w.Loop, w.Idle = "closed", 0, 0
	r.reportEvent(Event{Stage: Profiling, Workload: w.Name, Text: "taking a CPU profile for pgo"})
	one, err := r.startProgram(ctx, p, w, &record.Trial{Metrics: map[string]float64{}})
	if err != nil {
		return err
	}
	defer one.stop()
	loading, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	o := r.loadOptions(w, one.proc.URL())
	o.Duration, o.WarmUp = profileWithin, 0
	go func() {
		_, err := one.offer(loading, o)
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			if err == nil {
				err = fmt.Errorf("the program wrote no profile within %v of load", profileWithin)
			}
			return err
		case <-time.After(profilePoll):
			if _, err := os.Stat(path); err == nil {
				stop()
				<-ended
				return ctx.Err()
			}
		}
	}
}
