//go:build linux && (amd64 || arm64)

package reply

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/loglinear"
)

// Watch times the answers of one process until it is closed. It is safe for
// concurrent use, Close excepted.
type Watch struct {
	objects watcherObjects
	links   []link.Link
	waiting *link.Iter
	mu      sync.Mutex // of what is counted by waiting
}

// Start begins to time the answers of a process. Connections that it has accepted
// already are among them, from the next data on that arrives there. The error wraps
// cost.ErrNotSupported where the kernel, or the rights of this process, do not allow
// it.
func Start(pid int) (*Watch, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, lacking(err)
	}
	spec, err := loadWatcher()
	if err != nil {
		return nil, fmt.Errorf("reading BPF programs: %w", err)
	}
	if err := spec.Variables[watcherVarPid].Set(uint32(pid)); err != nil {
		return nil, err
	}
	w := &Watch{}
	if err := spec.LoadAndAssign(&w.objects, nil); err != nil {
		return nil, lacking(err)
	}
	if err := w.begin(pid); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// begin finds the process, attaches programs, and then finds its connections: none
// that is accepted meanwhile is missed.
func (w *Watch) begin(pid int) error {
	find, err := link.AttachIter(link.IterOptions{Program: w.objects.Find})
	if err != nil {
		return lacking(err)
	}
	defer find.Close()
	if err := walk(find); err != nil {
		return err
	}
	var tgid uint32
	if err := w.objects.Tgid.Get(&tgid); err != nil {
		return err
	}
	if tgid == 0 {
		return fmt.Errorf("timing answers of process %d: it has no open file, or has ended", pid)
	}
	if w.waiting, err = link.AttachIter(link.IterOptions{Program: w.objects.Waiting, Map: w.objects.Conns}); err != nil {
		return lacking(err)
	}
	if err := w.attach(); err != nil {
		return err
	}
	return walk(find)
}

// attach has the programs run.
func (w *Watch) attach() error {
	for _, p := range []*ebpf.Program{w.objects.Opened, w.objects.Sent, w.objects.Arrive} {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return lacking(err)
		}
		w.links = append(w.links, l)
	}
	return nil
}

// detach has them run no more.
func (w *Watch) detach() error {
	var errs []error
	for _, l := range w.links {
		errs = append(errs, l.Close())
	}
	w.links = nil
	return errors.Join(errs...)
}

// walk runs an iterator's program over all there is.
func walk(it *link.Iter) error {
	r, err := it.Open()
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return fmt.Errorf("looking through the kernel's lists: %w", err)
	}
	return nil
}

// Read returns what was seen since Start.
func (w *Watch) Read() (Seen, error) {
	var s Seen
	var each []watcherTally
	if err := w.objects.Tallies.Lookup(uint32(0), &each); err != nil {
		return s, fmt.Errorf("reading a BPF map: %w", err)
	}
	for b := range loglinear.Buckets {
		var n uint64
		for i := range each {
			n += each[i].Count[b]
		}
		if n > 0 {
			from, below := loglinear.Bounds(b)
			s.Times = append(s.Times, Bucket{time.Duration(from), time.Duration(below), n})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.objects.Waits.Set(uint64(0)); err != nil {
		return s, err
	}
	if err := walk(w.waiting); err != nil {
		return s, err
	}
	return s, w.objects.Waits.Get(&s.Waiting)
}

// Close takes the programs away.
func (w *Watch) Close() error {
	err := w.detach()
	if w.waiting != nil {
		err = errors.Join(err, w.waiting.Close())
	}
	return errors.Join(err, w.objects.Close())
}

// lacking says what the system lacks, given the error that it showed itself by.
func lacking(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("timing answers from outside needs root, or CAP_BPF and CAP_PERFMON: %w (%w)", cost.ErrNotSupported, err)
	}
	return fmt.Errorf("timing answers from outside needs Linux 6.6 with BTF: %w (%w)", cost.ErrNotSupported, err)
}
