package calibrate

import (
	"context"
	"errors"
	"fmt"
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
	Studies int           `help:"Number of studies of each kind to have on record. Earlier ones on this machine count." default:"20"`
	Quick   bool          `short:"q" help:"Run short studies: 8 blocks and one look."`
	Measure time.Duration `help:"Length of the measured part of a trial, at least 500ms." default:"2s"`
	// Spin adds positive controls.
	Spin []time.Duration `help:"After each A/A study, also study a program whose requests take this much more CPU, such as 1us,5us." placeholder:"TIME,…"`
	Anew bool            `help:"Start over. The studies on record are set aside."`
	From []string        `help:"Only sum up the studies in these files, such as those of several machines." placeholder:"FILE,…"`
	runs.TrialFlags
	JSON     bool   `name:"json" xor:"form" help:"Print JSON."`
	Markdown string `placeholder:"FILE" xor:"form" help:"Write the counts as a Markdown table; - is standard output."`
}

// Help says what is counted.
func (c *SelftestCmd) Help() string {
	return `Examples:

  tare selftest                            run studies until there are 20
  tare selftest --quick --measure 500ms    short studies of 30 s each
  tare selftest --spin 1us,5us             also: is a known difference found?
  tare selftest --from a.json,b.json       sum up two machines

selftest runs studies of a program against itself. Each is planned and judged as your own:
fresh processes in random order, looks at 8, 12, 18 and 30 blocks, and a twin of the
control for the noise floor. Each verdict that the two differ, if only by a little, is
false. They are counted again with the median noise floor of the other studies on this
machine. A study takes one to five minutes. The footer of every later report shows the
counts.

Each study is kept when it ends. An interruption loses only the current one, and the next
selftest continues: --studies 100 means until there are 100. Studies of another --measure,
and short ones (--quick), are counted separately.

With --spin, studies of a program that is known to cost more run in turn with them. tare
counts how often the difference is found, and how often the interval contains it.`
}

const (
	again        = "again"                // the arm that is the control once more
	leastMeasure = 500 * time.Millisecond // about 20,000 requests: see docs/method.md
	mostLost     = 3                      // studies in a row that do not count
)

// selfTesting is study null with an arm beside its control that is the same program, and
// without the loop in process, which says nothing of what the studies decide on.
func selfTesting(null *study.Study, c *SelftestCmd) (*study.Study, error) {
	s, err := null.Part(nil, []string{null.Primary.Workload})
	if err != nil {
		return nil, err
	}
	if c.Quick {
		s = s.QuickForm()
	}
	same := s.Arms[0]
	same.Name = again
	s.Arms = []study.Arm{s.Arms[0], same}
	s.AA, s.Primary.Arm, s.Trial.Measure = true, again, c.Measure
	for i := range s.Workloads {
		s.Workloads[i].Loop = 0
	}
	return s, nil
}

// Run runs the studies that the record lacks, or sums up files of them.
func (c *SelftestCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if err := c.check(t); err != nil {
		return err
	}
	if len(c.From) > 0 {
		all, err := noise.ReadStudies(c.From)
		if err != nil {
			return err
		}
		return c.show(t, all)
	}
	cache, err := noise.SelfTests()
	if err != nil {
		return err
	}
	if err := runs.CheckDir(cache.Dir, noise.CacheHint); err != nil {
		return err
	}
	if err := c.setAside(t, cache); err != nil {
		return err
	}
	session := newSession(cache, c.TrialFlags, 0)
	st := selfTest{SelftestCmd: c, cache: cache, run: func(ctx context.Context, s *study.Study) (*record.Run, error) {
		run, err := measureNull(ctx, t, s, session)
		session.Seed++ // the next study has another order
		return run, err
	}}
	null, err := studies.Named("null")
	if err != nil {
		return err
	}
	if err := st.prepare(null, time.Now().UTC()); err != nil {
		return err
	}
	if st.aside > 0 {
		t.Note("studies on record of another workload, or of an older tare that did not name it: %d; they are not counted", st.aside)
	}
	return st.conclude(t, st.measure(ctx, t))
}

func (c *SelftestCmd) check(t *cli.Terminal) error {
	if err := t.RefuseFlags(len(c.From) > 0, "beside --from", "studies", "quick", "measure", "spin", "anew", "seed", "module"); err != nil {
		return err
	}
	if c.Studies < 1 || c.Measure < leastMeasure {
		return cli.Usage("", fmt.Errorf("--studies %d, --measure %s: at least one study, and %s a trial", c.Studies, c.Measure, leastMeasure))
	}
	for _, added := range c.Spin {
		if added <= 0 || added > mostSpin {
			return cli.Usage("", fmt.Errorf("--spin %s: more than 0, and %s at most", added, mostSpin))
		}
	}
	if c.Markdown == "-" {
		return nil
	}
	return cli.CheckOutputs([]cli.Output{{Flag: "--markdown", Path: c.Markdown}}, c.From...)
}

// setAside begins anew where that is asked for.
func (c *SelftestCmd) setAside(t *cli.Terminal, cache noise.Cache) error {
	if !c.Anew {
		return nil
	}
	to, err := cache.SetAside(time.Now())
	if err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("setting studies aside: %w", err), Hint: noise.CacheHint}
	}
	if to != "" {
		t.Note("the studies until now are in %s", to)
	}
	return nil
}

// selfTest is one sitting.
type selfTest struct {
	*SelftestCmd
	cache   noise.Cache
	run     func(context.Context, *study.Study) (*record.Run, error)
	setting noise.Setting
	begun   time.Time
	kinds   []kind        // the A/A study, then those of Spin
	counted []noise.Study // on record, of this machine and setting, under the kinds' workloads
	aside   int           // others of this machine and setting
}

