package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/generator"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// buildServers builds what the generators load, by workload.
func (r *runner) buildServers(ctx context.Context) error {
	r.servers = map[string]*arm.Program{}
	for _, w := range r.Study.Workloads {
		if w.Server == nil {
			continue
		}
		r.reportEvent(Event{Stage: Building, Workload: w.Name, Text: "building the server of " + w.Name})
		p, err := r.Builder.Build(ctx, *w.Server)
		if ctx.Err() != nil {
			err = ctx.Err()
		} else if err != nil {
			err = errors.Join(ErrArm, err)
		}
		if err != nil {
			return fmt.Errorf("building the server of workload %s: %w", w.Name, err)
		}
		r.servers[w.Name] = p
	}
	return nil
}

// generatorTrial runs one cell of a study of generators.
func (r *runner) generatorTrial(ctx context.Context, c study.Cell) (record.Trial, *record.Histograms, error) {
	t := r.newTrial(c)
	t.Steady = true // a generator's own affair
	w := r.workload(c.Workload)
	err := r.generate(ctx, w, r.Study.Measured(w), &t)
	if errors.Is(err, generator.ErrServer) {
		return t, nil, r.notReady(ctx, &t, "server of "+w.Name, err)
	}
	delete(r.deaf, "server of "+w.Name)
	if err != nil {
		return t, nil, r.armFault(ctx, &t, err)
	}
	return t, nil, ctx.Err()
}

// generatorPilot tries a generator for a second, so that one that cannot be
// called or understood ends the run here; one that falls behind its rate does not, for
// that is found out trial by trial. It returns its answers a second.
func (r *runner) generatorPilot(ctx context.Context, name string, w study.Workload, _ map[string][]record.Answer) (float64, error) {
	t := r.newTrial(study.Cell{Arm: name, Workload: w.Name})
	if err := r.generate(ctx, w, pilotFor, &t); err != nil {
		return 0, r.unfit(ctx, name, w.Name, err)
	}
	return t.Metrics["throughput"], nil
}

// generate runs the trial's generator for so long and fills in what it and the server saw.
func (r *runner) generate(ctx context.Context, w study.Workload, length time.Duration, t *record.Trial) error {
	return generator.Run(ctx, generator.Options{
		Arm: r.arm(t.Arm), Program: *r.programs[t.Arm], Server: *r.servers[w.Name], Workload: w, Length: length, Pins: r.pins,
		Note: func(text string) { r.reportEvent(Event{Stage: Ended, Text: text}) },
	}, t)
}

// arm is the study's arm of that name.
func (r *runner) arm(name string) study.Arm {
	for _, a := range r.Study.Arms {
		if a.Name == name {
			return a
		}
	}
	return study.Arm{}
}
