package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/studies"
)

// selftestCmd counts false positives.
type selftestCmd struct {
	Studies int           `help:"A/A studies to run." default:"20"`
	Measure time.Duration `help:"Measured part of a trial." default:"2s"`
	Seed    uint64        `help:"Fixes the order of trials (0: drawn)."`
	Module  string        `help:"Folder of tare's own source." placeholder:"DIR"`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// Help tells what is counted.
func (c *selftestCmd) Help() string {
	return `Runs studies of a program against itself, each with 8 blocks of fresh processes in
random order and its whole alpha of 0.05 at one look. A verdict of faster or
slower is a false positive; so is an interval that excludes "no difference",
counted apart. The counts stand in the footer of every report from then on.`
}

// selfTest is what is kept of the last one.
type selfTest struct {
	When      time.Time      `json:"when"`
	Machine   string         `json:"machine"`
	Studies   int            `json:"studies"`
	Blocks    int            `json:"blocks"`
	Measure   time.Duration  `json:"measure_ns"`
	Metric    string         `json:"metric"`
	Excluding int            `json:"excluding"` // intervals that exclude no difference
	Verdicts  int            `json:"verdicts"`  // faster or slower
	Bound     stats.Interval `json:"bound"`     // Clopper-Pearson, 95 %, of Excluding
	Effects   []float64      `json:"effects"`   // ln ratio of each study
}

func (s selfTest) String() string {
	return fmt.Sprintf("%d of %d A/A studies on this machine gave an interval excluding no difference (at most %s with 95 %% confidence), %d a verdict; %s",
		s.Excluding, s.Studies, unit.Format(s.Bound.Hi, unit.Share), s.Verdicts, s.When.Format(time.DateOnly))
}

const (
	selfTestBlocks = 8               // of one A/A study
	leastMeasure   = 2 * time.Second // the least of a trial that counts: see docs/method.md
)

// Run runs the studies. An interruption keeps the ones that ended.
func (c *selftestCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Studies < 1 || c.Measure < leastMeasure {
		return cli.Usage("", fmt.Errorf("--studies %d, --measure %s: at least one study, and %s a trial", c.Studies, c.Measure, leastMeasure))
	}
	cache, err := cacheDir("selftest")
	if err != nil {
		return err
	}
	if err := runs.CheckDir(cache, cacheHint); err != nil {
		return err
	}
	s, err := studies.Named("null")
	if err != nil {
		return err
	}
	s = s.QuickForm()
	s.Looks, s.Trial.Measure = []int{selfTestBlocks}, c.Measure
	result := selfTest{When: time.Now().UTC(), Machine: machine(), Blocks: selfTestBlocks, Measure: c.Measure, Metric: s.Primary.Metric}
	run := &runCmd{Quick: true, Seed: c.Seed, Dir: cache, Module: c.Module}
	var stopped, uncounted error
	for i := range c.Studies {
		kept, err := measureNull(ctx, t, s, run)
		if err != nil {
			stopped = err
			break
		}
		a, err := verdict.Analyse(kept)
		if err != nil {
			return err
		}
		run.Seed++
		if err := result.add(a); err != nil {
			uncounted = err
			fmt.Fprintf(t.Err, "A/A study %d of %d does not count: %v\n", i+1, c.Studies, err)
			continue
		}
		fmt.Fprintf(t.Err, "A/A study %d of %d: %s; so far intervals that exclude no difference: %d, verdicts: %d\n", i+1, c.Studies,
			unit.Change(result.Effects[result.Studies-1]), result.Excluding, result.Verdicts)
	}
	if result.Studies == 0 {
		return explain(errors.Join(stopped, uncounted))
	}
	return c.conclude(t, result, filepath.Join(cache, "last.json"), stopped)
}

// conclude keeps what was counted until the last study, or what stopped them, and
// shows it, also where it cannot be kept.
func (c *selftestCmd) conclude(t *cli.Terminal, result selfTest, path string, stopped error) error {
	unkept := cli.WriteFile(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(result) })
	if c.JSON {
		return errors.Join(t.JSON(result), explain(stopped), unkept)
	}
	fmt.Fprintln(t.Out, result)
	return errors.Join(explain(stopped), unkept)
}

// add counts one A/A study. One without the pairs of trials that any interval takes
// could not have excluded anything and is not counted: the error says so.
func (s *selfTest) add(a *verdict.Analysis) error {
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

// lastSelfTest is what reports say of it; "" when it never ran here.
func lastSelfTest() string {
	cache, err := cacheDir("selftest")
	if err != nil {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(cache, "last.json"))
	var s selfTest
	if err != nil || json.Unmarshal(data, &s) != nil || s.Machine != machine() {
		return ""
	}
	return s.String()
}
