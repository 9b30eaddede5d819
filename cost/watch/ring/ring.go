// Package ring keeps profiles in a folder of bounded size: the oldest give way.
//
// A service has a folder of its own, and a profile a file there, whose name says when it
// began, how long it took and of which build it is:
//
//	shop/20261126T140500.000Z_10s_Xk3u9zPq01ab.pb.gz
//
// A file is there whole or not at all, unless the machine itself goes down while it is
// written.
package ring

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tarehq/tare/internal/flock"
)

// Entry is a profile that is kept.
type Entry struct {
	Service, Build string
	Begun          time.Time
	Duration       time.Duration
	Size           int64  // of its file, in bytes
	Path           string // of its file
}

// Ring is a folder that is written to. It is not safe for concurrent use.
type Ring struct {
	dir    string
	most   int64
	size   int64        // room that the files take
	files  []Entry      // the oldest first
	unlock func() error // of the folder; nil: this system cannot lock one
}

// room is what a file takes on disk, in bytes: systems give it whole blocks. A profile of few
// samples is smaller than one, and volumes of Kubernetes are bounded by blocks.
func (e *Entry) room() int64 {
	const block = 4 << 10
	return (e.Size + block - 1) / block * block
}

// Least is the least size of a ring, in bytes.
const Least = 1 << 20

// Open makes a folder a ring of at most so many bytes on disk, those that are there already
// among them. Files that are no profiles of a ring's are left alone, and do not count. Until it is
// closed, or its process ends, another of the same folder is an error that wraps [flock.ErrHeld].
func Open(dir string, most int64) (*Ring, error) {
	if most < Least {
		return nil, fmt.Errorf("a ring of %d bytes: want at least %d", most, Least)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := flock.Folder(dir)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	r := &Ring{dir: dir, most: most, unlock: unlock}
	if err := r.takeStock(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close lets others write to the folder.
func (r *Ring) Close() error {
	if r.unlock == nil {
		return nil
	}
	return r.unlock()
}

// takeStock finds what earlier rings left, and keeps to the bound.
func (r *Ring) takeStock() error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(r.dir), "*", temporary+"*"))
	if err != nil {
		return err
	}
	for _, file := range left { // by who was interrupted
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	if r.files, err = List(r.dir); err != nil {
		return err
	}
	for _, e := range r.files {
		r.size += e.room()
	}
	return r.trim()
}

// escapeGlob has a folder's name stand for itself in a pattern.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

const (
	temporary = ".tare-"
	ending    = ".pb.gz"
	stamp     = "20060102T150405.000Z"
)

// List returns the profiles in a folder, the oldest first.
func List(dir string) ([]Entry, error) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, folder := range folders {
		service, err := url.PathUnescape(folder.Name())
		if err != nil || !folder.IsDir() || strings.HasPrefix(folder.Name(), ".") {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, folder.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // its last profile has just given way
		}
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			e, ok := parse(file.Name())
			info, err := file.Info()
			if !ok || err != nil || !info.Mode().IsRegular() {
				continue
			}
			e.Service, e.Size, e.Path = service, info.Size(), filepath.Join(dir, folder.Name(), file.Name())
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return a.Begun.Compare(b.Begun) })
	return all, nil
}

// parse reads the name of a file.
func parse(name string) (Entry, bool) {
	name, ok := strings.CutSuffix(name, ending)
	part := strings.SplitN(name, "_", 3)
	if !ok || len(part) != 3 {
		return Entry{}, false
	}
	begun, err := time.Parse(stamp, part[0])
	if err != nil {
		return Entry{}, false
	}
	d, err := time.ParseDuration(part[1])
	if err != nil || d < 0 {
		return Entry{}, false
	}
	build, err := url.PathUnescape(part[2])
	return Entry{Build: build, Begun: begun, Duration: d}, err == nil
}

// name is the name of a profile's file.
func (e *Entry) name() string {
	return fmt.Sprintf("%s_%s_%s%s", e.Begun.UTC().Format(stamp), e.Duration.Round(time.Millisecond), escape(e.Build), ending)
}

// escape makes a name that of a file, which systems have no longer than 255 bytes.
func escape(name string) string {
	const longest = 160
	for {
		text := url.PathEscape(name)
		if rest, ok := strings.CutPrefix(text, "."); ok {
			text = "%2E" + rest
		}
		if len(text) <= longest {
			return text
		}
		runes := []rune(name)
		name = string(runes[:len(runes)-1])
	}
}

// mostFreed is how many of the oldest one profile may replace where the disk is full. Others may
// take the room that they leave.
const mostFreed = 16

// Put writes a profile, and removes the oldest if there is no room for it: in the ring, or on a
// disk that is full before the ring is. Then write is called again. Of the entry,
// Size and Path are set. The path is relative to the ring's folder where it is returned.
func (r *Ring) Put(e Entry, write func(io.Writer) error) (path string, err error) {
	path = filepath.Join(escape(e.Service), e.name())
	e.Path = filepath.Join(r.dir, path)
	e.Size, err = replace(e.Path, write)
	for n := 0; isFull(err) && n < mostFreed && len(r.files) > 0; n++ {
		if failed := r.removeOldest(); failed != nil {
			err = errors.Join(err, failed)
			break
		}
		e.Size, err = replace(e.Path, write)
	}
	if err != nil {
		return "", fmt.Errorf("keeping a profile of %s: %w", e.Service, err)
	}
	r.files = append(r.files, e)
	r.size += e.room()
	return path, r.trim()
}

// isFull reports whether a disk, or what of it the user may have, is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// replace writes a file beside where it is to be, in a folder that it makes, and moves it there.
func replace(path string, write func(io.Writer) error) (size int64, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporary+"*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644)); err != nil {
		return 0, errors.Join(err, f.Close())
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(f.Name(), path)
}

// trim removes the oldest until there is no more than there may be. The newest stays.
func (r *Ring) trim() (err error) {
	for r.size > r.most && len(r.files) > 1 {
		err = cmp.Or(err, r.removeOldest())
	}
	return err
}

// removeOldest removes the oldest. A file that cannot be removed goes on to take its room, and
// is not tried again.
func (r *Ring) removeOldest() error {
	oldest := &r.files[0]
	r.files = r.files[1:]
	if err := os.Remove(oldest.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.size -= oldest.room()
	os.Remove(filepath.Dir(oldest.Path)) // if it is empty now
	return nil
}
