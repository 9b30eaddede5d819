package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Members returns the processes of the control group in a directory, and of those
// inside it.
func Members(dir string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			if path != dir && errors.Is(err, fs.ErrNotExist) {
				return nil // a group that has just gone
			}
			return err
		}
		text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		switch {
		case errors.Is(err, syscall.EOPNOTSUPP), err != nil && path != dir:
			return nil // a group of threads, or one that has just gone
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is no control group", dir)
		case err != nil:
			return err
		}
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids, err
}

// Find finds the directory of a control group: as it is named, or below where groups are
// mounted. Every group has a file that lists its processes.
func Find(name string) (string, error) {
	dirs := []string{name}
	if !filepath.IsAbs(name) {
		dirs = append(dirs, filepath.Join(Mounted, name))
	}
	what := errors.New("there is no such directory")
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		what = errors.New("it is a directory, but no control group: it holds no cgroup.procs")
		if _, err = os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return filepath.EvalSymlinks(dir) // of a link the kernel's tree would not be walked
		}
	}
	return "", fmt.Errorf("group %s: %w", name, what)
}
