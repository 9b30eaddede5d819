// Package runverb runs studies: the verb run.
package runverb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/pods"
	"github.com/tarehq/tare/cmd/tare/internal/publish"
	"github.com/tarehq/tare/cmd/tare/internal/remote"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/studies"
)

// Command runs studies.
type Command struct {
	Studies []string `arg:"" optional:"" name:"study" help:"Built-in studies (see tare list) or study files; default: the quick form of nesting."`
	runs.StudyFlags
	Arms      []string      `help:"Run only these arms and the control, separated by commas." placeholder:"ARM"`
	Workloads []string      `help:"Run only these workloads." placeholder:"WORKLOAD"`
	Claims    bool          `help:"Run every built-in study that tests claims, one after the other."`
	Budget    time.Duration `help:"Cap the run time, builds excluded, and predict the smallest effect it can detect."`
	Markdown  string        `help:"Write the report for a pull request." placeholder:"FILE"`
	Resume    string        `help:"Continue an interrupted run." placeholder:"RUN"`
	remote.ArmFlags
	JSON bool `name:"json" help:"Print JSON." xor:"form"`
	Plan bool `help:"Print the order and duration of trials, and stop." xor:"form"`
}

// Help shows examples.
func (c *Command) Help() string {
	return `Examples:

    tare run                                  nesting, quick: about 2.5 minutes
    tare run nesting                          the whole study
    tare run --quick --budget 10m frameworks  as many blocks as fit
    tare run --arms chi,gin frameworks        two of its arms, and the control
    tare run --claims --budget 15m            every study with claims, 15 minutes each
    tare run mine.yaml                        your own: see tare help study-files
    tare run --resume RUN                     continue an interrupted run
    tare run --on h1 --certs certs nesting    load by an agent on the host h1
    tare run --on k8s:lab mine.yaml           in pods in the namespace lab

A run never has more blocks than its plan. More blocks need a new run.
Each trial is on disk as soon as it ends. Ctrl-C keeps what was measured.

Exit status: 0 a comparison, claim or goal was decided, 1 failed, 2 wrong usage,
4 nothing was decided, 130 interrupted.`
}

// Run runs the studies one after the other.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	s := &runs.Session{StudyFlags: c.StudyFlags, Arms: c.Arms, Workloads: c.Workloads, Budget: c.Budget}
	if err := errors.Join(s.Check(), cli.CheckOutputs([]cli.Output{{Flag: "--markdown", Path: c.Markdown}})); err != nil {
		return err
	}
	if c.Markdown != "" && len(c.Studies) > 1 {
		return cli.Usage("run them one by one", errors.New("--markdown takes the report of one study"))
	}
	if _, yes := c.InPods(); yes && !c.Plan {
		return c.runInPods(ctx, t, s)
	}
	if err := c.connect(ctx, s); err != nil {
		return err
	}
	defer s.Agents.Close()
	if c.Resume != "" || t.Given["resume"] {
		return c.resume(ctx, t, s)
	}
	if err := c.name(s); err != nil {
		return err
	}
	var chosen []*study.Study
	for _, name := range c.Studies {
		st, err := s.Choose(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, st)
	}
	if c.Plan {
		return c.plan(t, s, chosen)
	}
	if len(chosen) == 1 {
		return c.measure(ctx, t, s, chosen[0])
	}
	return c.measureAll(ctx, t, s, chosen)
}

// runInPods has the whole command run in a namespace of a Kubernetes cluster, arms included.
func (c *Command) runInPods(ctx context.Context, t *cli.Terminal, s *runs.Session) error {
	if err := t.RefuseFlags(true, "with --on k8s", "resume", "module", "arm-on"); err != nil {
		return err
	}
	f := pods.Command{Writes: []string{c.Dir, c.Markdown}}
	for _, name := range c.Studies {
		st, err := s.Choose(name)
		if err != nil {
			return err
		}
		f.Reads = append(f.Reads, st.File)
	}
	return c.RunInPods(ctx, t, f)
}

// connect has agents make the loads, if they are named. A plan needs none.
func (c *Command) connect(ctx context.Context, s *runs.Session) error {
	if c.Plan {
		return c.Check()
	}
	return c.Join(ctx, s)
}

// name names the studies to run where the command line does not.
func (c *Command) name(s *runs.Session) error {
	switch {
	case c.Claims && (len(c.Studies) > 0 || len(c.Arms) > 0 || len(c.Workloads) > 0):
		return cli.Usage("", errors.New("--claims runs every study with claims: no study, --arms or --workloads beside it"))
	case c.Claims:
		s.Decided = (*verdict.Analysis).Settled
		all, err := studies.All()
		if err != nil {
			return err
		}
		for _, st := range all {
			if len(st.Claims) > 0 {
				c.Studies = append(c.Studies, st.Name)
			}
		}
	case len(c.Studies) == 0:
		c.Studies, s.Quick = []string{"nesting"}, true
	}
	return nil
}

