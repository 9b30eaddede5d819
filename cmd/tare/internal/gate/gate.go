// Package gate passes or fails a change: the verb gate.
package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/pods"
	"github.com/tarehq/tare/cmd/tare/internal/publish"
	"github.com/tarehq/tare/cmd/tare/internal/remote"
	"github.com/tarehq/tare/cmd/tare/internal/runs"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// Cmd passes or fails a change.
type Cmd struct {
	Target string       `arg:"" name:"study|run" help:"A study or study file to run (control = before, arms = after), or a kept run."`
	Max    runs.Budgets `help:"Largest harm, such as 'cpu_per_request<=5%' or cpu_per_request=5; repeatable. Default: the primary metric at 5 %." placeholder:"METRIC<=PCT"`
	runs.StudyFlags
	Resume bool `help:"Continue an interrupted run, and gate it."`
	JSON   bool `name:"json" help:"Print JSON."`
	publish.Flags
	Remote remote.ArmFlags `embed:""`

	failed string // folder of the first run, where a gate failed that the second is to confirm
}

// Help tells what a failure is.
func (c *Cmd) Help() string {
	return `Examples:

  tare gate release.yaml                                   at most 5 % on the primary metric
  tare gate --max 'cpu_per_request<=5%' --max 'response_p99<=20%' release.yaml
  tare gate --max 'rss_peak<=10%' 20261126-090000-release  other budgets for a kept run
  tare gate --comment release.yaml                         and comment on the pull request

A budget fails if the whole interval of the harm lies beyond it, and a second run with
fresh processes and another seed confirms that. It holds if the whole interval lies
within it. Anything else is inconclusive. So is an arm without the metric, because its
trials or its build failed.

A study runs until all budgets are decided, or to its last look. The looks share the
error rate. A run's folder gets no second run, so a failure there is inconclusive.
--resume continues an interrupted run, and confirms a failure.

--on has agents on other hosts make the load, and --on k8s runs the gate in pods, as in
` + "`tare run`" + `.

Exit status: 0 every budget held, 3 one failed, 4 inconclusive.`
}

// Run gates.
func (c *Cmd) Run(ctx context.Context, t *cli.Terminal) error {
	if _, err := c.budgets(""); err != nil {
		return err
	}
	if c.Target == "" { // not the newest run, as elsewhere: a variable that is empty passes nothing
		return cli.Usage("", errors.New("want a study or a run: its name is empty"))
	}
	session := c.session()
	if err := cmp.Or(session.Check(), cli.CheckOutputs(c.Outputs(), c.Target), c.Flags.Check(t, os.Getenv)); err != nil {
		return err
	}
	if _, yes := c.Remote.InPods(); yes {
		return c.runInPods(ctx, t, session)
	}
	var s *study.Study
	dir, err := runs.FindIn(c.Dir, c.Target)
	switch {
	case c.Resume && (c.Quick || c.Seed != 0):
		return cli.Usage("", errors.New("--resume continues the run as it is: no --quick or --seed beside it"))
	case c.Resume:
		dir, s, err = session.TakeUp(c.Target)
	case err == nil:
		return c.judge(ctx, t, dir)
	default:
		if s, err = session.Choose(c.Target); err == nil {
			dir = session.NewFolder(s)
		}
	}
	if err != nil {
		return err
	}
	if err := c.checkComparable(s); err != nil {
		return err
	}
	if err := c.Remote.Join(ctx, session); err != nil {
		return err
	}
	defer session.Agents.Close()
	first, err := c.measure(ctx, t, session, s, dir)
	if equal := (*lab.EqualError)(nil); errors.As(err, &equal) {
		return c.passEqual(ctx, t, s, equal)
	}
	if err != nil {
		return err
	}
	if c.failed == "" {
		return c.decide(ctx, t, first, nil)
	}
	fmt.Fprintln(t.Err, "a gate failed: confirming it with fresh processes and another seed")
	session.Seed++
	session.Resume = ""
	again, err := c.measure(ctx, t, session, s, session.NewFolder(s))
	if err != nil {
		return err
	}
	return c.decide(ctx, t, first, again.Gates)
}

