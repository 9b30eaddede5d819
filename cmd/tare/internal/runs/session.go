package runs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
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
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// MostBlocks bounds --blocks.
const MostBlocks = 1000

// HomeFlag says where runs are kept.
type HomeFlag struct {
	Dir string `help:"Folder that holds the runs." default:"runs"`
}

// TrialFlags are those of every verb that runs trials.
type TrialFlags struct {
	Seed   uint64 `help:"Seed for the order of trials (0: random, and recorded)."`
	Module string `help:"Folder of tare's own source, for the built-in arms." placeholder:"DIR"`
}

// StudyFlags are those of every verb that runs a study of the user's choice.
type StudyFlags struct {
	Quick  bool `short:"q" help:"Run the study's short form: fewer arms and blocks."`
	Blocks int  `help:"Most blocks (0: as many as the study plans)."`
	TrialFlags
	HomeFlag
}

// Session runs studies, all with the same programs.
type Session struct {
	StudyFlags
	Arms, Workloads []string
	Budget          time.Duration // 0 has no bound
	Resume          string        // folder of the run to continue; "" begins a new run

	// Decided reports at a look whether the run may stop; nil stops it once its primary
	// comparisons are decided.
	Decided func(*verdict.Analysis) bool
	// Again is the command that continues a run; nil is `tare run --resume`. It takes no
	// budget of time.
	Again func(dir string) []string
	// Command is the one that repeats a run; nil is `tare run` with the session's flags.
	Command []string

	// Agents make the loads; nil: this process does. AgentFlags are the flags that say so, for
	// the command that repeats a run.
	Agents     *fleet.Fleet
	ArmHost    string // as lab.Options.ArmHost
	AgentFlags []string

	// Builder makes the programs; nil is made by the first run.
	Builder *arm.Builder
}

// Check refuses impossible blocks and budgets.
func (s *Session) Check() error {
	if s.Blocks < 0 || s.Blocks > MostBlocks || s.Budget < 0 {
		return cli.Usage("", fmt.Errorf("--blocks %d, --budget %s: at most %d blocks, and neither below 0", s.Blocks, s.Budget, MostBlocks))
	}
	return nil
}

// Choose reads a study in the form to run, and draws a seed if none is given.
func (s *Session) Choose(name string) (*study.Study, error) {
	st, err := findStudy(name)
	if err != nil {
		return nil, err
	}
	if s.Quick && !st.HasQuickForm() {
		return nil, cli.Usage("the key quick defines a short form: see `tare help study-files`", fmt.Errorf("study %s has no short form, so --quick would run the whole of it", st.Name))
	}
	if st, err = st.Part(s.Arms, s.Workloads); err != nil {
		return nil, cli.Usage("", err)
	}
	if s.Quick {
		st = st.QuickForm()
	}
	s.drawSeed()
	return st, nil
}

