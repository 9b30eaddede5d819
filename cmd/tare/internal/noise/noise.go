// Package noise stores this machine's noise floor and last self-test in the user's
// cache.
package noise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// FloorAge is how long a calibration holds.
const FloorAge = 7 * 24 * time.Hour

// CacheHint helps where the user's cache folder cannot be written.
const CacheHint = "set XDG_CACHE_HOME to a folder that you may write"

// Calibration is the noise floor of a machine.
type Calibration struct {
	When    time.Time          `json:"when"`
	Machine string             `json:"machine"`
	Blocks  int                `json:"blocks"`
	Floor   map[string]float64 `json:"floor"` // |ln ratio| by metric
	Run     string             `json:"run"`
}

// SelfTest counts the false positives of A/A studies.
type SelfTest struct {
	When      time.Time      `json:"when"`
	Machine   string         `json:"machine"`
	Studies   int            `json:"studies"`
	Looks     []int          `json:"looks"` // numbers of blocks after which a study could stop
	Measure   time.Duration  `json:"measure_ns"`
	Metric    string         `json:"metric"`
	Verdicts  int            `json:"verdicts"`       // faster or slower, as a report says it
	Bound     stats.Interval `json:"bound"`          // Clopper-Pearson, 95 %, of Verdicts
	Apart     int            `json:"verdicts_apart"` // the same with the noise floor of the other studies
	Excluding int            `json:"excluding"`      // intervals that exclude no difference
	Effects   []float64      `json:"effects"`        // ln ratio of each study
	Positive  []Positive     `json:"positive,omitempty"`
}

// Positive counts studies of a program that is known to take more CPU a request.
type Positive struct {
	Added       time.Duration `json:"added_ns"` // the truth
	Studies     int           `json:"studies"`
	Found       int           `json:"found"`          // verdicts of slower
	Holding     int           `json:"holding"`        // intervals that hold the truth
	Shares      []float64     `json:"shares"`         // the truth as a share of the control's CPU a request, of each study
	Differences []float64     `json:"differences_ns"` // what each study measured
}

func (p Positive) String() string {
	share := "not studied"
	if len(p.Shares) > 0 {
		share = unit.Format(stats.Median(p.Shares), unit.Share)
	}
	return fmt.Sprintf("%s more CPU a request (%s) was found in %d of %d studies and lay in the interval of %d", unit.Format(float64(p.Added), unit.Nanoseconds), share, p.Found, p.Studies, p.Holding)
}

func (s SelfTest) String() string {
	var positives string
	for _, p := range s.Positive {
		positives += "; " + p.String()
	}
	return fmt.Sprintf("%d of %d A/A studies on this machine gave a false verdict (at most %s with 95 %% confidence), %d with the noise floor of the others; intervals excluding no difference: %d; %s",
		s.Verdicts, s.Studies, unit.Format(s.Bound.Hi, unit.Share), s.Apart, s.Excluding, s.When.Format(time.DateOnly)) + positives
}

// A Cache is a folder in the user's cache that holds one kind of result, and its runs.
type Cache struct{ Dir, File string }

// Calibrations holds the last [Calibration].
func Calibrations() (Cache, error) { return openCache("calibration", "floor.json") }

// SelfTests holds the last [SelfTest].
func SelfTests() (Cache, error) { return openCache("selftest", "last.json") }

func openCache(name, file string) (Cache, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: CacheHint}
	}
	return Cache{Dir: filepath.Join(root, "tare", name), File: file}, nil
}

// Write replaces the last result.
func (c Cache) Write(result any) error {
	return cli.WriteFile(filepath.Join(c.Dir, c.File), func(w io.Writer) error { return json.NewEncoder(w).Encode(result) })
}

// read reads the last result; found is false where there is none.
func (c Cache) read(result any) (found bool, err error) {
	data, err := os.ReadFile(filepath.Join(c.Dir, c.File))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(data, result)
}

// Machine names this machine and kernel, so that a floor is not used on another.
func Machine() string {
	host, _ := os.Hostname()
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s %s/%s %d CPUs %s", host, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), strings.TrimSpace(string(release)))
}

// ReadFloor returns this machine's calibration. ok is false where there is none, it is
// another machine's, or it is too old. A calibration from the future is an error, because
// its age is unknown.
func ReadFloor() (cal Calibration, ok bool, err error) {
	cache, err := Calibrations()
	if err != nil {
		return cal, false, err
	}
	found, err := cache.read(&cal)
	if err != nil || !found {
		if found {
			err = fmt.Errorf("reading calibration: %w", err)
		}
		return cal, false, err
	}
	mine, age := cal.Machine == Machine(), time.Since(cal.When)
	if mine && age < 0 {
		return cal, false, fmt.Errorf("the calibration of %s is ahead of the clock and not used: run `tare calibrate` again", cal.When.Format(time.DateTime))
	}
	return cal, mine && age < FloorAge, nil
}

// Describe adds what is known of this machine's noise to a run's manifest.
func Describe(m *record.Manifest) {
	cal, ok, err := ReadFloor()
	if err != nil {
		m.Warnings = append(m.Warnings, err.Error())
	}
	if ok {
		m.Floor, m.FloorN = cal.Floor, cal.Blocks
	}
	m.SelfTest = describeSelfTest()
}

// describeSelfTest is what reports say of the last self-test; "" if none ran here.
func describeSelfTest() string {
	cache, err := SelfTests()
	if err != nil {
		return ""
	}
	var s SelfTest
	if found, err := cache.read(&s); !found || err != nil || s.Machine != Machine() || len(s.Looks) == 0 {
		return ""
	}
	return s.String()
}
