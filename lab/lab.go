// Package lab runs studies: it plans blocks, runs trials, and keeps them.
//
// A trial is one fresh process of an arm under one workload; in a study of load
// generators, one fresh process of a generator against one of the workload's
// server. A block is one trial of every arm, the control among them, in random
// order; arms are only ever compared within a block. The run stops at a planned
// look when its primary comparison is decided ([Options] may ask for more), at its
// cap of blocks, at the end of its budget, or when it is interrupted; whatever was
// measured until then is on disk. Under a workload with a flow, users come instead of
// single requests (package lab/users). A trial that cannot be trusted is recorded as
// invalid, with the reason, and its cell is run again in a later block beside the control.
//
// When the blocks are done, captures follow if the study asks for them: each is
// one fresh process of an arm under its load, profiled, so that the report can
// show the cost of each owner ([cost]). No trial is profiled.
//
// The lab promises the same plan for the same study and seed. It does not
// promise the same figures: those are the machine's.
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats"
)

// Options say what to run and where. Study, Builder and Dir are required.
type Options struct {
	Study   *study.Study // in the form to be run: the quick form already applied
	Quick   bool         // recorded only
	Builder *arm.Builder
	Dir     string        // the run's folder; must not exist, or is one to resume
	Resume  bool          // go on with the run in Dir
	Seed    uint64        // fixes the plan; 0 means 1
	Blocks  int           // most blocks; 0 means the study's last look, which a resumed run never passes
	Budget  time.Duration // most time for pilot, blocks and captures, beyond a first block; 0: no bound

	FindProfiles bool // Answers finds out by what each process can be profiled, too

	// Decided tells at a look whether the run may stop; nil: once its primary
	// comparisons are decided. What it goes by must be judged at the level of the
	// look, as all of an analysis is: the looks share out one error rate.
	Decided func(*verdict.Analysis) bool

	// About is written into the manifest as it is: tare's version, the command
	// that repeats the run, the environment, calibration and self-test.
	About record.Manifest

	Agents  *fleet.Fleet // make the loads of pilot, trials and captures; nil: this process does
	ArmHost string       // address of this machine that arms listen on; "" is 127.0.0.1

	// Progress, if set, is called from one goroutine at a time.
	Progress func(Event)
}

// Stage says what a run is doing.
type Stage string

// The stages.
const (
	Building  Stage = "building"  // an arm's program
	Piloting  Stage = "pilot"     // one short trial of every arm: does it answer, and how fast
	Running   Stage = "running"   // a trial has begun
	Loading   Stage = "loading"   // four times a second within a trial
	Ended     Stage = "ended"     // a trial has ended
	Looking   Stage = "look"      // a planned look at the data
	Profiling Stage = "profiling" // a capture has begun
)

// Event is a step of a run, for display.
type Event struct {
	Stage         Stage
	Arm, Workload string
	Block         int           // from 1
	Trial, Trials int           // ended so far; planned
	Left          time.Duration // estimate for the planned blocks
	Live          load.Snapshot // Loading
	Result        *record.Trial // Ended
	Text          string        // one line for people
}

// ErrArm is wrapped by errors that an arm caused: it does not start, or does not
// answer as its workload asks.
var ErrArm = errors.New("arm cannot be measured")

