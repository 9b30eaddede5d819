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

// open also returns how many bytes of the trials file are whole lines.
func open(dir string) (*Run, int64, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, 0, err
	}
	run := &Run{Dir: dir, Manifest: m}
	path := filepath.Join(dir, trialsName)
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		run.Warnings = append(run.Warnings, fmt.Errorf("%s is missing: no trial was kept", path))
		return run, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	size, err := run.parse(path, data)
	return run, size, err
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

// parse reads the trials, one a line, and returns the size of the whole lines.
func (r *Run) parse(path string, data []byte) (size int64, err error) {
	rest := data
	for line := 1; len(rest) > 0; line++ {
		text, after, whole := bytes.Cut(rest, []byte("\n"))
		t, err := parseTrial(text, r.Trials)
		if last := len(after) == 0; last && (!whole || err != nil) {
			r.Warnings = append(r.Warnings, fmt.Errorf("%s:%d: the last line is torn; its trial is lost", path, line))
			return size, nil
		}
		if err != nil {
			return 0, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		r.Trials = append(r.Trials, t)
		size += int64(len(text)) + 1
		rest = after
	}
	return size, nil
}

func parseTrial(text []byte, before []Trial) (t Trial, err error) {
	if err := json.Unmarshal(text, &t); err != nil {
		return t, err
	}
	if n := len(before); n > 0 && t.Seq <= before[n-1].Seq {
		return t, fmt.Errorf("trial %d follows trial %d: numbers must rise", t.Seq, before[n-1].Seq)
	}
	return t, nil
}
