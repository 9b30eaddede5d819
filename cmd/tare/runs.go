package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/verdict"
)

// runsDir is where runs are kept unless --dir says otherwise.
const runsDir = "runs"

// openRun opens a run by folder or by the name of a folder below runs; "" is
// the newest one there.
func openRun(name string) (*record.Run, *verdict.Analysis, error) { return openRunIn(runsDir, name) }

// openRunIn is openRun for runs that are kept in another folder.
func openRunIn(home, name string) (*record.Run, *verdict.Analysis, error) {
	dir, err := findRunIn(home, name)
	if err != nil {
		return nil, nil, err
	}
	run, err := record.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	a, err := verdict.Analyse(run)
	if err != nil {
		return nil, nil, fmt.Errorf("analysing %s: %w", dir, err)
	}
	return run, a, nil
}

func findRun(name string) (string, error) { return findRunIn(runsDir, name) }

func findRunIn(home, name string) (string, error) {
	if name == "" {
		all, err := record.List(home) // the newest first
		if err != nil {
			return "", err
		}
		if len(all) == 0 {
			return "", &failure{status: exitAsked, err: fmt.Errorf("no run is kept in %s", home), hint: "make one with `tare run`"}
		}
		return all[0].Dir, nil
	}
	for _, dir := range []string{name, filepath.Join(home, name)} {
		if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err == nil {
			return dir, nil
		}
	}
	return "", &failure{status: exitAsked, err: fmt.Errorf("%q is no run", name), hint: "`tare list` shows the runs kept"}
}

// keeps tells before a measurement whether runs can be kept in a folder, which need
// not be there yet, and leaves nothing behind; hint says which other folder to name.
func keeps(home, hint string) error {
	at := filepath.Clean(home)
	_, err := os.Stat(at)
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		_, err = os.Stat(at)
	}
	if err == nil {
		var try string
		if try, err = os.MkdirTemp(at, ".tare-*"); err == nil {
			err = os.Remove(try)
		}
	}
	if err != nil {
		return &failure{status: exitCould, err: fmt.Errorf("keeping runs: %s: %w", home, err), hint: hint}
	}
	return nil
}

// writeHTML writes a run's report to a file.
func writeHTML(run *record.Run, a *verdict.Analysis, path string) error {
	return keepFile(path, func(w io.Writer) error { return report.HTML(w, run, a) })
}
