// Package calibrate measures this machine's noise: the verbs calibrate and selftest.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
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

// Cmd measures the noise floor.
type Cmd struct {
	Blocks int `help:"Blocks to measure." default:"30"`
	runs.TrialFlags
	JSON bool `name:"json" help:"Print JSON."`
	// Replicates are for stats.ReadReplicates.
	Replicates string `help:"Run four controls a block, not two, and write their figures here, to test package stats." placeholder:"FILE"`
}

// Help says what comes of it.
func (c *Cmd) Help() string {
	return `Examples:

  tare calibrate                measure 30 blocks
  tare calibrate --blocks 72    take longer, and know the floor better

calibrate runs a program against itself (study null). Any difference is this machine's
noise. The noise floor is kept for seven days in the user's cache, for this machine and
kernel. In later runs a smaller difference does not count.`
}

// Run calibrates.
func (c *Cmd) Run(ctx context.Context, t *cli.Terminal) error {
	if least := stats.BlocksForFamily(1, stats.StudyAlpha); c.Blocks < least || c.Blocks > runs.MostBlocks {
		return cli.Usage("", fmt.Errorf("--blocks %d: a floor takes from %d to %d blocks", c.Blocks, least, runs.MostBlocks))
	}
	if err := cli.CheckOutputs([]cli.Output{{Flag: "--replicates", Path: c.Replicates}}); err != nil {
		return err
	}
	cache, err := noise.Calibrations()
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
	s := calibrating(null, c.Blocks)
	if c.Replicates != "" {
		s = fourfold(s)
	}
	run, err := measureNull(ctx, t, s, newSession(cache, c.TrialFlags, c.Blocks))
	if err != nil {
		return explain(run, err)
	}
	a, err := verdict.Analyse(run)
	if err != nil {
		return err
	}
	cal := noise.Calibration{When: time.Now().UTC(), Machine: noise.Machine(), Run: run.Dir}
	if cal.Floor, cal.Blocks = a.Floors(); len(cal.Floor) == 0 {
		return &cli.Failure{Status: cli.ExitFailed, Err: errors.New("too few trials count for a floor: the earlier calibration stays"), Hint: "`tare report " + run.Dir + "` gives the reasons"}
	}
	return errors.Join(c.conclude(t, cal, cache), c.keepReplicates(run, a))
}

// explain says why a calibration ended early, and where its trials are; run may be nil.
func explain(run *record.Run, err error) error {
	if run == nil || len(run.Trials) == 0 || !errors.Is(err, context.Canceled) {
		return runs.Explain(err)
	}
	return &cli.Failure{Status: cli.ExitInterrupted, Err: fmt.Errorf("interrupted; trials on record: %d; the earlier calibration stays", len(run.Trials)),
		Hint: "`tare report " + run.Dir + "` shows them; `tare calibrate` begins anew"}
}

// conclude keeps the floor and shows it, also where it cannot be kept.
func (c *Cmd) conclude(t *cli.Terminal, cal noise.Calibration, cache noise.Cache) error {
	unkept := cache.Write(cal)
	until := "kept until " + cal.When.Add(noise.FloorAge).Format(time.DateOnly)
	if unkept != nil {
		until = "not kept"
	}
	return errors.Join(c.print(t, cal, until), unkept)
}

// calibrating is study null with nothing to decide before its last block: every
// one of them is asked for.
func calibrating(null *study.Study, blocks int) *study.Study {
	s := *null
	s.Looks = []int{blocks}
	return &s
}

// newSession keeps its runs in a cache.
func newSession(cache noise.Cache, flags runs.TrialFlags, blocks int) *runs.Session {
	return &runs.Session{StudyFlags: runs.StudyFlags{Blocks: blocks, TrialFlags: flags, HomeFlag: runs.HomeFlag{Dir: cache.Dir}}}
}

// measureNull runs the study in which the control meets itself.
func measureNull(ctx context.Context, t *cli.Terminal, s *study.Study, session *runs.Session) (*record.Run, error) {
	session.Announce(t, s)
	return session.Measure(ctx, t, s, session.NewFolder(s))
}

func (c *Cmd) print(t *cli.Terminal, cal noise.Calibration, until string) error {
	if c.JSON {
		return t.JSON(cal)
	}
	fmt.Fprintf(t.Out, "Noise floor of this machine over %s, %s:\n", unit.Plural(cal.Blocks, "block"), until)
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	for _, m := range study.Metrics() {
		if f, ok := cal.Floor[m.Name]; ok {
			fmt.Fprintf(w, "%s\t±%s\n", m.Title, strings.TrimPrefix(unit.Change(f), "+"))
		}
	}
	return w.Flush()
}
