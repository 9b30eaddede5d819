package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Summary is what a list of runs tells of each.
type Summary struct {
	Dir     string
	Study   string
	Started time.Time
	Outcome string // as in Manifest
	Trials  int    // kept, invalid ones included
	Err     error  // why the folder cannot be read as a run; the rest is then empty
}

// List returns the runs that lie directly in root, the newest first. Folders
// without a manifest are no runs; one whose manifest cannot be read is listed
// with its Err. A root that does not exist holds no runs.
func List(root string) ([]Summary, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var all []Summary
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		dir := filepath.Join(root, e.Name())
		s, err := Summarise(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s = Summary{Dir: dir, Err: err}
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b Summary) int { return b.Started.Compare(a.Started) })
	return all, nil
}

// Summarise returns what a list tells of the run in dir, at the cost of its manifest and of
// counting lines. Without a manifest it is no run: fs.ErrNotExist.
func Summarise(dir string) (Summary, error) {
	m, err := readManifest(dir)
	if err != nil {
		return Summary{}, err
	}
	n, err := countLines(filepath.Join(dir, trialsName))
	if err != nil {
		return Summary{}, err
	}
	return Summary{Dir: dir, Study: m.Study.Name, Started: m.Started, Outcome: m.Outcome, Trials: n}, nil
}

// countLines counts whole lines without holding the file.
func countLines(path string) (n int, err error) {
	f, err := openFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for {
		k, err := f.Read(buf)
		n += bytes.Count(buf[:k], []byte("\n"))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