// drawSeed draws the seed of a run that was given none.
func (s *Session) drawSeed() {
	if s.Seed != 0 {
		return
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	s.Seed = uint64(binary.LittleEndian.Uint32(b[:])) + 1
}

// NewFolder is where a run of the study is kept if it begins now.
func (s *Session) NewFolder(st *study.Study) string {
	return filepath.Join(s.Dir, time.Now().UTC().Format("20060102-150405-")+st.Name)
}

// Announce says beforehand what the run can detect in its time and blocks. A resumed run has
// blocks already, so that what fits into the budget alone says nothing of it.
func (s *Session) Announce(t *cli.Terminal, st *study.Study) {
	if s.Budget > 0 && s.Resume == "" {
		s.announceBudget(t, st)
	} else {
		warnTooFew(t, st, s.Blocks)
	}
}

// Measure runs a study into a folder, with progress on the terminal.
func (s *Session) Measure(ctx context.Context, t *cli.Terminal, st *study.Study, dir string) (*record.Run, error) {
	if s.Builder == nil {
		s.Builder = NewBuilder(s.Module)
	}
	if s.Agents != nil && st.Kind == study.Generators {
		return nil, cli.Usage("run it without --on", fmt.Errorf("study %s compares load generators, which run on this machine", st.Name))
	}
	if s.Agents != nil && slices.ContainsFunc(st.Workloads, func(w study.Workload) bool { return w.Flow != nil }) {
		return nil, cli.Usage("run it without --on", fmt.Errorf("study %s has users who take a flow, and they come from this machine", st.Name))
	}
	s.drawSeed()
	if s.Resume == "" {
		if err := CheckDir(filepath.Dir(dir), "name a folder that you may write, with --dir"); err != nil {
			return nil, err
		}
	}
	run, err := s.runInto(ctx, t, st, dir)
	if errors.Is(err, fs.ErrExist) && s.Resume == "" { // another one began in that second
		return s.runInto(ctx, t, st, s.NewFolder(st))
	}
	return run, err
}

// runInto runs a study into a folder, which must be new unless it is resumed.
func (s *Session) runInto(ctx context.Context, t *cli.Terminal, st *study.Study, dir string) (*record.Run, error) {
	p := NewProgress(t)
	defer p.Done()
	p.Begin("reading what disturbs this machine")
	about := s.describe(ctx, st, dir)
	p.WarnBusy(about.Env)
	if s.Agents != nil {
		s.Agents.Keep(func(rep *fleet.Report) error { return keepAgents(dir, rep) })
	}
	return lab.Run(ctx, lab.Options{
		Study: st, Quick: s.Quick, Builder: s.Builder, Dir: dir, Resume: s.Resume != "",
		Seed: s.Seed, Blocks: s.Blocks, Budget: s.Budget, Decided: s.Decided, About: about, Progress: p.Show,
		Agents: s.Agents, ArmHost: s.ArmHost,
	})
}

// keepAgents appends what each agent measured to a file in the run's folder, a line for each
// load: quantiles of a trial's agents do not follow from the trial's own.
func keepAgents(dir string, rep *fleet.Report) error {
	f, err := os.OpenFile(filepath.Join(dir, "agents.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("keeping what the agents measured: %w", err)
	}
	if err := errors.Join(json.NewEncoder(f).Encode(rep), f.Close()); err != nil {
		return fmt.Errorf("keeping what the agents measured: %w", err)
	}
	return nil
}

// describe is what the manifest says of the surroundings.
func (s *Session) describe(ctx context.Context, st *study.Study, dir string) record.Manifest {
	m := record.Manifest{ID: filepath.Base(dir), Tare: cli.Version(), Command: s.Command, Env: Environment(ctx)}
	if m.Command == nil {
		m.Command = s.repeating(st)
	}
	if s.Agents != nil {
		m.Env = append(m.Env, record.Fact{Name: "agents", Value: s.Agents.String(), Verdict: "ok"})
	}
	noise.Describe(&m)
	return m
}

// repeating is the command that repeats the run.
func (s *Session) repeating(st *study.Study) []string {
	args := []string{"tare", "run", "--seed", strconv.FormatUint(s.Seed, 10)}
	if s.Quick {
		args = append(args, "--quick")
	}
	if len(s.Arms) > 0 {
		args = append(args, "--arms", strings.Join(s.Arms, ","))
	}
	if len(s.Workloads) > 0 {
		args = append(args, "--workloads", strings.Join(s.Workloads, ","))
	}
	return append(append(args, s.keptFlags(s.Budget)...), cmp.Or(st.File, st.Name))
}

// keptFlags hold when the run is continued, and when it is repeated.
func (s *Session) keptFlags(budget time.Duration) []string {
	var args []string
	if s.Blocks > 0 {
		args = append(args, "--blocks", strconv.Itoa(s.Blocks))
	}
	if budget > 0 {
		args = append(args, "--budget", budget.String())
	}
	if s.Module != "" {
		args = append(args, "--module", s.Module)
	}
	return append(args, s.AgentFlags...)
}

// TakeUp prepares to continue a run as it was planned, and returns its folder and study.
func (s *Session) TakeUp(name string) (string, *study.Study, error) {
	dir, err := FindIn(s.Dir, name)
	if err != nil {
		return "", nil, err
	}
	run, err := record.Open(dir)
	if err != nil {
		return "", nil, err
	}
	s.Resume, s.Seed, s.Quick = dir, run.Manifest.Seed, run.Manifest.Quick
	s.Dir = filepath.Dir(filepath.Clean(dir)) // of another run of it, which a gate may make
	st := run.Manifest.Study
	if err := lab.WithinPlan(&st, s.Blocks, run.Manifest.Early...); err != nil {
		return "", nil, cli.Usage(fmt.Sprintf("begin a new run: `tare run --blocks %d %s`", s.Blocks, cmp.Or(st.File, st.Name)), err)
	}
	return dir, &st, nil
}

// Conclude analyses what was measured, has show print it, and writes the HTML report with the
// blocks that show returns, also when err ended the run early.
func (s *Session) Conclude(t *cli.Terminal, run *record.Run, err error, show func(*verdict.Analysis) ([]doc.Block, error)) (*verdict.Analysis, error) {
	if run == nil || len(run.Trials) == 0 {
		return nil, Explain(err)
	}
	a, aerr := verdict.Analyse(run)
	if aerr != nil {
		return nil, errors.Join(err, aerr)
	}
	more, unshown := show(a)
	path := filepath.Join(run.Dir, "report.html")
	unwritten := WriteHTML(run, a, path, more...)
	if unshown != nil {
		return nil, errors.Join(err, unshown, unwritten)
	}
	if unwritten == nil {
		fmt.Fprintf(t.Err, "report: %s\n", path)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return nil, s.Interrupted(run, unwritten)
	case err != nil:
		return nil, s.HintAgain(run, Explain(errors.Join(err, unwritten)))
	}
	return a, unwritten
}

// Interrupted is the failure of a run that was interrupted, and of what else went wrong. It
// says how to continue.
func (s *Session) Interrupted(run *record.Run, besides error) *cli.Failure {
	return &cli.Failure{Status: cli.ExitInterrupted, Err: errors.Join(fmt.Errorf("interrupted; trials on record: %d", len(run.Trials)), besides),
		Hint: "continue with `" + s.continuing(run) + "`"}
}

// continuing is the command that continues a run within the same bounds: the budget holds
// for each session.
func (s *Session) continuing(run *record.Run) string {
	args, budget := []string{"tare", "run", "--resume", run.Dir}, s.Budget
	if s.Again != nil {
		args, budget = s.Again(run.Dir), 0
	}
	return report.ShellLine(append(args, s.keptFlags(budget)...))
}

// HintAgain adds how to continue the run to an error that has no remedy yet.
func (s *Session) HintAgain(run *record.Run, err error) error {
	if f := (*cli.Failure)(nil); err == nil || errors.As(err, &f) {
		return err
	}
	if _, lost := Find(run.Dir); lost != nil {
		return err
	}
	return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "solve that, then continue with `" + s.continuing(run) + "`"}
}

// Explain adds the remedy to an error of a run.
func Explain(err error) error {
	hint := ""
	switch {
	case errors.As(err, new(*cli.Failure)):
		return err
	case errors.Is(err, context.Canceled):
		return &cli.Failure{Status: cli.ExitInterrupted, Err: errors.New("interrupted")}
	case errors.Is(err, arm.ErrNoCache):
		hint = noise.CacheHint
	case errors.Is(err, arm.ErrNoDirectory):
		hint = "start tare in the folder that the study's packages are relative to; continue a run in the folder where it began"
	case errors.Is(err, fleet.ErrLost), errors.Is(err, fleet.ErrNotAllowed):
		hint = "look at the agent's log and configuration; see `tare help agents`"
	case errors.Is(err, lab.ErrArm):
		hint = "start the arm by hand to see what it does; `tare help arm` describes what tare asks of it"
	default:
		return err
	}
	return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: hint}
}
