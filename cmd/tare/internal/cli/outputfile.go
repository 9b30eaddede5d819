package cli

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

// Output is a file to be written, "" for none, and the flag that names it.
type Output struct{ Flag, Path string }

// Paths are where files are to be written; "" is one that nobody asked for.
func Paths(files []Output) (all []string) {
	for _, f := range files {
		all = append(all, f.Path)
	}
	return all
}

// CheckOutputs finds before a measurement the files that could not be written after it,
// and those that would replace another result or a file that is read.
func CheckOutputs(files []Output, read ...string) error {
	for i, f := range files {
		if f.Path == "" {
			continue
		}
		if f.Path == "-" {
			return Usage("name a file; one of that name is ./-", fmt.Errorf("%s -: standard output has the result already", f.Flag))
		}
		if err := f.check(); err != nil {
			return err
		}
		for _, other := range files[:i] {
			if sameFile(f.Path, other.Path) {
				return Usage("name a file for each", fmt.Errorf("%s and %s are the same file: %s", other.Flag, f.Flag, f.Path))
			}
		}
		if slices.ContainsFunc(read, func(path string) bool { return sameFile(f.Path, path) }) {
			return Usage("name another file", fmt.Errorf("%s %s: that file is read", f.Flag, f.Path))
		}
	}
	return nil
}

// sameFile reports whether writing the one path replaces what is at the other. A
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
func (f Output) check() error {
	dir := filepath.Dir(f.Path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &Failure{Status: ExitFailed, Err: fmt.Errorf("%s %s: there is no folder %s", f.Flag, f.Path, dir), Hint: "create the folder first"}
	}
	to, err := place(f.Path)
	if err == nil && !to.inPlace {
		err = to.try()
	}
	switch {
	case errors.Is(err, errFolder):
		return &Failure{Status: ExitFailed, Err: fmt.Errorf("%s %s: that is a folder", f.Flag, f.Path), Hint: "name a file in it"}
	case err != nil:
		return &Failure{Status: ExitFailed, Err: fmt.Errorf("%s %s: %w", f.Flag, f.Path, err), Hint: "name a file that you may write"}
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
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		failed.Path = d.path // not the name that was tried
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// WriteFile writes a file so that a reader sees the old one or the new one, never
// half of either; "" is none. A link stays one, and what is no regular file is
// written where it is.
func WriteFile(path string, write func(io.Writer) error) error {
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

// Replaces reports whether WriteFile replaces what a path names by a new file, as it does
// unless that is a device or a pipe. What cannot be written is not replaced.
func Replaces(path string) bool {
	to, err := place(path)
	return err == nil && !to.inPlace
}
