package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// output is a file to be written, "" for none, and the flag that names it.
type output struct{ flag, path string }

// writable tells before a measurement what could not be written after it, and what
// would be written over another result or over a file that is read.
func writable(files []output, read ...string) error {
	for i, f := range files {
		if f.path == "" {
			continue
		}
		if f.path == "-" {
			return asked("name a file; one of that name is ./-", fmt.Errorf("%s -: standard output has the result already", f.flag))
		}
		if err := f.check(); err != nil {
			return err
		}
		for _, other := range files[:i] {
			if sameFile(f.path, other.path) {
				return asked("name a file for each", fmt.Errorf("%s and %s are the same file: %s", other.flag, f.flag, f.path))
			}
		}
		if slices.ContainsFunc(read, func(path string) bool { return sameFile(f.path, path) }) {
			return asked("name another file", fmt.Errorf("%s %s: that file is read", f.flag, f.path))
		}
	}
	return nil
}

// sameFile says whether writing the one path replaces what is at the other. A
// device or a pipe takes any number of results.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	x1, errX := filepath.Abs(a)
	y1, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x1 == y1
}

// check tries whether the file could be written, and leaves nothing behind.
func (f output) check() error {
	dir := filepath.Dir(f.path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &failure{status: exitCould, err: fmt.Errorf("%s %s: there is no folder %s", f.flag, f.path, dir), hint: "create the folder first"}
	}
	to, err := place(f.path)
	if err == nil && !to.inPlace {
		err = to.try()
	}
	switch {
	case errors.Is(err, errFolder):
		return &failure{status: exitCould, err: fmt.Errorf("%s %s: that is a folder", f.flag, f.path), hint: "name a file in it"}
	case err != nil:
		return &failure{status: exitCould, err: fmt.Errorf("%s %s: %w", f.flag, f.path, err), hint: "name a file that you may write"}
	}
	return nil
}

// errFolder says that a folder is where a file is to be.
var errFolder = errors.New("that is a folder")

// destination is where a file's bytes go.
type destination struct {
	path    string      // what a symbolic link leads to
	mode    fs.FileMode // its permissions; 0: it is new
	inPlace bool        // it cannot be replaced by another: a device, a pipe
}

// place looks at what a path names now. A file that nobody may write, or not this
// user, is an error: that the folder lets it be replaced is no leave to do so.
func place(path string) (destination, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return destination{path: path, inPlace: true}, nil // a link to what is not there yet
		}
		return destination{path: path}, nil
	}
	if err != nil {
		return destination{}, err
	}
	if info.IsDir() {
		return destination{}, errFolder
	}
	if !info.Mode().IsRegular() {
		return destination{path: path, inPlace: true}, nil
	}
	const anybody = 0o222
	if info.Mode().Perm()&anybody == 0 {
		return destination{}, fmt.Errorf("it is there already and may only be read: %w", fs.ErrPermission)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return destination{}, err
	}
	if err := f.Close(); err != nil {
		return destination{}, err
	}
	real, err := filepath.EvalSymlinks(path)
	return destination{path: real, mode: info.Mode().Perm()}, err
}

// temporary opens a file beside the one that it is to replace. A new one is made as any
// other is, so that who may read it is as the user's umask has it.
func (d destination) temporary() (*os.File, error) {
	dir := filepath.Dir(d.path)
	if d.mode == 0 {
		return os.OpenFile(filepath.Join(dir, ".tare-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	}
	return os.CreateTemp(dir, ".tare-*")
}

// try finds out whether a file may be put there.
func (d destination) try() error {
	f, err := d.temporary()
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// keepFile writes a file so that a reader sees the old one or the new one, never
// half of either; "" is none. A link stays one, and what is no regular file is
// written where it is.
func keepFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	to, err := place(path)
	switch {
	case err != nil:
	case to.inPlace:
		err = to.fill(write)
	default:
		err = to.replace(write)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// fill writes to what is there.
func (d destination) fill(write func(io.Writer) error) error {
	f, err := os.OpenFile(d.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// replace writes beside what is there and puts that in its place.
func (d destination) replace(write func(io.Writer) error) (err error) {
	f, err := d.temporary()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := finished(f, d.mode, write); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), d.path)
}

// finished writes a file until it is on disk.
func finished(f *os.File, mode fs.FileMode, write func(io.Writer) error) error {
	if err := write(f); err != nil {
		return err
	}
	if mode != 0 {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	return f.Sync()
}
