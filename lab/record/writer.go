package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tarehq/tare/internal/flock"
)

// Names within a run's folder.
const (
	manifestName = "manifest.json"
	trialsName   = "trials.jsonl"
	histName     = "hist"
)

// Writer appends to a run. It is not safe for concurrent use. It holds the
// folder's lock until Finish or Close.
type Writer struct {
	dir      string
	manifest Manifest
	trials   lines
	captures lines // opened by the first capture
	next     int   // lowest sequence number that a trial may have
	unlock   func() error

	nextCapture int           // likewise, of captures
	idle        time.Duration // until the run was taken up again; 0 once the manifest has it
}

// Create makes the folder dir and writes the manifest m into it; Schema is
// filled in. It refuses a folder that exists: fs.ErrExist. After any other error
// there is none.
func Create(dir string, m Manifest) (*Writer, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return nil, fmt.Errorf("creating run: %w", err)
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, fmt.Errorf("creating run: %w", err)
	}
	m.Schema = Schema
	w := &Writer{dir: dir, manifest: m}
	if err := w.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("creating run: %w", err), w.Discard())
	}
	return w, nil
}

func (w *Writer) begin() (err error) {
	w.unlock, err = flock.Folder(w.dir)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // making the folder was exclusive already
		return err
	}
	if err := os.Mkdir(filepath.Join(w.dir, histName), 0o777); err != nil {
		return err
	}
	w.trials.file, err = os.OpenFile(filepath.Join(w.dir, trialsName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if err := w.writeManifest(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(w.dir))
}

// Resume opens the run in dir to append to it: a torn tail is cut off, which
// the run's Warnings say. The lock keeps a second writer out; where the system
// has none, Resume fails with errors.ErrUnsupported.
func Resume(dir string) (*Writer, *Run, error) {
	unlock, err := flock.Folder(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("resuming run: %w", err)
	}
	w := &Writer{dir: dir, unlock: unlock}
	run, err := w.resume()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("resuming run: %w", err), w.Close())
	}
	return w, run, nil
}

func (w *Writer) resume() (*Run, error) {
	run, whole, err := open(w.dir)
	if err != nil {
		return nil, err
	}
	w.manifest, w.trials.size, w.captures.size = run.Manifest, whole.trials, whole.captures
	if !run.Manifest.Started.IsZero() {
		w.idle = max(0, time.Since(run.lastSign()))
	}
	if n := len(run.Trials); n > 0 {
		w.next = run.Trials[n-1].Seq + 1
	}
	if n := len(run.Captures); n > 0 {
		w.nextCapture = run.Captures[n-1].Seq + 1
	}
	w.trials.file, err = os.OpenFile(filepath.Join(w.dir, trialsName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := w.trials.cut(); err != nil {
		return nil, err
	}
	w.captures.file, err = os.OpenFile(filepath.Join(w.dir, capturesName), os.O_RDWR, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		w.captures.file = nil
		return run, nil
	}
	if err != nil {
		return nil, err
	}
	return run, w.captures.cut()
}

// Append keeps a trial and, unless h is nil, its histograms. When it returns
// nil both are on disk; when not, the run is as it was before. A metric that
// is no finite number is left out and named in the trial's warnings. Sequence
// numbers must rise.
func (w *Writer) Append(t Trial, h *Histograms) error {
	if t.Seq < w.next {
		return fmt.Errorf("appending trial %d: the next sequence number is %d", t.Seq, w.next)
	}
	if err := w.append(finite(t), h); err != nil {
		return fmt.Errorf("appending trial %d: %w", t.Seq, err)
	}
	w.next = t.Seq + 1
	return nil
}

func (w *Writer) append(t Trial, h *Histograms) error {
	if err := w.reopenRun(); err != nil {
		return err
	}
	if h != nil {
		t.Hist = fmt.Sprintf("%06d", t.Seq)
		if err := writeHistograms(w.dir, t, h); err != nil {
			return err
		}
	}
	return w.trials.append(t)
}

// lastSign is when a run was last known to be under way.
func (r *Run) lastSign() time.Time {
	if !r.Manifest.Ended.IsZero() {
		return r.Manifest.Ended
	}
	last := r.Manifest.Started
	for _, t := range r.Trials {
		last = latest(last, t.Start.Add(t.Elapsed))
	}
	for _, c := range r.Captures {
		last = latest(last, c.Start.Add(c.Elapsed))
	}
	return last
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// reopenRun takes back that the run has ended, where it was taken up after that, and notes
// for how long it was not under way.
func (w *Writer) reopenRun() error {
	if w.manifest.Outcome == "" && w.idle == 0 {
		return nil
	}
	return w.Update(func(m *Manifest) { m.Outcome, m.Ended, m.Idle, w.idle = "", time.Time{}, m.Idle+w.idle, 0 })
}

// finite returns t without the numbers that JSON cannot hold.
func finite(t Trial) Trial {
	metrics := make(map[string]float64, len(t.Metrics))
	var lost []string
	for name, v := range t.Metrics {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			lost = append(lost, fmt.Sprintf("metric %s excluded: it was %v", name, v))
			continue
		}
		metrics[name] = v
	}
	slices.Sort(lost)
	t.Metrics = metrics
	t.Warnings = slices.Concat(t.Warnings, lost)
	return t
}

// Update changes the manifest and writes it anew. A reader sees the old one or
// the new one, never half of either.
func (w *Writer) Update(change func(*Manifest)) error {
	change(&w.manifest)
	return w.writeManifest()
}

// Finish notes how and when the run ended, and closes the writer.
func (w *Writer) Finish(outcome string) error {
	err := w.Update(func(m *Manifest) { m.Outcome, m.Ended, m.Idle = outcome, time.Now().UTC(), m.Idle+w.idle })
	return errors.Join(err, w.Close())
}

// Discard closes the writer and removes the run, folder and all.
func (w *Writer) Discard() error {
	return errors.Join(w.Close(), os.RemoveAll(w.dir))
}

// Close releases the run without a word on its end. Closing twice is no error.
func (w *Writer) Close() error {
	errs := []error{w.trials.close(), w.captures.close()}
	if w.unlock != nil {
		errs = append(errs, w.unlock())
		w.unlock = nil
	}
	return errors.Join(errs...)
}

func (w *Writer) writeManifest() error {
	data, err := json.MarshalIndent(w.manifest, "", "  ")
	if err != nil {
		return fmt.Errorf("writing manifest: %w", err)
	}
	if err := writeFile(filepath.Join(w.dir, manifestName), append(data, '\n')); err != nil {
		return fmt.Errorf("writing manifest: %w", err)
	}
	return nil
}
