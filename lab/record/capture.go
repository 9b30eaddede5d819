package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab/study"
)

// Names within a run's folder.
const (
	capturesName = "captures.jsonl"
	profilesName = "profiles"
)

// Capture is one look at an arm under a workload: a fresh process that was
// loaded as in a trial, and profiled.
type Capture struct {
	Seq      int                `json:"seq"`   // from 0, in order of execution
	Round    int                `json:"round"` // from 0; each arm once a round
	Arm      string             `json:"arm"`
	Workload string             `json:"workload"`
	Sources  []study.Source     `json:"sources"` // that were asked for: one, but in runs of old, where they shared a process
	Start    time.Time          `json:"start,omitzero"`
	Elapsed  time.Duration      `json:"elapsed_ns,omitzero"` // of the part that was profiled
	Requests uint64             `json:"requests"`            // answered in it
	CPU      time.Duration      `json:"cpu_ns,omitzero"`     // of the process in it, by the kernel; 0 = it does not tell
	Monitor  time.Duration      `json:"monitor_ns,omitzero"` // of it, the Go runtime's system monitor, where its profiler looked: it does not see that thread
	Bytes    float64            `json:"bytes,omitzero"`      // allocated in it, by the arm's own count; 0 = it does not tell
	Objects  float64            `json:"objects,omitzero"`
	Metrics  map[string]float64 `json:"metrics,omitzero"` // by study.Metric name, in base units; those that are attributed
	Seen     []Seen             `json:"seen,omitzero"`    // by source; one that could not look is missing
	Truth    map[string]Truth   `json:"truth,omitzero"`   // by part of the arm
	Invalid  []string           `json:"invalid,omitzero"`
	Warnings []string           `json:"warnings,omitzero"`
}

// Truth is what a part of an arm cost a request, by its own count. What it does
// not know is 0.
type Truth struct {
	Calls   float64 `json:"calls"`
	CPU     float64 `json:"cpu_ns,omitzero"`
	Bytes   float64 `json:"bytes,omitzero"`
	Waiting float64 `json:"wait_ns,omitzero"`
}

// Seen is what one source saw in a capture.
type Seen struct {
	Source study.Source `json:"source"`
	// Files are the raw profiles below profiles/, by what they hold: "cpu",
	// "allocs", "trace".
	Files map[string]string `json:"files,omitzero"`
	// Share is how much of the process's CPU time the source saw. 0 = not known.
	Share float64 `json:"share,omitzero"`
	// Bill is what the source's stacks came to, a request, scaled to the CPU time
	// of the process.
	Bill *cost.Bill `json:"bill,omitzero"`
}

// Profile is a raw profile, to be kept.
type Profile struct {
	Source study.Source
	Kind   string // "cpu", "allocs", "trace"
	Data   []byte
}

// endings are the ends of the names of files, by what they hold.
func ending(kind string) string {
	if kind == "trace" {
		return ".trace"
	}
	return ".pb.gz"
}

// AppendCapture keeps a capture and its raw profiles, and returns it with their
// names. Without an error all are on disk. Sequence numbers must rise.
func (w *Writer) AppendCapture(c Capture, profiles []Profile) (Capture, error) {
	if c.Seq < w.nextCapture {
		return c, fmt.Errorf("appending capture %d: the next sequence number is %d", c.Seq, w.nextCapture)
	}
	c, err := w.appendCapture(c, profiles)
	if err != nil {
		return c, fmt.Errorf("appending capture %d: %w", c.Seq, err)
	}
	w.nextCapture = c.Seq + 1
	return c, nil
}

func (w *Writer) appendCapture(c Capture, profiles []Profile) (Capture, error) {
	if err := w.reopenRun(); err != nil {
		return c, err
	}
	c.Seen = slices.Clone(c.Seen)
	for _, p := range profiles {
		name, err := w.keepProfile(c.Seq, p)
		if err != nil {
			return c, err
		}
		for i := range c.Seen {
			if s := &c.Seen[i]; s.Source == p.Source {
				s.Files = maps.Clone(s.Files)
				if s.Files == nil {
					s.Files = map[string]string{}
				}
				s.Files[p.Kind] = name
			}
		}
	}
	if err := w.openCaptures(); err != nil {
		return c, err
	}
	return c, w.captures.append(c)
}

// keepProfile writes a raw profile and returns its name below profiles/.
func (w *Writer) keepProfile(seq int, p Profile) (string, error) {
	dir := filepath.Join(w.dir, profilesName)
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	name := fmt.Sprintf("%06d-%s-%s%s", seq, p.Source, p.Kind, ending(p.Kind))
	return name, writeFile(filepath.Join(dir, name), p.Data)
}

// openCaptures opens the file, which the first capture makes.
func (w *Writer) openCaptures() (err error) {
	if w.captures.file != nil {
		return nil
	}
	if w.captures.file, err = os.OpenFile(filepath.Join(w.dir, capturesName), os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return err
	}
	return syncDir(w.dir)
}

// lines is a file that lines are appended to.
type lines struct {
	file *os.File
	size int64 // of the whole lines
}

// append writes v as one line of JSON. When it fails, the file is as before.
func (l *lines) append(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := l.there(); err != nil {
		return err
	}
	line = append(line, '\n')
	_, err = l.file.WriteAt(line, l.size)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil { // half a line must not be followed by another
		return errors.Join(err, l.file.Truncate(l.size))
	}
	l.size += int64(len(line))
	return nil
}

// there refuses a file that was removed, moved or replaced meanwhile: lines would go
// where nobody finds them.
func (l *lines) there() error {
	mine, err := l.file.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(l.file.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(mine, now) {
		return fmt.Errorf("%s is another file by now", l.file.Name())
	}
	return nil
}

// cut drops what follows the whole lines.
func (l *lines) cut() error {
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	return l.file.Sync()
}

func (l *lines) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// Profile reads a raw profile of this run; name is as in Seen.Files.
func (r *Run) Profile(name string) ([]byte, error) {
	if name != filepath.Base(name) || name == ".." || name == "." {
		return nil, fmt.Errorf("reading profile: %q is no name within the run", name)
	}
	data, err := readFile(filepath.Join(r.Dir, profilesName, name))
	if err != nil {
		return nil, fmt.Errorf("reading profile: %w", err)
	}
	return data, nil
}
