package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/studies"
)

// runCmd runs studies.
type runCmd struct {
	Studies   []string      `arg:"" optional:"" name:"study" help:"Built-in studies (see tare list) or study files. None: the quick form of nesting."`
	Quick     bool          `short:"q" help:"The study's short form: fewer arms and blocks."`
	Arms      []string      `help:"These arms and the control alone, separated by commas." placeholder:"ARM"`
	Workloads []string      `help:"These workloads alone." placeholder:"WORKLOAD"`
	Budget    time.Duration `help:"Most time for pilot, blocks and captures (builds not counted); says beforehand what that can tell apart."`
	Blocks    int           `help:"Most blocks (0: the study's last look)."`
	Seed      uint64        `help:"Fixes the order of trials (0: drawn, and recorded)."`
	Dir       string        `help:"Folder to keep runs in." default:"runs"`
	Resume    string        `help:"Go on with an interrupted run." placeholder:"RUN"`
	JSON      bool          `name:"json" help:"Print the verdicts as JSON." xor:"form"`
	Plan      bool          `help:"Print the order of trials and the time they take, and stop." xor:"form"`
	Module    string        `help:"Folder of tare's own source, where the built-in arms are." placeholder:"DIR"`

	gate    *gateCmd     // which the run is made for, if it is: it says when the run may stop
	builder *arm.Builder // of all runs of the command, which so measure the same programs; made by the first
}

// Help shows examples.
func (c *runCmd) Help() string {
	return `Examples:

    tare run                                  nesting, quick: two minutes
    tare run nesting                          the whole study
    tare run --quick --budget 10m frameworks  as many blocks as fit
    tare run --arms chi,gin frameworks        two of its arms, and the control
    tare run mine.yaml                        your own: see docs/study-files.md
    tare run --resume RUN                     go on where a run was interrupted

A run never has more blocks than it was planned for: more need a run of its own.
Every trial is on disk as soon as it has ended; Ctrl-C keeps what was measured.

Exit status: 0 something was decided, 1 could not, 2 asked wrongly, 4 nothing was
decided, 130 interrupted.`
}

// Run runs the studies one after the other.
func (c *runCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if err := c.bounds(); err != nil {
		return err
	}
	if c.Resume == "" && t.Given["resume"] {
		return cli.Usage("`tare list` shows the runs kept", errors.New("--resume wants a run: its name is empty"))
	}
	if c.Resume != "" {
		if len(c.Studies) > 0 || c.Plan || c.Seed > 0 || c.Quick || len(c.Arms) > 0 || len(c.Workloads) > 0 {
			return cli.Usage("", errors.New("--resume goes on with the run as it is: no study, --arms, --workloads, --plan, --seed or --quick beside it"))
		}
		return c.resume(ctx, t)
	}
	if len(c.Studies) == 0 {
		c.Studies, c.Quick = []string{"nesting"}, true
	}
	var chosen []*study.Study
	for _, name := range c.Studies {
		s, err := c.choose(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, s)
	}
	for _, s := range chosen {
		if c.Plan {
			c.plan(t, s)
			if c.Budget > 0 {
				announceBudget(t, s, c.Budget, c.Blocks)
			} else {
				warnTooFew(t, s, c.Blocks)
			}
			continue
		}
		run, err := c.measure(ctx, t, s, c.folder(s))
		if err := c.finish(t, run, err); err != nil {
			return err
		}
	}
	return nil
}

// bounds refuses blocks and budgets that cannot be.
func (c *runCmd) bounds() error {
	if c.Blocks < 0 || c.Blocks > mostBlocks || c.Budget < 0 {
		return cli.Usage("", fmt.Errorf("--blocks %d, --budget %s: at most %d blocks, and neither below 0", c.Blocks, c.Budget, mostBlocks))
	}
	return nil
}

// choose reads a study in the form to be run, and draws a seed if there is
// none yet.
func (c *runCmd) choose(name string) (*study.Study, error) {
	s, err := findStudy(name)
	if err != nil {
		return nil, err
	}
	if c.Quick && !s.HasQuickForm() {
		return nil, cli.Usage("its key quick says what that is: see docs/study-files.md", fmt.Errorf("study %s has no short form, so --quick would run the whole of it", s.Name))
	}
	if s, err = s.Part(c.Arms, c.Workloads); err != nil {
		return nil, cli.Usage("", err)
	}
	if c.Quick {
		s = s.QuickForm()
	}
	if c.Seed == 0 {
		c.Seed = runs.DrawSeed()
	}
	return s, nil
}

// folder is where a run of the study is kept.
func (c *runCmd) folder(s *study.Study) string {
	return runs.NewFolder(c.Dir, s.Name)
}

// findStudy reads a file, or takes the built-in study of that name.
func findStudy(name string) (*study.Study, error) {
	if strings.ContainsAny(name, "./") {
		s, err := study.ParseFile(name)
		if errors.As(err, new(*fs.PathError)) {
			return nil, cli.Usage("`tare list` shows the studies that are built in", err)
		}
		if err != nil {
			return nil, cli.Usage("docs/study-files.md lists every key", err)
		}
		return s, nil
	}
	s, err := studies.Named(name)
	if err != nil {
		return nil, cli.Usage("`tare list` shows the studies", err)
	}
	return s, nil
}

