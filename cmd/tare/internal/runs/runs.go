// Package runs makes, finds and opens the runs that are kept on this machine.
package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/verdict"
)

// Dir is where runs are kept unless --dir names another folder.
const Dir = "runs"

// Open opens a run by its folder or by the name of a folder below Dir; "" is the
// newest one there.
func Open(name string) (*record.Run, *verdict.Analysis, error) { return OpenIn(Dir, name) }

// OpenIn is Open for runs that are kept in another folder.
func OpenIn(home, name string) (*record.Run, *verdict.Analysis, error) {
	dir, err := FindIn(home, name)
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

// Find returns the folder of a run that is named as for Open.
func Find(name string) (string, error) { return FindIn(Dir, name) }

// FindIn is Find for runs that are kept in another folder.
func FindIn(home, name string) (string, error) {
	if name == "" {
		all, err := record.List(home) // the newest first
		if err != nil {
			return "", err
		}
		if len(all) == 0 {
			return "", &cli.Failure{Status: cli.ExitUsage, Err: fmt.Errorf("no run is kept in %s", home), Hint: "make one with `tare run`"}
		}
		return all[0].Dir, nil
	}
	for _, dir := range []string{name, filepath.Join(home, name)} {
		if IsRun(dir) {
			return dir, nil
		}
	}
	return "", &cli.Failure{Status: cli.ExitUsage, Err: fmt.Errorf("%q is not a run", name), Hint: "`tare list` shows the runs kept"}
}

// IsRun reports whether a folder is one of a run.
func IsRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "manifest.json"))
	return err == nil
}

// CheckDir finds before a measurement whether runs can be kept in a folder, which need
// not exist yet. It leaves nothing behind. The hint goes into the error.
func CheckDir(home, hint string) error {
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
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		failed.Path = at // not the name that was tried
	}
	if err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("keeping runs: %s: %w", home, err), Hint: hint}
	}
	return nil
}

// WriteHTML writes a run's report to a file, with more blocks above the command that repeats it.
func WriteHTML(run *record.Run, a *verdict.Analysis, path string, more ...doc.Block) error {
	return cli.WriteFile(path, func(w io.Writer) error { return report.HTML(w, run, a, more...) })
}

// PrintJSON prints a run's verdicts for programs.
func PrintJSON(t *cli.Terminal, a *verdict.Analysis) error { return report.JSON(t.Out, a) }

// PrintAll prints a run's report for people, with more blocks as in WriteHTML.
func PrintAll(t *cli.Terminal, a *verdict.Analysis, more ...doc.Block) error {
	return report.Text(t.Out, a, t.PageLayout(), more...)
}

// PrintShort is PrintAll, but on a terminal it is a screen, and the last line says how to see the
// rest there.
func PrintShort(t *cli.Terminal, run *record.Run, a *verdict.Analysis, more ...doc.Block) error {
	layout := t.PageLayout()
	layout.Closed = !t.Piped
	if err := report.Text(t.Out, a, layout, more...); err != nil || t.Piped {
		return err
	}
	_, err := fmt.Fprintf(t.Out, "these parts in full: %s\n", report.ShellLine([]string{"tare", "report", "--all", run.Dir}))
	return err
}
