package calibrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/studies"
)

// SelftestCmd counts false positives.
type SelftestCmd struct {
	Studies int           `help:"Number of A/A studies." default:"20"`
	Measure time.Duration `help:"Length of the measured part of a trial." default:"2s"`
	// Spin adds positive controls.
	Spin []time.Duration `help:"After each A/A study, one of a program in which a request takes so much more CPU, such as 1us,5us: how often is it found, and does the interval hold it?" placeholder:"TIME,…"`
	runs.TrialFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Help says what is counted.
func (c *SelftestCmd) Help() string {
	return `Runs studies of a program against itself, each planned and judged as a study of one's
own: fresh processes in random order, the looks at 8, 12, 18 and 30 blocks, a twin of the
control for the noise floor. A verdict of faster or slower is a false one. They are counted
a second time with the median noise floor of the other studies, which no trial under
judgement has a part in. A study takes one to five minutes. From then on the footer of
every report shows the counts.

With --spin, programs that are known to cost more are studied in turn with them: is the
difference found, and does the interval hold it?`
}

const (
	again        = "again"         // the arm that is the control once more
	leastMeasure = 2 * time.Second // the least of a trial that counts: see docs/method.md
)

// selfTesting is study null with an arm beside its control that is the same program.
func selfTesting(null *study.Study, measure time.Duration) (*study.Study, error) {
	s, err := null.Part(nil, []string{null.Primary.Workload})
	if err != nil {
		return nil, err
	}
	same := s.Arms[0]
	same.Name = again
	s.Arms = []study.Arm{s.Arms[0], same}
	s.AA, s.Primary.Arm, s.Trial.Measure = true, again, measure
	return s, nil
}

// Run runs the studies. An interruption keeps the ones that ended.
func (c *SelftestCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Studies < 1 || c.Measure < leastMeasure {
		return cli.Usage("", fmt.Errorf("--studies %d, --measure %s: at least one study, and %s a trial", c.Studies, c.Measure, leastMeasure))
	}
	for _, added := range c.Spin {
		if added <= 0 || added > mostSpin {
			return cli.Usage("", fmt.Errorf("--spin %s: more than 0, and %s at most", added, mostSpin))
		}
	}
	cache, err := noise.SelfTests()
	if err != nil {
		return err
	}
	if err := runs.CheckDir(cache.Dir, noise.CacheHint); err != nil {
		return err
	}
	null, err := studies.Named("null")
	if err != nil {
		return err
	}
	st := selfTest{SelftestCmd: c, null: null, session: newSession(cache, c.TrialFlags, 0)}
	if err := st.prepare(); err != nil {
		return err
	}
	stopped := st.measure(ctx, t)
	if st.result.Studies == 0 {
		return runs.Explain(errors.Join(stopped, st.uncounted))
	}
	if st.result.Apart, err = countApart(st.counted); err != nil {
		return err
	}
	return c.conclude(t, st.result, cache, stopped)
}

// selfTest is one under way.
type selfTest struct {
	*SelftestCmd
	null      *study.Study
	session   *runs.Session
	same      *study.Study   // the A/A study
	positive  []*study.Study // of each of Spin
	result    noise.SelfTest
	counted   []*record.Run // A/A runs
	uncounted error         // why the last study that does not count does not
}

// prepare plans the studies.
func (st *selfTest) prepare() (err error) {
	if st.same, err = selfTesting(st.null, st.Measure); err != nil {
		return err
	}
	st.result = noise.SelfTest{When: time.Now().UTC(), Machine: noise.Machine(), Looks: st.same.LooksUpTo(0), Measure: st.Measure, Metric: st.same.Primary.Metric}
	for _, added := range st.Spin {
		s, err := dearerBy(st.null, st.Measure, added)
		if err != nil {
			return err
		}
		st.positive = append(st.positive, s)
		st.result.Positive = append(st.result.Positive, noise.Positive{Added: added})
	}
	return nil
}

// measure runs the studies in turn, and returns what stopped them.
func (st *selfTest) measure(ctx context.Context, t *cli.Terminal) error {
	for i := range st.Studies {
		err := st.study(ctx, t, st.same, func(run *record.Run, a *verdict.Analysis) (string, error) {
			if err := countStudy(&st.result, a); err != nil {
				return "", err
			}
			st.counted = append(st.counted, run)
			r := &st.result
			return fmt.Sprintf("A/A study %d of %d: %s; so far intervals that exclude no difference: %d, verdicts: %d", i+1, st.Studies,
				unit.Change(r.Effects[r.Studies-1]), r.Excluding, r.Verdicts), nil
		})
		if err != nil {
			return err
		}
		for k, s := range st.positive {
			err := st.study(ctx, t, s, func(_ *record.Run, a *verdict.Analysis) (string, error) {
				err := countPositive(&st.result.Positive[k], a)
				return "so far " + st.result.Positive[k].String(), err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// study runs one study and tells what counting it gave; one that does not count is told,
// too.
func (st *selfTest) study(ctx context.Context, t *cli.Terminal, s *study.Study, count func(*record.Run, *verdict.Analysis) (string, error)) error {
	run, err := measureNull(ctx, t, s, st.session)
	if err != nil {
		return err
	}
	st.session.Seed++
	a, err := verdict.Analyse(run)
	if err != nil {
		return err
	}
	said, err := count(run, a)
	if err != nil {
		st.uncounted = err
		said = "this study does not count: " + err.Error()
	}
	fmt.Fprintln(t.Err, said)
	return nil
}

// conclude keeps what was counted until the last study, or what stopped them, and
// shows it, also where it cannot be kept.
func (c *SelftestCmd) conclude(t *cli.Terminal, result noise.SelfTest, cache noise.Cache, stopped error) error {
	unkept := cache.Write(result)
	if c.JSON {
		return errors.Join(t.JSON(result), runs.Explain(stopped), unkept)
	}
	fmt.Fprintln(t.Out, result)
	return errors.Join(runs.Explain(stopped), unkept)
}

// counting is a study's decision. One without the pairs of trials that any interval takes
// could not have told anything and is not to be counted: the error says so.
func counting(a *verdict.Analysis) (*verdict.Comparison, error) {
	pairs, least := 0, stats.BlocksForFamily(1, stats.StudyAlpha)
	c := decision(a)
	if c != nil {
		pairs = c.N
	}
	if pairs < least {
		return nil, fmt.Errorf("%s of trials of run %s count, an interval takes %d", unit.Plural(pairs, "pair"), a.Manifest.ID, least)
	}
	return c, nil
}

// countStudy counts one A/A study, unless it has too few pairs for an interval.
func countStudy(s *noise.SelfTest, a *verdict.Analysis) error {
	c, err := counting(a)
	if err != nil {
		return err
	}
	s.Studies++
	s.Effects = append(s.Effects, c.Effect.Effect)
	if !c.Effect.Interval.Contains(0) {
		s.Excluding++
	}
	if isFalse(c) {
		s.Verdicts++
	}
	s.Bound = stats.ClopperPearson(s.Verdicts, s.Studies, 0.05)
	return nil
}

// decision is the comparison that an A/A study is planned for, nil without trials.
func decision(a *verdict.Analysis) *verdict.Comparison {
	if all := a.Decisions(); len(all) > 0 {
		return all[0]
	}
	return nil
}

func isFalse(c *verdict.Comparison) bool {
	return c.Verdict == stats.Faster || c.Verdict == stats.Slower
}

// countApart counts the false verdicts of A/A studies if the noise floor of each is the
// median of those that the others' twins show.
func countApart(counted []*record.Run) (verdicts int, err error) {
	for i, run := range counted {
		var floors, blocks []float64
		for j, other := range counted {
			if i == j {
				continue
			}
			a, err := verdict.Analyse(other)
			if err != nil {
				return 0, err
			}
			if all, n := a.Floors(); n > 0 {
				floors, blocks = append(floors, all[other.Manifest.Study.Primary.Metric]), append(blocks, float64(n))
			}
		}
		if len(floors) == 0 {
			continue
		}
		a, err := verdict.Analyse(withFloor(run, stats.Median(floors), stats.Median(blocks)))
		if err != nil {
			return 0, err
		}
		if c := decision(a); c != nil && isFalse(c) {
			verdicts++
		}
	}
	return verdicts, nil
}

// withFloor is a run without its twin, and with this noise floor of so many blocks.
func withFloor(run *record.Run, floor, blocks float64) *record.Run {
	r := *run
	r.Manifest.Study.Twin = false
	r.Manifest.Floor, r.Manifest.FloorN = map[string]float64{r.Manifest.Study.Primary.Metric: floor}, int(blocks)
	r.Trials = slices.DeleteFunc(slices.Clone(run.Trials), func(t record.Trial) bool { return t.Twin })
	return &r
}