// Run runs a study and returns what was recorded. When the context is
// cancelled it returns the run so far with an error that wraps ctx.Err(); where its
// folder can no longer be read, what this process knows of it. A run that ends before
// its first trial has, leaves nothing: no folder and a nil Run.
// In the targets' header fields ${NAME} stands for a variable of the environment,
// whose value is sent and not recorded.
func Run(ctx context.Context, o Options) (*record.Run, error) {
	o.Seed = cmp.Or(o.Seed, 1)
	r := newRunner(o)
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	filled, err := withSecrets(r.Study)
	if err != nil {
		return nil, err
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	defer r.writer.Close()
	r.Study = filled // recorded as it was
	err = r.measure(ctx)
	if werr := r.warnTrials(); werr != nil {
		err = errors.Join(err, werr)
	}
	if err == nil && r.outcome != "refused" { // captures would fare no better
		err = r.attribute(ctx)
	}
	if err != nil && len(r.trials) == 0 && !o.Resume {
		return nil, errors.Join(err, r.writer.Discard())
	}
	outcome := r.outcome
	if err != nil {
		outcome = "interrupted"
	}
	if ferr := r.writer.Finish(outcome); ferr != nil {
		err = errors.Join(err, ferr)
	}
	run, oerr := record.Open(o.Dir)
	if oerr != nil || len(run.Trials) < len(r.trials) { // what was measured is known all the same
		return &record.Run{Dir: o.Dir, Manifest: r.manifest, Trials: r.trials, Captures: r.captures}, errors.Join(err, oerr)
	}
	return run, err
}

// runner is the state of one run.
type runner struct {
	Options
	programs map[string]*arm.Program
	servers  map[string]*arm.Program // by workload; of a study of generators
	code     []record.Code           // disassembled
	leftOut  map[string]string
	rates    map[string]float64 // offered rate by workload
	capacity map[string]float64 // by arm
	pins     record.Pinning
	writer   *record.Writer
	manifest record.Manifest
	trials   []record.Trial   // all so far, earlier sessions included
	captures []record.Capture // likewise
	unseen   map[string]bool  // arms that no source can look at
	asking   bool             // nothing is measured: the arms are asked for their answers
	makingUp bool             // the block under way runs invalid cells again
	deaf     map[string]int   // by arm, or "server of WORKLOAD": trials in a row in which it did not get ready
	outcome  string
	begun    time.Time     // of what the budget bounds
	took     time.Duration // of the trials of this session
	ran      int           // trials of this session
}

func newRunner(o Options) *runner {
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	return &runner{Options: o, programs: map[string]*arm.Program{}, leftOut: map[string]string{}, deaf: map[string]int{}, unseen: map[string]bool{}}
}

func (r *runner) reportEvent(e Event) {
	e.Trial = r.ran
	r.Progress(e)
}

// prepare builds every arm and refuses what cannot be compared.
func (r *runner) prepare(ctx context.Context) error {
	r.pins = arrange()
	r.Builder.TakeProfile, r.Builder.Load = r.takeProfile, loadOf(r.Study)
	var kept []study.Arm
	for i, a := range r.Study.Arms {
		r.reportEvent(Event{Stage: Building, Arm: a.Name, Text: fmt.Sprintf("building %d of %d: %s", i+1, len(r.Study.Arms), a.Name)})
		p, err := r.Builder.Build(ctx, a)
		if ctx.Err() != nil {
			return fmt.Errorf("building arm %s: %w", a.Name, ctx.Err())
		}
		if err != nil {
			if !mayLack(a) || a.Name == r.Study.Control {
				return fmt.Errorf("building arm %s: %w", a.Name, err)
			}
			r.leftOut[a.Name] = err.Error()
			continue
		}
		r.programs[a.Name] = p
		kept = append(kept, a)
	}
	s := *r.Study
	s.Arms = kept
	if r.Blocks >= stats.BlocksForFamily(1, stats.StudyAlpha) {
		s.Looks = s.LooksUpTo(r.Blocks) // alpha is shared out over the looks that there will be
	}
	r.Study = s.Without(r.leftOut)
	if err := r.refuseAlone(); err != nil {
		return err
	}
	if err := r.buildServers(ctx); err != nil {
		return err
	}
	if err := r.refuseTwins(); err != nil {
		return err
	}
	return r.disassemble(ctx)
}

// mayLack reports whether an arm that cannot be built is left out by name: it
// needs a program that may be missing, or a version that may not be served.
func mayLack(a study.Arm) bool {
	return len(a.Needs) > 0 || strings.Contains(a.Rival, "@") || strings.Contains(a.Go, "@")
}

// refuseAlone refuses a control that nothing is left to be compared with, which would
// be measured for nothing, with the reasons for which the others are left out.
func (r *runner) refuseAlone() error {
	alone := r.Study.Twin && len(r.leftOut) == 0 // as the study has it: its question is the noise
	if alone || slices.ContainsFunc(r.Study.Workloads, func(w study.Workload) bool { return len(r.Study.ArmsOf(w)) > 1 }) {
		return nil
	}
	var why []error
	for _, name := range slices.Sorted(maps.Keys(r.leftOut)) {
		why = append(why, fmt.Errorf("building arm %s: %s", name, r.leftOut[name]))
	}
	return fmt.Errorf("no arm is left to compare %s with: %w", r.Study.Control, errors.Join(why...))
}

// EqualError says that all arms are one and the same program, so that there is nothing to
// compare. The study may ask to measure it all the same: [study.Study.AA].
type EqualError struct {
	Control string // the arm
	BuildID string // of the program
	Err     error
}

func (e *EqualError) Error() string { return e.Err.Error() }

// TwinsError says that two of several arms are one and the same program.
type TwinsError struct{ A, B, BuildID string }

func (e *TwinsError) Error() string {
	return fmt.Sprintf("arms %s and %s are the same program with the same arguments (build ID %.12s…): "+
		"give them different versions or arguments; to compare a program with itself, set `aa: true` or `twin: true`", e.A, e.B, e.BuildID)
}

// refuseTwins refuses arms that are one and the same program, unless the study
// means to compare a program with itself.
func (r *runner) refuseTwins() error {
	if r.Study.AA {
		return nil
	}
	seen := map[string]string{}
	var twins error
	for _, a := range r.Study.Arms {
		p := r.programs[a.Name]
		id := fmt.Sprintf("%s %s %q %q %s %q %q %q", p.BuildID, p.URL, p.Args, p.Env, p.Sink, [][]string{a.Closed, a.Open, a.Paced, a.Under}, p.Dir, p.Service)
		if p.Go == "" { // as scripts do, it may run what lies beside it
			id += " " + p.Path
		}
		if other, ok := seen[id]; ok && twins == nil {
			twins = &TwinsError{other, a.Name, p.BuildID}
		}
		seen[id] = a.Name
	}
	if p := r.programs[r.Study.Control]; len(seen) == 1 && twins != nil && p.BuildID != "" {
		return &EqualError{Control: r.Study.Control, BuildID: p.BuildID, Err: twins}
	}
	return twins
}

// open makes the run's folder, or takes up the one to resume.
func (r *runner) open() error {
	m := r.About
	m.Study, m.Quick, m.Seed, m.Started = *r.Study, r.Quick, r.Seed, time.Now().UTC()
	m.LeftOut, m.Pinning, m.Code = r.leftOut, r.pins, r.code
	m.Programs, m.Units = map[string]record.Program{}, map[string]string{}
	for _, metric := range r.Study.Metrics() {
		m.Units[metric.Name] = metric.Unit
	}
	for name, p := range r.programs {
		m.Programs[name] = identify(p)
	}
	for name, p := range r.servers {
		m.Programs["server of "+name] = identify(p)
	}
	if !r.pins.Disjoint {
		m.Warnings = append(m.Warnings, "instrument and specimen share their CPUs: there are too few to keep them apart")
	}
	if missing := r.countersMissing(); missing != "" {
		m.Warnings = append(m.Warnings, missing)
	}
	r.manifest = m
	if !r.Resume {
		w, err := record.Create(r.Dir, m)
		r.writer = w
		return err
	}
	w, run, err := record.Resume(r.Dir)
	if err != nil {
		return err
	}
	r.writer, r.manifest, r.trials, r.captures = w, run.Manifest, run.Trials, run.Captures
	if err := r.keepEarly(); err != nil {
		return errors.Join(fmt.Errorf("resuming: %w", err), w.Close())
	}
	if err := WithinPlan(&r.manifest.Study, r.Blocks, r.manifest.Early...); err != nil {
		return errors.Join(fmt.Errorf("resuming: %w: start a new run", err), w.Close())
	}
	if err := sameCPUs(run.Manifest.Pinning, r.pins); err != nil {
		return errors.Join(fmt.Errorf("resuming: %w: use the same programs, or start a new run", err), w.Close())
	}
	if err := r.sameAs(run.Manifest.Programs, m.Programs); err != nil {
		return err
	}
	if err := r.warnOther(m); err != nil {
		return errors.Join(fmt.Errorf("resuming: %w", err), w.Close())
	}
	return nil
}

// warnOther notes that a run is gone on with by another tare, or on another machine,
// since its record has one account of them for all trials.
func (r *runner) warnOther(now record.Manifest) error {
	var other []string
	note := func(what, was, is string) {
		if was != is && was != "" && is != "" {
			other = append(other, fmt.Sprintf("from trial %d on, %s was %s, not %s", len(r.trials), what, is, was))
		}
	}
	note("tare", r.manifest.Tare, now.Tare)
	for _, name := range []string{"cpu", "kernel"} {
		note("the "+name, fact(r.manifest.Env, name), fact(now.Env, name))
	}
	if len(r.trials) == 0 || other == nil {
		return nil
	}
	r.manifest.Warnings = append(r.manifest.Warnings, other...)
	return r.writer.Update(func(m *record.Manifest) { m.Warnings = slices.Clone(r.manifest.Warnings) })
}

// fact is what the environment says of a thing; "" if nothing.
func fact(all []record.Fact, name string) string {
	for _, f := range all {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func identify(p *arm.Program) record.Program {
	one := record.Program{Path: filepath.Base(p.Path), BuildID: p.BuildID, Go: p.Go, Modules: p.Modules, Args: p.Args}
	if info, err := os.Stat(p.Path); err == nil && p.Go != "" {
		one.Size = info.Size()
	}
	return one
}

// sameCPUs refuses to go on with a run on other CPUs, since its record has one
// account of them for all trials.
func sameCPUs(old, now record.Pinning) error {
	if slices.Equal(old.Instrument, now.Instrument) && slices.Equal(old.Specimen, now.Specimen) {
		return nil
	}
	return fmt.Errorf("generator and arms had CPUs %v and %v, and now have %v and %v", old.Instrument, old.Specimen, now.Instrument, now.Specimen)
}

// sameAs refuses to go on with a run whose arms are no longer the same programs,
// since old and new trials would be compared as one, or of which one cannot be
// built any more, since the blocks to come would lack it.
func (r *runner) sameAs(old, now map[string]record.Program) error {
	for _, name := range slices.Sorted(maps.Keys(old)) {
		err := fmt.Errorf("it cannot be built any more: %s", cmp.Or(r.leftOut[name], "no arm that needs it is left"))
		if p, ok := now[name]; ok {
			if p.BuildID == old[name].BuildID {
				continue
			}
			err = fmt.Errorf("it is no longer the same program (build ID %.12s… was %.12s…)", p.BuildID, old[name].BuildID)
		}
		return errors.Join(fmt.Errorf("resuming: arm %s: %w: start a new run", name, err), r.writer.Close())
	}
	return nil
}
