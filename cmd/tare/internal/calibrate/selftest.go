package calibrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/studies"
)

// SelftestCmd counts false positives.
type SelftestCmd struct {
	Studies int           `help:"A/A studies to run." default:"20"`
	Measure time.Duration `help:"Measured part of a trial." default:"2s"`
	runs.TrialFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Help says what is counted.
func (c *SelftestCmd) Help() string {
	return `Runs studies of a program against itself. Each has 8 blocks of fresh processes in random
order, and spends its whole alpha of 0.05 at one look. A verdict of faster or slower is
a false positive. Intervals that exclude "no difference" are counted separately. From
then on the footer of every report shows the counts.`
}

const (
	selfTestBlocks = 8               // of one A/A study
	leastMeasure   = 2 * time.Second // the least of a trial that counts: see docs/method.md
)

// Run runs the studies. An interruption keeps the ones that ended.
func (c *SelftestCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Studies < 1 || c.Measure < leastMeasure {
		return cli.Usage("", fmt.Errorf("--studies %d, --measure %s: at least one study, and %s a trial", c.Studies, c.Measure, leastMeasure))
	}
	cache, err := noise.SelfTests()
	if err != nil {
		return err
	}
	if err := runs.CheckDir(cache.Dir, noise.CacheHint); err != nil {
		return err
	}
	s, err := studies.Named("null")
	if err != nil {
		return err
	}
	s = s.QuickForm()
	s.Looks, s.Trial.Measure = []int{selfTestBlocks}, c.Measure
	result := noise.SelfTest{When: time.Now().UTC(), Machine: noise.Machine(), Blocks: selfTestBlocks, Measure: c.Measure, Metric: s.Primary.Metric}
	session := newSession(cache, c.TrialFlags, 0)
	session.Quick = true
	var stopped, uncounted error
	for i := range c.Studies {
		run, err := measureNull(ctx, t, s, session)
		if err != nil {
			stopped = err
			break
		}
		a, err := verdict.Analyse(run)
		if err != nil {
			return err
		}
		session.Seed++
		if err := countStudy(&result, a); err != nil {
			uncounted = err
			fmt.Fprintf(t.Err, "A/A study %d of %d does not count: %v\n", i+1, c.Studies, err)
			continue
		}
		fmt.Fprintf(t.Err, "A/A study %d of %d: %s; so far intervals that exclude no difference: %d, verdicts: %d\n", i+1, c.Studies,
			unit.Change(result.Effects[result.Studies-1]), result.Excluding, result.Verdicts)
	}
	if result.Studies == 0 {
		return runs.Explain(errors.Join(stopped, uncounted))
	}
	return c.conclude(t, result, cache, stopped)
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

// countStudy counts one A/A study. One without the pairs of trials that any interval takes
// could not have excluded anything and is not counted: the error says so.
func countStudy(s *noise.SelfTest, a *verdict.Analysis) error {
	pairs, least := 0, stats.BlocksForFamily(1, stats.StudyAlpha)
	m := a.Primary()
	if m != nil && m.Twin != nil {
		pairs = m.Twin.N
	}
	if pairs < least {
		return fmt.Errorf("%s of trials of run %s count, an interval takes %d", cli.Count(uint64(pairs), "pair"), a.Manifest.ID, least)
	}
	twin := m.Twin.Effect
	s.Studies++
	s.Effects = append(s.Effects, twin.Effect)
	if !twin.Interval.Contains(0) {
		s.Excluding++
	}
	if v := twin.Verdict; v == stats.Faster || v == stats.Slower {
		s.Verdicts++
	}
	s.Bound = stats.ClopperPearson(s.Excluding, s.Studies, 0.05)
	return nil
}
