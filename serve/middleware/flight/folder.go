package flight

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// folder keeps the newest snapshots as files.
type folder struct {
	dir  string
	keep int
}

func newFolder(dir string, keep int) (*folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &folder{dir, keep}, nil
}

// file is a snapshot being written, which has its name only once it is whole.
type file struct {
	*os.File
	folder *folder
	name   string
}

// open begins a snapshot. Traces tell of a program's inside: they are the user's
// alone to read.
func (d *folder) open(r Request) (io.WriteCloser, error) {
	f, err := os.CreateTemp(d.dir, ".slow-*.part")
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("slow-%s.trace", r.Begun.UTC().Format("20060102T150405.000000"))
	return &file{f, d, filepath.Join(d.dir, name)}, nil
}

// finish gives the file its name, unless writing it ended with an error.
func (f *file) finish(err error) error {
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), f.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return f.folder.prune()
}

// prune removes all but the newest.
func (d *folder) prune() error {
	if d.keep < 0 {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(d.dir, "slow-*.trace"))
	if err != nil {
		return err
	}
	slices.Sort(files) // by name is by time
	for len(files) > d.keep {
		err = errors.Join(err, os.Remove(files[0]))
		files = files[1:]
	}
	return err
}
