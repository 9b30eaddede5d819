package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/load"
)

// pilotFor is the measured part of a pilot trial.
const pilotFor = time.Second

// pilotAgain is how often a pilot in which nothing was answered is run again,
// each time for twice as long.
const pilotAgain = 2

// pilot runs every arm once under every workload's targets, closed loop, before
// anything is compared: an arm that does not answer as asked ends the run here
// with the reason, and the slowest arm's capacity fixes the offered rates that
// are declared as a share.
func (r *runner) pilot(ctx context.Context) error {
	if len(r.manifest.Rates) > 0 || r.blocksDone() > 0 {
		r.rates = r.manifest.Rates // resumed: the rates are those of the first session
		return nil
	}
	r.rates, r.capacity = map[string]float64{}, map[string]float64{}
	try := r.pilotTrial
	if r.Study.Kind == study.Generators {
		try = r.generatorPilot
	}
	for _, w := range r.Study.Workloads {
		slowest := math.Inf(1)
		answers := map[string][]record.Answer{}
		for _, a := range r.Study.ArmsOf(w) {
			r.reportEvent(Event{Stage: Piloting, Arm: a.Name, Workload: w.Name, Text: fmt.Sprintf("pilot: %s, %s", a.Name, w.Name)})
			c, err := try(ctx, a.Name, w, answers)
			if err != nil {
				return err
			}
			slowest = min(slowest, c)
			if w.Flow == nil { // users ask for as much as they want
				r.capacity[a.Name] = max(r.capacity[a.Name], c)
			}
		}
		r.tellUnlike(w, answers)
		switch {
		case w.Schedule == "closed" || w.Flow != nil:
		case w.Rate.Share > 0:
			if r.rates[w.Name] = math.Floor(slowest * w.Rate.Share); r.rates[w.Name] < 1 {
				return fmt.Errorf("workload %s: %.4g %% of the slowest arm's %.0f requests a second is less than one: give a larger rate",
					w.Name, 100*w.Rate.Share, slowest)
			}
		default:
			r.rates[w.Name] = w.Rate.PerSecond
		}
	}
	r.manifest.Rates, r.manifest.Capacity = r.rates, r.capacity
	return r.writer.Update(func(m *record.Manifest) {
		m.Rates, m.Capacity = maps.Clone(r.rates), maps.Clone(r.capacity)
	})
}

// pilotTrial returns the arm's capacity in answers a second, and puts samples of its
// answers among those of the others.
func (r *runner) pilotTrial(ctx context.Context, name string, w study.Workload, answers map[string][]record.Answer) (float64, error) {
	closed := w
	closed.Schedule, closed.Loop = "closed", 0
	closed.Connections = min(w.Connections, 64)
	t := record.Trial{Metrics: map[string]float64{}}
	s, err := r.start(ctx, name, closed, &t)
	if err != nil {
		return 0, r.unfit(ctx, name, w.Name, err)
	}
	defer s.stop()
	o := r.loadOptions(closed, s.proc.URL())
	o.WarmUp, o.Duration = pilotFor/4, pilotFor
	res, err := s.offer(ctx, o)
	for range pilotAgain {
		if !silent(res) || s.proc.Failure(nil) != nil || ctx.Err() != nil {
			break
		}
		o.Duration *= 2
		res, err = s.offer(ctx, o)
	}
	if died := s.proc.Failure(err); died != nil {
		err = fmt.Errorf("under load: %w", died)
	}
	if err != nil && res == nil && ctx.Err() == nil && s.proc.Failure(nil) == nil {
		return 0, fmt.Errorf("loading arm %s under workload %s: %w", name, w.Name, err) // not the arm's fault
	}
	if err != nil {
		return 0, r.unfit(ctx, name, w.Name, err)
	}
	if err := s.misled(ctx, &res.Counts); err != nil {
		return 0, r.unfit(ctx, name, w.Name, err)
	}
	answers[name] = s.sampleAnswers(ctx)
	return res.Throughput(), nil
}

// misled says what is wrong with the answers of a pilot; nil is nothing.
func (s *session) misled(ctx context.Context, c *load.Counts) error {
	if s.w.Flow != nil {
		return s.failing(c)
	}
	if c.Unverified == 0 && c.Answered() > 0 {
		return nil
	}
	for _, g := range s.w.Targets {
		if err := answer.Ask(ctx, s.proc.URL(), g); err != nil {
			return fmt.Errorf("%s: %w", g.Path, err)
		}
	}
	return errors.New(unverified(c))
}

// failing says why too many of the users' requests failed; nil where they did not.
func (s *session) failing(c *load.Counts) error {
	why := s.failed(c)
	if why == "" && c.Answered() > 0 {
		return nil
	}
	why = cmp.Or(why, "the users asked for nothing that was answered")
	for _, op := range s.seen.Operations {
		if len(op.Causes) > 0 {
			return fmt.Errorf("%s: %s: %s", why, op.Name, op.Causes[0])
		}
	}
	return errors.New(why)
}

// silent reports whether a load came to nothing and nothing went wrong: on a busy
// machine, a second may pass before anybody has a turn.
func silent(res *load.Result) bool {
	return res != nil && res.Counts.Answered()+res.Counts.Failed() == 0
}

func (r *runner) unfit(ctx context.Context, name, workload string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("trying arm %s under workload %s: %w: %w", name, workload, ErrArm, err)
}
