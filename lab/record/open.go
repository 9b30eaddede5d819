package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Open reads the run in dir, which may still be running. A last line torn by
// a crash is a warning, any other damage an error with file and line; a folder
// of a newer layout is refused.
func Open(dir string) (*Run, error) {
	run, _, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening run: %w", err)
	}
	return run, nil
}

// sizes are how many bytes of each file are whole lines.
type sizes struct{ trials, captures int64 }

// open also returns how much of the files is whole.
func open(dir string) (run *Run, whole sizes, err error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, whole, err
	}
	run = &Run{Dir: dir, Manifest: m}
	whole.trials, err = run.read(trialsName, "trial", run.addTrial)
	if errors.Is(err, fs.ErrNotExist) {
		run.Warnings = append(run.Warnings, fmt.Errorf("%s is missing: no trial was kept", filepath.Join(dir, trialsName)))
		err = nil
	}
	if err != nil {
		return nil, whole, err
	}
	whole.captures, err = run.read(capturesName, "capture", run.addCapture)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // few studies have any
	}
	if err != nil {
		return nil, whole, err
	}
	return run, whole, nil
}

func readManifest(dir string) (m Manifest, err error) {
	path := filepath.Join(dir, manifestName)
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s is no run: %w", dir, err)
	}
	if err != nil {
		return m, err
	}
	// The version first: a newer layout need not fit the types at all.
	var v struct{ Schema int }
	if err := json.Unmarshal(data, &v); err != nil {
		return m, fmt.Errorf("%s: %w", position(path, data, err), err)
	}
	if v.Schema > Schema {
		return m, fmt.Errorf("%s: its layout has version %d, this tare reads up to %d: use the newer tare that wrote it", path, v.Schema, Schema)
	}
	if v.Schema < 1 {
		return m, fmt.Errorf("%s: no layout version (\"schema\"): not written by tare", path)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("%s: %w", position(path, data, err), err)
	}
	return m, nil
}

// position returns path with the line of a JSON error.
func position(path string, data []byte, err error) string {
	var offset int64
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &typ):
		offset = typ.Offset
	}
	offset = min(offset, int64(len(data)))
	return fmt.Sprintf("%s:%d", path, 1+bytes.Count(data[:offset], []byte("\n")))
}

// read adds a file's lines, each one of what, and returns the size of the whole
// ones.
func (r *Run) read(name, what string, add func(line []byte) error) (size int64, err error) {
	path := filepath.Join(r.Dir, name)
	rest, err := readFile(path)
	if err != nil {
		return 0, err
	}
	for line := 1; len(rest) > 0; line++ {
		text, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			err = errTorn // whatever it holds, its end is missing
		} else {
			err = add(text)
		}
		if err != nil && len(after) == 0 {
			r.Warnings = append(r.Warnings, fmt.Errorf("%s:%d: the last line is torn; its %s is lost", path, line, what))
			return size, nil
		}
		if err != nil {
			return 0, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		size += int64(len(text)) + 1
		rest = after
	}
	return size, nil
}

var errTorn = errors.New("the line has no end")

func (r *Run) addTrial(line []byte) error {
	var t Trial
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	if n := len(r.Trials); n > 0 && t.Seq <= r.Trials[n-1].Seq {
		return fmt.Errorf("trial %d follows trial %d: numbers must rise", t.Seq, r.Trials[n-1].Seq)
	}
	if t.Block < -1 || t.Block > t.Seq {
		return fmt.Errorf("trial %d is of block %d: every block from 0 on has had a trial, and -1 is the pilot", t.Seq, t.Block)
	}
	if t.Readings == nil || t.Readings.After.Capacity == 0 {
		delete(t.Metrics, "residual_cpu") // from busy time, which misses what runs between two ticks
	}
	r.Trials = append(r.Trials, t)
	return nil
}

func (r *Run) addCapture(line []byte) error {
	var c Capture
	if err := json.Unmarshal(line, &c); err != nil {
		return err
	}
	if n := len(r.Captures); n > 0 && c.Seq <= r.Captures[n-1].Seq {
		return fmt.Errorf("capture %d follows capture %d: numbers must rise", c.Seq, r.Captures[n-1].Seq)
	}
	r.Captures = append(r.Captures, c)
	return nil
}
