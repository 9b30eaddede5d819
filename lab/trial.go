package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/env"
	"github.com/tarehq/tare/lab/idle"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/users"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// trial runs one cell in a fresh process. What the specimen does wrong makes
// the trial invalid; an error means that the run cannot go on.
func (r *runner) trial(ctx context.Context, c study.Cell) (record.Trial, *record.Histograms, error) {
	if r.Study.Kind == study.Generators {
		return r.generatorTrial(ctx, c)
	}
	w, t := r.workload(c.Workload), r.newTrial(c)
	s, err := r.start(ctx, c.Arm, w, &t)
	if err != nil {
		return t, nil, r.notReady(ctx, &t, c.Arm, err)
	}
	r.deaf[c.Arm] = 0
	defer s.stop()
	before := s.sampleAnswers(ctx)
	if err := s.idle(ctx, &t); errors.Is(err, idle.ErrOwnLimit) {
		return t, nil, err // no other trial fares better
	} else if err != nil {
		return t, nil, r.armFault(ctx, &t, err)
	}
	res, err := s.load(ctx, func(live load.Snapshot) {
		r.reportEvent(Event{Stage: Loading, Arm: c.Arm, Workload: c.Workload, Block: c.Block + 1, Live: live})
	})
	if died := s.proc.Failure(err); err != nil && died != nil { // what the load says of a server that is gone explains nothing
		return t, nil, r.armFault(ctx, &t, fmt.Errorf("under load: %w", died))
	}
	if err != nil && res == nil {
		return t, nil, fmt.Errorf("loading: %w", err) // the machine's fault or the study's: no other trial fares better
	}
	if err != nil {
		return t, nil, r.armFault(ctx, &t, err)
	}
	if ctx.Err() != nil {
		return t, nil, ctx.Err() // a trial cut short is not a trial
	}
	s.keep(&t, res)
	s.keepAmid(&t)
	s.keepAnswers(ctx, &t, before)
	if err := s.loop(ctx, &t); err != nil {
		return t, nil, r.armFault(ctx, &t, err)
	}
	if err := s.tellLines(ctx, &t); err != nil {
		return t, nil, r.armFault(ctx, &t, err)
	}
	return t, s.histograms(res), nil
}

// histograms are those that are kept.
func (s *session) histograms(res *load.Result) *record.Histograms {
	h := &record.Histograms{Response: res.Response, Service: res.Service}
	if s.seen != nil {
		h.Operations = map[string]*hist.Hist{}
		for i := range s.seen.Operations {
			h.Operations[s.seen.Operations[i].Name] = s.seen.Operations[i].Response
		}
	}
	return h
}

func (r *runner) newTrial(c study.Cell) record.Trial {
	return record.Trial{
		Seq: len(r.trials), Block: c.Block, Arm: c.Arm, Twin: c.Twin, Workload: c.Workload,
		Start: time.Now(), Metrics: map[string]float64{}, Attempt: r.attempt(c),
	}
}

// armFault marks a trial invalid for what its arm did, or passes on the end of
// the run.
func (r *runner) armFault(ctx context.Context, t *record.Trial, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.Invalid = append(t.Invalid, err.Error())
	return nil
}

// mostDeaf is the number of trials in a row in which an arm, or the server that
// generators load, may fail to get ready. It did in the pilot, so it is no longer
// there, such as a URL whose server has ended; to wait for it in every trial would
// take hours.
const mostDeaf = 3

// notReady is armFault for one, an arm or a server, that did not start or answer.
func (r *runner) notReady(ctx context.Context, t *record.Trial, one string, err error) error {
	if r.deaf[one]++; r.deaf[one] >= mostDeaf {
		return r.unfit(ctx, t.Arm, t.Workload, fmt.Errorf("not ready for %d trials in a row: %w", mostDeaf, err))
	}
	return r.armFault(ctx, t, err)
}

// session is one started arm under one workload.
type session struct {
	r        *runner
	w        study.Workload
	proc     *arm.Process
	before   mark
	after    mark
	amid     *amid         // nil: there is none
	seen     *users.Result // by the users of a flow, in the last load; nil: there are none
	extended bool
	idlers   idle.Connections
}

// mark is what was read off the specimen at one moment.
type mark struct {
	usage   arm.Usage
	metrics map[string]float64 // empty for arms without a control socket
	cpus    env.CPUTime        // of the machine
	own     time.Duration      // CPU time of this process
	untold  error              // why there are no metrics of an arm that has them
	err     error
}

func (r *runner) start(ctx context.Context, name string, w study.Workload, t *record.Trial) (*session, error) {
	return r.startProgram(ctx, *r.programs[name], w, t)
}

func (r *runner) startProgram(ctx context.Context, p arm.Program, w study.Workload, t *record.Trial) (*session, error) {
	return r.startReady(ctx, p, w, readiness(p, w.Targets[0]), t)
}