// runInPods has the whole gate run in a namespace of a Kubernetes cluster. The cluster has
// neither the runs of this folder nor the CI job.
func (c *Cmd) runInPods(ctx context.Context, t *cli.Terminal, session *runs.Session) error {
	if err := t.RefuseFlags(true, "with --on k8s", "resume", "module", "arm-on", "comment"); err != nil {
		return err
	}
	if _, err := runs.FindIn(c.Dir, c.Target); err == nil {
		return cli.Usage("leave --on out", fmt.Errorf("%s is a run, judged as it is: pods do not have it", c.Target))
	}
	s, err := session.Choose(c.Target)
	if err != nil {
		return err
	}
	if err := c.checkComparable(s); err != nil {
		return err
	}
	return c.Remote.RunInPods(ctx, t, pods.Command{Reads: []string{s.File}, Writes: append(cli.Paths(c.Outputs()), c.Dir)})
}

// passEqual passes a change that leaves the program as it is.
func (c *Cmd) passEqual(ctx context.Context, t *cli.Terminal, s *study.Study, equal *lab.EqualError) error {
	t.Note("every arm is the same program as %s (SHA-256 %.12s…): nothing is measured, and every budget holds", equal.Control, equal.BuildID)
	if c.JSON {
		if err := t.JSON([]entry{}); err != nil {
			return err
		}
	}
	budgets, _ := c.budgets(s.Primary.Metric) // Run has checked them
	return c.PublishSame(ctx, t, comment.Equal{Study: s.Name, Control: equal.Control, BuildID: equal.BuildID, Command: os.Args}, budgets)
}

// session is that of both runs of a gate, so that they measure the same programs.
func (c *Cmd) session() *runs.Session {
	return &runs.Session{
		StudyFlags: c.StudyFlags,
		Decided:    func(a *verdict.Analysis) bool { return !slices.ContainsFunc(c.gates(a), verdict.Gated.Undecided) },
		// By itself a second run would be a first one, and pass what had failed.
		Again: func(dir string) []string {
			return append([]string{"tare", "gate", "--resume", cmp.Or(c.failed, dir)}, c.Max.Flags()...)
		},
	}
}

// judge gates a run as it is.
func (c *Cmd) judge(ctx context.Context, t *cli.Terminal, dir string) error {
	if c.Quick || c.Blocks != 0 || c.Seed != 0 || c.Module != "" || len(c.Remote.On) > 0 {
		return cli.Usage("", fmt.Errorf("%s is a run, judged as it is: no --quick, --blocks, --seed, --module or --on beside it", c.Target))
	}
	if err := c.Remote.Check(); err != nil {
		return err
	}
	run, a, err := runs.Open(dir)
	if err != nil {
		return err
	}
	return c.decide(ctx, t, c.result(run, a, nil), nil)
}

// measure makes a run and gates it. It notes the first run that fails.
func (c *Cmd) measure(ctx context.Context, t *cli.Terminal, session *runs.Session, s *study.Study, dir string) (*publish.Result, error) {
	session.Announce(t, s)
	run, err := session.Measure(ctx, t, s, dir)
	if err != nil {
		return nil, c.explain(session, run, err)
	}
	a, err := verdict.Analyse(run)
	if err != nil {
		return nil, err
	}
	args := os.Args
	if c.Resume {
		args = nil
	}
	r := c.result(run, a, args)
	path := filepath.Join(run.Dir, "report.html")
	if err := runs.WriteHTML(run, a, path, publish.Ending(t, *r)...); err != nil { // the gate is judged all the same
		t.Note("warning: %s", err)
	} else {
		fmt.Fprintf(t.Err, "report: %s\n", path)
	}
	if c.failed == "" && comment.Worst(r.Gates) == bound.Failed {
		c.failed = run.Dir
	}
	return r, nil
}