// measureAll runs studies one after the other. One that fails or decides nothing
// does not keep the next from being run; an interruption does.
func (c *Command) measureAll(ctx context.Context, t *cli.Terminal, s *runs.Session, chosen []*study.Study) error {
	var failed, undecided []string
	for i, st := range chosen {
		fmt.Fprintf(t.Err, "study %d of %d: %s\n", i+1, len(chosen), st.Name)
		if err := s.CheckBudget(st); err != nil {
			fmt.Fprintln(t.Err, err)
			undecided = append(undecided, st.Name)
			continue
		}
		err := c.measure(ctx, t, s, st)
		switch f := (*cli.Failure)(nil); {
		case err == nil:
		case ctx.Err() != nil:
			return err
		case errors.As(err, &f) && f.Status == cli.ExitInconclusive:
			undecided = append(undecided, st.Name)
		default:
			fmt.Fprintf(t.Err, "study %s: %v\n", st.Name, err)
			failed = append(failed, st.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("these studies failed: %s", strings.Join(failed, ", "))}
	case len(undecided) > 0:
		return &cli.Failure{Status: cli.ExitInconclusive, Err: fmt.Errorf("nothing was decided in: %s", strings.Join(undecided, ", ")), Hint: "the reports estimate how many more blocks it takes"}
	}
	return nil
}

// resume continues an interrupted run.
func (c *Command) resume(ctx context.Context, t *cli.Terminal, s *runs.Session) error {
	if c.Resume == "" {
		return cli.Usage("`tare list` shows the runs kept", errors.New("--resume wants a run: its name is empty"))
	}
	if len(c.Studies) > 0 || c.Claims || c.Plan || c.Seed > 0 || c.Quick || len(c.Arms) > 0 || len(c.Workloads) > 0 {
		return cli.Usage("", errors.New("--resume continues the run as it is: no study, --claims, --arms, --workloads, --plan, --seed or --quick beside it"))
	}
	dir, st, err := s.TakeUp(c.Resume)
	if err != nil {
		return err
	}
	s.Announce(t, st)
	run, err := s.Measure(ctx, t, st, dir)
	return c.finish(t, s, run, err)
}

// measure runs one study and reports it.
func (c *Command) measure(ctx context.Context, t *cli.Terminal, s *runs.Session, st *study.Study) error {
	if err := s.CheckBudget(st); err != nil {
		return err
	}
	s.Announce(t, st)
	run, err := s.Measure(ctx, t, st, s.NewFolder(st))
	return c.finish(t, s, run, err)
}

// plan prints what would run. A study that the budget is too short for is refused as when
// it runs, but beside others it is only named.
func (c *Command) plan(t *cli.Terminal, s *runs.Session, chosen []*study.Study) error {
	for _, st := range chosen {
		switch err := s.CheckBudget(st); {
		case err == nil:
			printPlan(t, s, st)
			s.Announce(t, st)
		case len(chosen) == 1:
			return err
		default:
			fmt.Fprintln(t.Err, err)
		}
	}
	return nil
}

// printPlan prints the order of trials.
func printPlan(t *cli.Terminal, s *runs.Session, st *study.Study) {
	last, took := s.Planned(st)
	var looks []string
	for _, l := range lab.Looks(st, s.Blocks) {
		if l.Blocks < last {
			looks = append(looks, strconv.Itoa(l.Blocks))
		}
	}
	looks = append(looks, strconv.Itoa(last))
	fmt.Fprintf(t.Out, "%s: at most %s of %s, about %s; may end after block %s; seed %d\n",
		st.Name, unit.Plural(last, "block"), unit.Plural(st.CellsPerBlock(), "trial"), took.Round(time.Second), strings.Join(looks, ", "), s.Seed)
	plan := study.NewPlan(st, s.Seed, last)
	for b := range last {
		fmt.Fprintf(t.Out, "block %d:", b+1)
		for _, cell := range plan.Block(b) {
			name := cell.Arm
			if cell.Twin {
				name += " (twin)"
			}
			fmt.Fprintf(t.Out, " %s/%s", cell.Workload, name)
		}
		fmt.Fprintln(t.Out)
	}
}

// finish reports what was measured, also when the run was interrupted.
func (c *Command) finish(t *cli.Terminal, s *runs.Session, run *record.Run, err error) error {
	result := publish.Result{Run: run}
	a, err := s.Conclude(t, run, err, result.Printer(t, nil, c.JSON))
	if result.Analysis != nil { // also of a run that ended early
		err = errors.Join(err, cli.WriteFile(c.Markdown, func(w io.Writer) error { return publish.WriteComment(w, t, result) }))
	}
	switch {
	case err != nil:
		return err
	case a.Trials.Valid == 0:
		return &cli.Failure{Status: cli.ExitFailed, Err: errors.New("no trial counts"), Hint: "the report gives the reasons below \"How far to trust this\""}
	case !decidedAny(a):
		return &cli.Failure{Status: cli.ExitInconclusive, Err: errors.New("nothing was decided"), Hint: "the report estimates how many more blocks it takes"}
	}
	return nil
}

// decidedAny reports whether a run decided a comparison that it was planned for, a claim
// or a goal. A run of the control alone was planned for none and has nothing to decide.
func decidedAny(a *verdict.Analysis) bool {
	return a.Progress().Decided > 0 || len(a.Manifest.Study.Arms) == 1 ||
		slices.ContainsFunc(a.Claims, func(c verdict.Claim) bool {
			return c.Verdict != verdict.Inconclusive && c.Verdict != verdict.NotComparable
		}) ||
		slices.ContainsFunc(a.Goals, func(g verdict.Goal) bool { return g.Outcome == bound.Held || g.Outcome == bound.Failed })
}