// kind is a study that is run many times.
type kind struct {
	study *study.Study
	added time.Duration // 0: A/A
}

func (k *kind) String() string {
	if k.added == 0 {
		return "A/A study"
	}
	return "study of " + unit.Format(float64(k.added), unit.Nanoseconds) + " more"
}

// prepare plans the studies and reads the record.
func (st *selfTest) prepare(null *study.Study, now time.Time) error {
	same, err := selfTesting(null, st.SelftestCmd)
	if err != nil {
		return err
	}
	st.begun, st.kinds = now, []kind{{study: same}}
	st.setting = noise.Setting{Looks: same.LooksUpTo(0), Measure: st.Measure, Metric: same.Primary.Metric}
	for _, added := range st.Spin {
		s, err := dearerBy(null, st.SelftestCmd, added)
		if err != nil {
			return err
		}
		st.kinds = append(st.kinds, kind{s, added})
	}
	all, err := st.cache.Studies(st.setting)
	if err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "`tare selftest --anew` sets that file aside"}
	}
	workloads := map[bool]string{false: same.Primary.Workload, true: busy}
	for _, one := range all {
		if one.Workload == workloads[one.Added > 0] {
			st.counted = append(st.counted, one)
		}
	}
	st.aside = len(all) - len(st.counted)
	return nil
}

// next is the kind of which the record has the fewest studies, and how many; nil where it
// has enough of all.
func (st *selfTest) next() (least *kind, have int) {
	have = st.Studies
	for i := range st.kinds {
		n := 0
		for j := range st.counted {
			if st.counted[j].Added == st.kinds[i].added {
				n++
			}
		}
		if n < have {
			least, have = &st.kinds[i], n
		}
	}
	return least, have
}

// measure runs the studies that the record lacks, and returns what stopped them. Each is
// kept when it ends; one that does not count is told, and run again.
func (st *selfTest) measure(ctx context.Context, t *cli.Terminal) error {
	for lost := 0; ; {
		k, have := st.next()
		if k == nil {
			return nil
		}
		run, err := st.run(ctx, k.study)
		if err != nil {
			return err
		}
		made, err := st.count(run, k.added)
		if err != nil {
			if lost++; lost == mostLost {
				return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%d studies in a row do not count, the last one because %w", lost, err), Hint: "`tare env` shows what disturbs this machine"}
			}
			t.Note("this study does not count: %v", err)
			continue
		}
		lost = 0
		st.counted = append(st.counted, made)
		if err := st.cache.Add(made); err != nil {
			return err
		}
		sum, err := noise.Sum(st.counted)
		if err != nil {
			return err
		}
		t.Note("%s %d of %d: %s; so far false verdicts in A/A studies: %d of %d%s", k, have+1, st.Studies, unit.Change(made.Effect), sum.Verdicts, sum.Studies, soFar(sum, k.added))
	}
}

// soFar is what was counted of a known difference, "" of none.
func soFar(sum noise.SelfTest, added time.Duration) string {
	for _, p := range sum.Positive {
		if p.Added == added {
			return "; " + p.String()
		}
	}
	return ""
}

// count is what a study's run says. One without the pairs of trials that any interval takes
// could not have told anything and is not to be counted: the error says so.
func (st *selfTest) count(run *record.Run, added time.Duration) (made noise.Study, err error) {
	a, err := verdict.Analyse(run)
	if err != nil {
		return made, err
	}
	var c *verdict.Comparison
	pairs, least := 0, stats.BlocksForFamily(1, stats.StudyAlpha)
	if all := a.Decisions(); len(all) > 0 {
		c, pairs = all[0], all[0].N
	}
	if pairs < least {
		return made, fmt.Errorf("%s of trials of run %s count, an interval takes %d", unit.Plural(pairs, "pair"), a.Manifest.ID, least)
	}
	floors, twinned := a.Floors()
	return noise.Study{
		Setting: st.setting, Machine: noise.Machine(), Sitting: st.begun, When: time.Now().UTC(), Run: run.Dir, Added: added, Workload: c.Workload,
		Paired: c.Paired, Alpha: c.Alpha, Threshold: c.Threshold, Verdict: c.Verdict, Effect: c.Effect.Effect, Excluding: !c.Effect.Interval.Contains(0),
		TwinFloor: floors[c.Metric.Name], TwinPairs: twinned,
		Control: c.AgainstMedian, Difference: c.Difference.Value, Holding: c.Difference.Interval.Contains(float64(added)),
	}, nil
}

// conclude shows the record and what stopped the studies.
func (st *selfTest) conclude(t *cli.Terminal, stopped error) error {
	if len(st.counted) == 0 {
		return runs.Explain(stopped)
	}
	err := st.show(t, st.counted)
	t.Note("the studies are kept in %s; `tare selftest --from FILE,…` sums up those of several machines", st.cache.Path())
	return errors.Join(runs.Explain(stopped), err)
}

// show sums up studies in the form asked for.
func (c *SelftestCmd) show(t *cli.Terminal, all []noise.Study) error {
	if len(all) == 0 {
		return errors.New("no study is on record in these files")
	}
	sum, err := noise.Sum(all)
	switch {
	case err != nil:
		return err
	case sum.Unnamed == len(all):
		return errors.New("no study counts: all are of an older tare, which did not name their workload")
	case c.JSON:
		return t.JSON(sum)
	case c.Markdown == "-":
		return markdown(sum)(t.Out)
	case c.Markdown != "":
		return cli.WriteFile(c.Markdown, markdown(sum))
	}
	fmt.Fprintln(t.Out, sum)
	return nil
}