// result is what is published. Without args, what made the run repeats it.
func (c *Cmd) result(run *record.Run, a *verdict.Analysis, args []string) *publish.Result {
	return &publish.Result{Run: run, Analysis: a, Gates: c.gates(a), Args: args}
}

// explain says why a run ended early, and how to continue if anything was measured; run may
// be nil.
func (c *Cmd) explain(session *runs.Session, run *record.Run, err error) error {
	if run == nil || len(run.Trials) == 0 {
		if c.failed == "" {
			return runs.Explain(err)
		}
		run = &record.Run{Dir: c.failed} // nothing is kept of the second run: the first is continued
	}
	if errors.Is(err, context.Canceled) {
		return session.Interrupted(run, nil)
	}
	return session.HintAgain(run, runs.Explain(err))
}

// checkComparable refuses, before anything is measured, a budget for a metric by which the
// study does not compare arms.
func (c *Cmd) checkComparable(s *study.Study) error {
	budgets, err := c.budgets(s.Primary.Metric)
	if err != nil {
		return err
	}
	for _, b := range budgets {
		if err := s.CheckComparable(b.Metric); err != nil {
			return cli.Usage("`tare help study-files` lists the metrics and what they need", fmt.Errorf("gating study %s: %w", s.Name, err))
		}
	}
	return nil
}

// budgets are those asked for, or the default for the study's primary metric.
func (c *Cmd) budgets(primary string) ([]verdict.Budget, error) {
	if len(c.Max) == 0 {
		return []verdict.Budget{{Metric: primary, Harm: 0.05}}, nil
	}
	return c.Max.List()
}

func (c *Cmd) gates(a *verdict.Analysis) []verdict.Gated {
	budgets, _ := c.budgets(a.Manifest.Study.Primary.Metric) // Run has checked them
	return a.Gate(budgets)
}

// entry is the shape of a row of `tare gate --json`.
type entry struct {
	Metric   string  `json:"metric"`
	Workload string  `json:"workload"`
	Arm      string  `json:"arm"`
	Budget   float64 `json:"budget"` // relative
	Effect   bounded `json:"effect"` // relative
	Lo       bounded `json:"lo"`
	Hi       bounded `json:"hi"`
	Level    float64 `json:"level,omitzero"`   // of the interval
	Anytime  bool    `json:"anytime,omitzero"` // it holds whenever one looks: the run has not ended
	Blocks   int     `json:"blocks"`
	Result   string  `json:"result"`
	Again    string  `json:"again,omitempty"` // result of the second run
	Why      string  `json:"why,omitempty"`   // nothing was held against the budget

	figure, span string // for people
}

// bounded is a number that may be infinite, as an interval's end is while there
// are too few blocks; JSON shows that as null.
type bounded float64