// mostBlocks bounds --blocks.
const mostBlocks = 1000

// atMost is how long a study takes if it runs to its last look; blocks is the
// cap, 0 the study's own.
func atMost(s *study.Study, blocks int) time.Duration {
	return study.Estimate(s, lastLook(s, blocks).Blocks, lab.Overhead) + lab.Besides(s)
}

func lastLook(s *study.Study, blocks int) stats.Look {
	looks := lab.Looks(s, blocks)
	return looks[len(looks)-1]
}

func (c *runCmd) plan(t *cli.Terminal, s *study.Study) {
	var looks []int
	for _, l := range lab.Looks(s, c.Blocks) {
		looks = append(looks, l.Blocks)
	}
	last := looks[len(looks)-1]
	fmt.Fprintf(t.Out, "%s: at most %s of %s, about %s; looks at %v; seed %d\n",
		s.Name, cli.Count(uint64(last), "block"), cli.Count(uint64(s.CellsPerBlock()), "trial"), atMost(s, c.Blocks).Round(time.Second), looks, c.Seed)
	plan := study.NewPlan(s, c.Seed, last)
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

// measure runs a study into a folder, with progress on the terminal.
func (c *runCmd) measure(ctx context.Context, t *cli.Terminal, s *study.Study, dir string) (*record.Run, error) {
	if c.builder == nil {
		builder, err := runs.NewBuilder(c.Module)
		if err != nil {
			return nil, err
		}
		c.builder = builder
	}
	if c.Budget > 0 {
		announceBudget(t, s, c.Budget, c.Blocks)
	} else {
		warnTooFew(t, s, c.Blocks)
	}
	if c.Resume == "" {
		if err := runs.CheckDir(filepath.Dir(dir), "name a folder that you may write, with --dir"); err != nil {
			return nil, err
		}
	}
	run, err := c.inFolder(ctx, t, s, dir)
	if errors.Is(err, fs.ErrExist) && c.Resume == "" { // another one began in that second
		return c.inFolder(ctx, t, s, c.folder(s))
	}
	return run, err
}

// inFolder runs a study into a folder that must not be there, unless it is to be resumed.
func (c *runCmd) inFolder(ctx context.Context, t *cli.Terminal, s *study.Study, dir string) (*record.Run, error) {
	p := runs.NewProgress(t)
	defer p.Done()
	return lab.Run(ctx, lab.Options{
		Study: s, Quick: c.Quick, Builder: c.builder, Dir: dir, Resume: c.Resume != "",
		Seed: c.Seed, Blocks: c.Blocks, Budget: c.Budget, Decided: c.decided(), About: c.about(ctx, s, dir), Progress: p.Show,
	})
}

// decided tells at a look whether the run may stop; nil: once its primary comparisons
// are decided.
func (c *runCmd) decided() func(*verdict.Analysis) bool {
	if c.gate == nil {
		return nil
	}
	return func(a *verdict.Analysis) bool { return !slices.ContainsFunc(c.gate.gates(a), open) }
}

// finish reports what was measured, also when the run was interrupted.
func (c *runCmd) finish(t *cli.Terminal, run *record.Run, err error) error {
	if run == nil || len(run.Trials) == 0 {
		return explain(err)
	}
	a, aerr := verdict.Analyse(run)
	if aerr != nil {
		return errors.Join(err, aerr)
	}
	path := filepath.Join(run.Dir, "report.html")
	herr := runs.WriteHTML(run, a, path)
	if c.JSON {
		if jerr := report.JSON(t.Out, a); jerr != nil {
			return errors.Join(err, jerr, herr)
		}
	} else if terr := report.Text(t.Out, a, report.TextOptions{Width: t.Width, Color: t.Colour}); terr != nil {
		return errors.Join(err, terr, herr)
	}
	if herr == nil {
		fmt.Fprintf(t.Err, "report: %s\n", path)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return c.interrupted(run, herr)
	case err == nil && herr == nil && a.Trials.Valid == 0:
		return &cli.Failure{Status: cli.ExitFailed, Err: errors.New("no trial counts"), Hint: "the report says why, below \"How far to trust this\""}
	case err == nil && herr == nil && !decidedAny(a):
		return &cli.Failure{Status: cli.ExitInconclusive, Err: errors.New("nothing was decided"), Hint: "the report says about how many more blocks it takes"}
	case err == nil:
		return herr
	}
	return c.goOn(run, explain(errors.Join(err, herr)))
}

// decidedAny reports whether a run decided a comparison that it was planned for, a claim
// or a goal. A run that was planned for none has nothing to decide.
func decidedAny(a *verdict.Analysis) bool {
	p := a.Progress()
	return p.Decided > 0 || p.Undecided == 0 ||
		slices.ContainsFunc(a.Claims, func(c verdict.Claim) bool {
			return c.Verdict != verdict.Inconclusive && c.Verdict != verdict.NotComparable
		}) ||
		slices.ContainsFunc(a.Goals, func(g verdict.Goal) bool { return g.Outcome == bound.Held || g.Outcome == bound.Failed })
}

// interrupted tells of a run that was, and of what else went wrong, how to go on.
func (c *runCmd) interrupted(run *record.Run, besides error) *cli.Failure {
	return &cli.Failure{Status: cli.ExitInterrupted, Err: errors.Join(fmt.Errorf("interrupted; trials on record: %d", len(run.Trials)), besides),
		Hint: "go on with `" + c.resuming(run) + "`"}
}

// resuming is the command that goes on with a run, within the same bounds: the budget
// holds for each session.
func (c *runCmd) resuming(run *record.Run) string {
	args := []string{"tare", "run", "--resume", run.Dir}
	if c.gate != nil {
		// By itself a second run would be a first one, and pass what had failed.
		args = append([]string{"tare", "gate", "--resume", cmp.Or(c.gate.failed, run.Dir)}, c.gate.Max.Flags()...)
	}
	return strings.Join(append(args, c.kept()...), " ")
}

// kept are the flags that a run keeps when it is gone on with, and when it is repeated.
func (c *runCmd) kept() []string {
	var args []string
	if c.Blocks > 0 {
		args = append(args, "--blocks", strconv.Itoa(c.Blocks))
	}
	if c.Budget > 0 {
		args = append(args, "--budget", c.Budget.String())
	}
	if c.Module != "" {
		args = append(args, "--module", c.Module)
	}
	return args
}

// goOn adds to an error without a remedy that the run it stopped can be gone on with.
func (c *runCmd) goOn(run *record.Run, err error) error {
	if f := (*cli.Failure)(nil); err == nil || errors.As(err, &f) {
		return err
	}
	if _, lost := runs.Find(run.Dir); lost != nil {
		return err
	}
	return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "once that is mended, go on with `" + c.resuming(run) + "`"}
}