// startReady starts a program and waits until try succeeds.
func (r *runner) startReady(ctx context.Context, p arm.Program, w study.Workload, try func(context.Context, string) error, t *record.Trial) (*session, error) {
	proc, err := arm.Start(ctx, p, arm.StartOptions{CPUs: r.specimenCPUs(), Host: r.ArmHost})
	if err != nil {
		return nil, fmt.Errorf("starting: %w", err)
	}
	s := &session{r: r, w: w, proc: proc}
	ready, cancel := context.WithTimeout(ctx, r.readyFor(p.Service.Listen))
	defer cancel()
	startup, err := proc.Ready(ready, func(ctx context.Context) error { return proc.Locate(ctx, try) })
	if err != nil {
		s.stop()
		return nil, err
	}
	if p.URL == "" {
		t.Metrics["startup"] = float64(startup)
	}
	if u, err := proc.Usage(false); err == nil {
		t.Metrics["rss_idle"] = float64(u.RSS)
	}
	return s, nil
}

// specimenCPUs are those an arm is started on; nil leaves it free.
func (r *runner) specimenCPUs() []int {
	if !r.pins.Disjoint {
		return nil
	}
	return r.pins.Specimen
}

func (s *session) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.proc.Stop(ctx); err != nil {
		s.r.reportEvent(Event{Stage: Ended, Text: fmt.Sprintf("stopping arm: %v", err)})
	}
	s.idlers.Close()
}

// load offers the workload; a trial that was not steady is extended once, and
// the extension is what counts.
func (s *session) load(ctx context.Context, live func(load.Snapshot)) (*load.Result, error) {
	o := s.r.loadOptions(s.w, s.proc.URL())
	o.Progress = live
	o.Mark = func(begin bool) {
		if begin {
			s.before = s.read()
			s.planAmid()
		} else {
			s.after = s.read()
		}
	}
	return s.steadily(ctx, o, s.offer)
}

// offer loads the arm as the workload says.
func (s *session) offer(ctx context.Context, o load.Options) (*load.Result, error) {
	if s.w.Flow == nil {
		return s.r.Agents.Load(ctx, o)
	}
	var err error
	s.seen, err = users.Run(ctx, users.Options{Workload: s.w, Study: s.r.Study.File, Base: s.proc.URL(), Load: o})
	return s.seen.Result, err
}

// steadily runs a load, and once more, already warm, if that was not steady. One in which
// nothing was answered is refused as it is; users come and go as their flow says.
func (s *session) steadily(ctx context.Context, o load.Options, run func(context.Context, load.Options) (*load.Result, error)) (*load.Result, error) {
	res, err := run(ctx, o)
	s.endAmid()
	if err != nil || ctx.Err() != nil || res.Within == 0 || s.w.Flow != nil || steady(res) {
		return res, err
	}
	s.extended = true
	o.WarmUp = 0
	res, err = run(ctx, o)
	s.endAmid()
	return res, err
}

func (s *session) read() mark {
	u, err := s.proc.Usage(false)
	if errors.Is(err, arm.ErrNotSupported) {
		err = nil // a URL, or a system that does not report it: then there is no such metric
	}
	m := mark{usage: u, cpus: env.This().CPUTime(), own: ownCPU(), err: err}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	m.metrics, err = s.proc.Metrics(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		m.untold = err
	} else if err != nil && !untold(err) {
		m.err = errors.Join(m.err, err)
	}
	return m
}

// untold reports whether an arm cannot be asked, or does not know what it was asked,
// which it need not: it is measured without.
func untold(err error) bool {
	return errors.Is(err, arm.ErrNoControl) || errors.Is(err, arm.ErrDeclined)
}

// loop runs the arm's in-process instrument over the workload's targets and
// holds its answers against what the workload asks.
func (s *session) loop(ctx context.Context, t *record.Trial) error {
	facts, err := s.proc.Facts(ctx)
	if err != nil && !untold(err) {
		return fmt.Errorf("asking the arm for its facts: %w", err)
	}
	t.Facts = facts
	addFacts(t, s.r.calls(t.Arm))
	if s.w.Loop <= 0 {
		return nil
	}
	reqs := make([]arm.LoopRequest, len(s.w.Targets))
	for i, g := range s.w.Targets {
		reqs[i] = arm.LoopRequest{Method: g.Method, Target: g.Path, Header: g.Header, Body: g.Body}
	}
	res, err := s.countedLoop(ctx, reqs, t)
	if errors.Is(err, arm.ErrNoControl) {
		t.Warnings = append(t.Warnings, "no in-process loop: the arm has no control socket")
		return nil
	}
	if errors.Is(err, arm.ErrDeclined) {
		t.Warnings = append(t.Warnings, fmt.Sprintf("no in-process loop: %v", err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("running the in-process loop: %w", err)
	}
	for i, a := range res.Answers {
		g := s.w.Targets[i]
		if err := answer.Check(g.Verify, answer.Answer{Status: a.Status, Length: a.Length, SHA256: a.SHA256}); err != nil {
			return fmt.Errorf("in-process loop, target %s: %w", g.Path, err)
		}
	}
	t.Metrics["loop_time"] = res.NS
	t.Metrics["loop_bytes"] = res.Bytes
	t.Metrics["loop_allocs"] = res.Allocs
	return nil
}

func (r *runner) workload(name string) study.Workload {
	i := slices.IndexFunc(r.Study.Workloads, func(w study.Workload) bool { return w.Name == name })
	return r.Study.Workloads[i]
}