// MarshalJSON implements [json.Marshaler].
func (b bounded) MarshalJSON() ([]byte, error) {
	if f := float64(b); !math.IsInf(f, 0) && !math.IsNaN(f) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// decide prints and publishes the gates and returns the exit status; again are those of the
// second run, nil without one.
func (c *Cmd) decide(ctx context.Context, t *cli.Terminal, r *publish.Result, again []verdict.Gated) error {
	first := r.Gates
	r.Gates = publish.Confirm(first, again)
	if err := c.print(t, gateRows(r.Gates)); err != nil {
		return err
	}
	return publish.WithFailure(c.status(first, r.Gates, again != nil), c.Publish(ctx, t, *r))
}

// status is what the gates come to; first are those of the first run alone.
func (c *Cmd) status(first, gates []verdict.Gated, again bool) error {
	switch comment.Worst(gates) {
	case bound.Failed:
		return &cli.Failure{Status: cli.ExitThreshold, Err: errors.New("a budget is exceeded")}
	case bound.Inconclusive:
		hint := "more blocks may decide: gate the study again, with --blocks, or compare again with a longer --budget"
		if !slices.ContainsFunc(first, verdict.Gated.Undecided) {
			hint = "`tare report` shows what was measured"
		}
		if comment.Worst(first) == bound.Failed {
			hint = "a budget was exceeded once; only a second run can fail it: gate the study, not its run"
			if again {
				hint = "a budget was exceeded in the first run only"
			}
		}
		return &cli.Failure{Status: cli.ExitInconclusive, Err: errors.New("inconclusive"), Hint: hint}
	}
	return nil
}

func gateRows(gates []verdict.Gated) []entry {
	rows := []entry{}
	for _, g := range gates {
		row := entry{Metric: g.Metric.Name, Workload: g.Workload, Arm: g.Arm, Budget: g.Budget, Blocks: g.N, Result: string(g.Result), Again: string(g.Again), Why: g.Withheld}
		e := relative(g)
		row.Effect, row.Lo, row.Hi = bounded(e.Value), bounded(e.Interval.Lo), bounded(e.Interval.Hi)
		row.Level, row.Anytime = e.Level, g.Anytime
		row.figure, row.span = "–", "–"
		if g.Withheld == "" {
			row.figure, row.span = g.Figure(), fmt.Sprintf("%s (%s)", g.Range(), g.Difference.Confidence())
		}
		rows = append(rows, row)
	}
	return rows
}

// relative is a change as a share of the size of the control's level: not a number where that
// is 0, or where nothing was compared.
func relative(g verdict.Gated) verdict.Estimate {
	nan := math.NaN()
	if g.Withheld != "" {
		return verdict.Estimate{Value: nan, Interval: stats.Interval{Lo: nan, Hi: nan}}
	}
	if e, ok := g.Relative(); ok {
		return e
	}
	of, d := math.Abs(g.AgainstMedian), g.Difference
	return verdict.Estimate{Value: d.Value / of, Interval: stats.Interval{Lo: d.Interval.Lo / of, Hi: d.Interval.Hi / of}, Level: d.Level}
}

func (c *Cmd) print(t *cli.Terminal, rows []entry) error {
	if c.JSON {
		return t.JSON(rows)
	}
	cells := [][]string{{"RESULT", "METRIC", "WORKLOAD", "ARM", "EFFECT", "INTERVAL", "BUDGET", "BLOCKS"}}
	for _, r := range rows {
		cells = append(cells, []string{
			r.Result, r.Metric, cmp.Or(r.Workload, "–"), cmp.Or(r.Arm, "–"), r.figure, r.span, unit.Change(r.Budget), strconv.Itoa(r.Blocks),
		})
	}
	lines := cli.AlignColumns(cells)
	if utf8.RuneCountInString(lines[0]) > t.Width {
		for _, r := range rows {
			cli.Wrap(t.Out, fmt.Sprintf("%-12s  ", r.Result), r.sentence(), t.Width)
		}
		return nil
	}
	for _, line := range lines {
		fmt.Fprintln(t.Out, strings.TrimRight(line, " "))
	}
	for _, r := range rows {
		if r.Why != "" {
			cli.Wrap(t.Out, "  ", r.subject()+": "+r.Why, t.Width)
		}
	}
	return nil
}

// sentence is a row for a terminal that is too narrow for the table.
func (r *entry) sentence() string {
	if r.Why != "" {
		return r.subject() + ": " + r.Why
	}
	return fmt.Sprintf("%s: %s, interval %s, budget %s, %s", r.subject(), r.figure, r.span, unit.Change(r.Budget), unit.Plural(r.Blocks, "block"))
}

// subject is what a row is about.
func (r *entry) subject() string {
	text := r.Metric
	if r.Arm != "" {
		text += " of " + r.Arm
	}
	if r.Workload != "" {
		text += ", workload " + r.Workload
	}
	return text
}
