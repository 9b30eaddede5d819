package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// mostBytes bounds what is read into memory of one file. The longest runs stay
// far below it.
const mostBytes = 1 << 30

// openFile opens a file of a run that may have been made by anybody. Devices and
// pipes, which may have no end or never begin, are refused unopened.
func openFile(path string) (*os.File, error) {
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case fi.Size() > mostBytes:
		return nil, fmt.Errorf("%s holds %d bytes; at most %d are read", path, fi.Size(), mostBytes)
	}
	return os.Open(path)
}

func readFile(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostBytes))
}

// writeFile replaces path in one step, surviving a crash at any moment: a
// temporary file beside it, synced, renamed, and the folder synced.
func writeFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrInvalid) {
		err = nil // some file systems sync names with the files
	}
	return errors.Join(err, d.Close())
}
