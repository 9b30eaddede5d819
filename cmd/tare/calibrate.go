package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/studies"
)

// calibrateCmd measures the noise floor.
type calibrateCmd struct {
	Blocks int    `help:"Blocks to measure." default:"30"`
	Seed   uint64 `help:"Fixes the order of trials (0: drawn)."`
	Module string `help:"Folder of tare's own source." placeholder:"DIR"`
	JSON   bool   `name:"json" help:"Print JSON."`
	// Replicates are for stats.ReadReplicates.
	Replicates string `help:"Run four of the control a block, not two, and write their figures to this file, for the proofs of package stats." placeholder:"FILE"`
}

// Help says what comes of it.
func (c *calibrateCmd) Help() string {
	return `Runs the control against itself (study null): whatever difference shows is this
machine's noise. The floor is kept for seven days in the user's cache, for this
machine and kernel, and runs use it as their least band.`
}

// floorKept is how long a calibration holds.
const floorKept = 7 * 24 * time.Hour

// calibration is what is kept of a machine.
type calibration struct {
	When    time.Time          `json:"when"`
	Machine string             `json:"machine"`
	Blocks  int                `json:"blocks"`
	Floor   map[string]float64 `json:"floor"` // |ln ratio| by metric
	Run     string             `json:"run"`
}

// Run calibrates.
func (c *calibrateCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if least := stats.BlocksForFamily(1, stats.StudyAlpha); c.Blocks < least || c.Blocks > mostBlocks {
		return cli.Usage("", fmt.Errorf("--blocks %d: a floor takes from %d to %d blocks", c.Blocks, least, mostBlocks))
	}
	if err := cli.CheckOutputs([]cli.Output{{Flag: "--replicates", Path: c.Replicates}}); err != nil {
		return err
	}
	cache, err := cacheDir("calibration")
	if err != nil {
		return err
	}
	if err := runs.CheckDir(cache, cacheHint); err != nil {
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
	kept, err := measureNull(ctx, t, s, &runCmd{Blocks: c.Blocks, Seed: c.Seed, Dir: cache, Module: c.Module})
	if err != nil {
		return uncalibrated(kept, err)
	}
	a, err := verdict.Analyse(kept)
	if err != nil {
		return err
	}
	cal := calibration{When: time.Now().UTC(), Machine: machine(), Run: kept.Dir}
	if cal.Floor, cal.Blocks = a.Floors(); len(cal.Floor) == 0 {
		return &cli.Failure{Status: cli.ExitFailed, Err: errors.New("too few trials count for a floor: what was kept before stays"), Hint: "`tare report " + kept.Dir + "` says why"}
	}
	return errors.Join(c.conclude(t, cal, filepath.Join(cache, "floor.json")), c.keepReplicates(kept, a))
}

// uncalibrated tells why a calibration ended before its time, and where what was
// measured is; run may be nil.
func uncalibrated(run *record.Run, err error) error {
	if run == nil || len(run.Trials) == 0 || !errors.Is(err, context.Canceled) {
		return explain(err)
	}
	return &cli.Failure{Status: cli.ExitInterrupted, Err: fmt.Errorf("interrupted; trials on record: %d; what was kept before stays", len(run.Trials)),
		Hint: "`tare report " + run.Dir + "` shows them; a calibration is begun anew, by `tare calibrate`"}
}

// conclude keeps the floor and shows it, also where it cannot be kept.
func (c *calibrateCmd) conclude(t *cli.Terminal, cal calibration, path string) error {
	unkept := cli.WriteFile(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(cal) })
	until := "kept until " + cal.When.Add(floorKept).Format(time.DateOnly)
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

// measureNull runs the study in which the control meets itself.
func measureNull(ctx context.Context, t *cli.Terminal, s *study.Study, run *runCmd) (*record.Run, error) {
	if run.Seed == 0 {
		run.Seed = runs.DrawSeed()
	}
	return run.measure(ctx, t, s, run.folder(s))
}

func (c *calibrateCmd) print(t *cli.Terminal, cal calibration, until string) error {
	if c.JSON {
		return t.JSON(cal)
	}
	fmt.Fprintf(t.Out, "Noise floor of this machine over %s, %s:\n", cli.Count(uint64(cal.Blocks), "block"), until)
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	for _, m := range study.Metrics() {
		if f, ok := cal.Floor[m.Name]; ok {
			fmt.Fprintf(w, "%s\t±%s\n", m.Title, strings.TrimPrefix(unit.Change(f), "+"))
		}
	}
	return w.Flush()
}

// machine names this machine and kernel, so that a floor is not used on
// another.
func machine() string {
	host, _ := os.Hostname()
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s %s/%s %d CPUs %s", host, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), strings.TrimSpace(string(release)))
}

// kept returns this machine's calibration; ok is false where there is none, it
// is another machine's, or it is too old. One from ahead of the clock is an error: how
// old it is nobody knows.
func kept() (cal calibration, ok bool, err error) {
	cache, err := cacheDir("calibration")
	if err != nil {
		return cal, false, err
	}
	data, err := os.ReadFile(filepath.Join(cache, "floor.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return cal, false, nil
	}
	if err != nil {
		return cal, false, err
	}
	if err := json.Unmarshal(data, &cal); err != nil {
		return cal, false, fmt.Errorf("reading calibration: %w", err)
	}
	mine, age := cal.Machine == machine(), time.Since(cal.When)
	if mine && age < 0 {
		return cal, false, fmt.Errorf("the calibration kept is of %s, ahead of the clock, and not used: run `tare calibrate` again", cal.When.Format(time.DateTime))
	}
	return cal, mine && age < floorKept, nil
}

// calibrated fills in what is known of this machine's noise.
func calibrated(m *record.Manifest) {
	cal, ok, err := kept()
	if err != nil {
		m.Warnings = append(m.Warnings, err.Error())
	}
	if ok {
		m.Floor, m.FloorN = cal.Floor, cal.Blocks
	}
	m.SelfTest = lastSelfTest()
}
