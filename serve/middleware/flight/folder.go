package flight

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stamp is the form of the time in a snapshot's name: by name is by time.
const stamp = "20060102T150405.000000"

// abandoned is how long a snapshot that is being written has not grown when its
// process must have been killed. Other processes may write to the same folder.
const abandoned = 10 * time.Minute

// folder keeps the newest snapshots as files.
type folder struct {
	dir  string
	keep int
}

func newFolder(dir string, keep int) (*folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d := &folder{dir, keep}
	all, err := d.list()
	if err != nil {
		return nil, err
	}
	return d, d.sweep(all)
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
	return &file{f, d, fmt.Sprintf("slow-%s.trace", r.Begun.UTC().Format(stamp))}, nil
}

// finish gives the file its name, unless writing it ended with an error.
func (f *file) finish(err error) error {
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(f.folder.dir, f.name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return f.folder.tidy(f.name)
}

// tidy removes all snapshots but the newest, of which one has just been written,
// whatever its clock said.
func (d *folder) tidy(written string) error {
	all, err := d.list()
	if err != nil {
		return err
	}
	err = d.sweep(all)
	if d.keep < 0 {
		return err
	}
	var others []string
	for _, e := range all {
		if e.Type().IsRegular() && isSnapshot(e.Name()) && e.Name() != written {
			others = append(others, e.Name())
		}
	}
	slices.Sort(others)
	for len(others) > d.keep-1 {
		err = errors.Join(err, d.remove(others[0]))
		others = others[1:]
	}
	return err
}

// list returns what is in the folder. Where all is kept, it need not be readable.
func (d *folder) list() ([]fs.DirEntry, error) {
	all, err := os.ReadDir(d.dir)
	if d.keep < 0 && errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	return all, err
}

// sweep removes what processes left that were killed while they wrote. What is
// another user's stays.
func (d *folder) sweep(all []fs.DirEntry) error {
	var errs error
	for _, e := range all {
		if !e.Type().IsRegular() || !isPart(e.Name()) {
			continue
		}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < abandoned {
			continue // it is gone, or may be growing
		}
		if err := d.remove(e.Name()); !errors.Is(err, fs.ErrPermission) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// remove removes a file, which another process may have done already.
func (d *folder) remove(name string) error {
	if err := os.Remove(filepath.Join(d.dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isSnapshot reports whether a name is one that finish gives.
func isSnapshot(name string) bool {
	at, ok := between(name, "slow-", ".trace")
	t, err := time.Parse(stamp, at)
	return ok && err == nil && t.Format(stamp) == at
}

// isPart reports whether a name is one that open gives.
func isPart(name string) bool {
	digits, ok := between(name, ".slow-", ".part")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// between returns what a name has between two parts.
func between(name, before, after string) (string, bool) {
	rest, begins := strings.CutPrefix(name, before)
	middle, ends := strings.CutSuffix(rest, after)
	return middle, begins && ends
}
