// Package parcel packs files, and what a command line came to, for the way between a pod and
// whoever had it run there.
package parcel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Bounds of an outcome, in bytes. A pod of 512 MiB can write what is within them.
const (
	MostOutput = 16 << 20  // of standard output
	MostErrors = 64 << 10  // of standard error: its end is kept
	MostFiles  = 48 << 20  // of all files
	mostPacked = 128 << 20 // of the whole as JSON
	mostFiles  = 50_000
)

// Outcome is what a command line came to.
type Outcome struct {
	Status  int      `json:"status"`             // exit status
	Output  []byte   `json:"output"`             // standard output
	Errors  []byte   `json:"errors"`             // the end of standard error
	Files   Files    `json:"files"`              // that it wrote below its working folder
	LeftOut []string `json:"left_out,omitempty"` // what was too large: files by their paths, or "standard output"
}

// Write writes an outcome for Read.
func (o *Outcome) Write(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(o); err != nil {
		return fmt.Errorf("writing an outcome: %w", err)
	}
	return nil
}

// Read reads an outcome of bounded size.
func Read(r io.Reader) (*Outcome, error) {
	o := new(Outcome)
	if err := json.NewDecoder(io.LimitReader(r, mostPacked)).Decode(o); err != nil {
		return nil, fmt.Errorf("reading an outcome: %w", err)
	}
	return o, nil
}

// Files are the contents of files by their paths below a folder, with slashes.
type Files map[string][]byte

// UnmarshalJSON refuses more files than a run has: each takes more memory than its text.
func (f *Files) UnmarshalJSON(text []byte) error {
	if bytes.Count(text, []byte(`":`)) > mostFiles {
		return fmt.Errorf("there are more than %d files", mostFiles)
	}
	return json.Unmarshal(text, (*map[string][]byte)(f))
}

// Unpack writes the files below a folder, over what is there. Nothing is written outside it:
// a path that leads out, also through a link, is an error.
func (f Files) Unpack(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpacking files: %w", err)
	}
	defer root.Close()
	for name, content := range f {
		local := filepath.FromSlash(name)
		if err := root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
			return fmt.Errorf("unpacking %s: %w", name, err)
		}
		if err := root.WriteFile(local, content, 0o644); err != nil {
			return fmt.Errorf("unpacking %s: %w", name, err)
		}
	}
	return nil
}

// Pack reads the regular files below a folder, but for those that known has alike. Those that
// do not fit into a number of bytes are named instead.
func Pack(dir string, known Files, most int) (packed Files, leftOut []string, err error) {
	packed = Files{}
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.Size() > int64(most) {
			leftOut = append(leftOut, name)
			return nil
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if old, ok := known[name]; ok && bytes.Equal(old, content) {
			return nil
		}
		packed[name] = content
		most = max(0, most-len(content))
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("packing the files of %s: %w", dir, err)
	}
	return packed, leftOut, nil
}