// resume goes on with an interrupted run.
func (c *runCmd) resume(ctx context.Context, t *cli.Terminal) error {
	dir, s, err := c.takeUp(c.Resume)
	if err != nil {
		return err
	}
	run, err := c.measure(ctx, t, s, dir)
	return c.finish(t, run, err)
}

// takeUp makes ready to go on with a run as it was planned, and returns its folder and
// its study.
func (c *runCmd) takeUp(name string) (string, *study.Study, error) {
	dir, err := runs.FindIn(c.Dir, name)
	if err != nil {
		return "", nil, err
	}
	run, err := record.Open(dir)
	if err != nil {
		return "", nil, err
	}
	c.Resume, c.Seed, c.Quick = dir, run.Manifest.Seed, run.Manifest.Quick
	c.Dir = filepath.Dir(filepath.Clean(dir)) // of another run of it, which a gate may make
	s := run.Manifest.Study
	if err := lab.WithinPlan(&s, c.Blocks); err != nil {
		return "", nil, cli.Usage(fmt.Sprintf("a run of its own takes as many: `tare run --blocks %d %s`", c.Blocks, cmp.Or(s.File, s.Name)), err)
	}
	return dir, &s, nil
}

// about is what the manifest says of the surroundings.
func (c *runCmd) about(ctx context.Context, s *study.Study, dir string) record.Manifest {
	m := record.Manifest{ID: filepath.Base(dir), Tare: version(), Command: c.command(s), Env: runs.Environment(ctx)}
	calibrated(&m)
	return m
}

// command is the one that repeats the run.
func (c *runCmd) command(s *study.Study) []string {
	name := s.Name
	if s.File != "" {
		name = s.File
	}
	args := []string{"tare", "run", "--seed", strconv.FormatUint(c.Seed, 10)}
	if c.Quick {
		args = append(args, "--quick")
	}
	if len(c.Arms) > 0 {
		args = append(args, "--arms", strings.Join(c.Arms, ","))
	}
	if len(c.Workloads) > 0 {
		args = append(args, "--workloads", strings.Join(c.Workloads, ","))
	}
	return append(append(args, c.kept()...), name)
}

// cacheDir is tare's place below the user's cache folder.
func cacheDir(name string) (string, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		return "", &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: cacheHint}
	}
	return filepath.Join(root, "tare", name), nil
}

// cacheHint helps where nothing can be kept in the user's cache folder.
const cacheHint = "set XDG_CACHE_HOME to a folder that you may write"

// explain adds the remedy to errors of a run.
func explain(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return &cli.Failure{Status: cli.ExitInterrupted, Err: errors.New("interrupted")}
	case errors.Is(err, arm.ErrNoCache):
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: cacheHint}
	case errors.Is(err, arm.ErrNoDirectory):
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "start tare in the folder that the study's packages are named from; a run goes on in the one it was begun in"}
	case errors.Is(err, lab.ErrArm):
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "start the arm by hand to see what it does; docs/arm.md tells what it is asked to do"}
	}
	return err
}
