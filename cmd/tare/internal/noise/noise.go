// Package noise stores this machine's noise floor and the studies of its self-tests in the
// user's cache.
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

// A Cache is a folder in the user's cache that holds one kind of result, and its runs.
type Cache struct{ Dir, File string }

// Calibrations holds the last [Calibration].
func Calibrations() (Cache, error) { return openCache("calibration", "floor.json") }

func openCache(name, file string) (Cache, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: CacheHint}
	}
	return Cache{Dir: filepath.Join(root, "tare", name), File: file}, nil
}

// Path is the file of results.
func (c Cache) Path() string { return filepath.Join(c.Dir, c.File) }

// Write replaces the results.
func (c Cache) Write(result any) error {
	return cli.WriteFile(c.Path(), func(w io.Writer) error { return json.NewEncoder(w).Encode(result) })
}

// read reads the last result; found is false where there is none.
func (c Cache) read(result any) (found bool, err error) {
	data, err := os.ReadFile(c.Path())
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
