//go:build linux && (amd64 || arm64)

package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
)

// Limits of the programs' maps.
const (
	maxOwners = 64
	maxMarks  = 512
	maxSeen   = 4096
	maxChain  = 48
)

// device is the programs and maps, loaded into the kernel for one process.
type device struct {
	deviceObjects
	target *Target
	ring   *ringbuf.Reader // nil: it only counts
	window uint64

	// Guarded by the target's guard, which stops this process.
	placed        []placing // what links are there, or are to be there again
	links         []link.Link
	counting      bool
	lifted        time.Time
	liftedCPU     time.Duration
	away, awayCPU time.Duration // while this process was stopped
	failed        error         // what went wrong when it went on
}

// specify reads the programs.
func specify() (*ebpf.CollectionSpec, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, unprivileged(err)
	}
	spec, err := loadDevice()
	if err != nil {
		return nil, fmt.Errorf("reading BPF programs: %w", err)
	}
	return spec, nil
}

// newCountingDevice loads the program that counts, and none of the others: what these keep of
// goroutines takes tens of megabytes of the kernel's memory.
func newCountingDevice(t *Target) (*device, error) {
	spec, err := specify()
	if err != nil {
		return nil, err
	}
	var counting struct {
		Count *ebpf.Program `ebpf:"count"`
		Seen  *ebpf.Map     `ebpf:"seen"`
	}
	if err := spec.LoadAndAssign(&counting, nil); err != nil {
		return nil, unprivileged(err)
	}
	d := &device{target: t}
	d.Count, d.Seen = counting.Count, counting.Seen
	t.guard.add(d)
	return d, nil
}

// newDevice loads the programs.
func newDevice(t *Target, trap time.Duration) (*device, error) {
	spec, err := specify()
	if err != nil {
		return nil, err
	}
	d := &device{target: t}
	var vars deviceVariableSpecs
	if err := spec.Assign(&vars); err != nil {
		return nil, fmt.Errorf("reading BPF programs: %w", err)
	}
	if err := vars.GoidOffset.Set(uint32(t.table.Goid())); err != nil {
		return nil, err
	}
	if err := vars.TrapNs.Set(uint64(max(0, trap))); err != nil {
		return nil, err
	}
	if err := spec.LoadAndAssign(&d.deviceObjects, nil); err != nil {
		return nil, unprivileged(err)
	}
	d.ring, err = ringbuf.NewReader(d.Chains)
	if err != nil {
		d.deviceObjects.Close()
		return nil, fmt.Errorf("reading a BPF ring: %w", err)
	}
	t.guard.add(d)
	return d, nil
}

// unprivileged explains why programs could not be loaded.
func unprivileged(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("loading BPF programs needs root, or CAP_BPF and CAP_PERFMON: %w (%w)", cost.ErrNotSupported, err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("loading BPF programs needs Linux 6.6 with BTF: %w (%w)", cost.ErrNotSupported, err)
	}
	return fmt.Errorf("loading BPF programs: %w", err)
}

// Close takes all probes away.
func (d *device) Close() error {
	err := d.detach()
	d.target.guard.remove(d)
	if d.ring != nil {
		err = errors.Join(err, d.ring.Close())
	}
	return errors.Join(err, d.deviceObjects.Close())
}

// attach puts a program on addresses, each with its cookie.
func (d *device) attach(program *ebpf.Program, addrs, cookies []uint64) error {
	if len(addrs) == 0 {
		return nil
	}
	offsets := make([]uint64, len(addrs))
	for i, a := range addrs {
		off, ok := d.target.table.FileOffset(a)
		if !ok {
			return fmt.Errorf("attaching probes: address %#x is not in the file", a)
		}
		offsets[i] = off
	}
	p := placing{program, link.UprobeMultiOptions{Addresses: offsets, Cookies: cookies, PID: uint32(d.target.pid)}}
	d.target.guard.mu.Lock()
	defer d.target.guard.mu.Unlock()
	if err := d.place(p); err != nil {
		return err
	}
	d.placed = append(d.placed, p)
	return nil
}

// place makes a link.
func (d *device) place(p placing) error {
	exe, err := d.target.executable()
	if err != nil {
		return fmt.Errorf("attaching probes: %w", err)
	}
	l, err := exe.UprobeMulti(nil, p.program, &p.options)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("attaching probes: %w", errGone)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("attaching probes needs Linux 6.6: %w (%w)", cost.ErrNotSupported, err)
	case err != nil:
		return fmt.Errorf("attaching probes: %w", err)
	}
	d.links = append(d.links, l)
	return nil
}

// detach takes probes away, the last first; it waits until none runs any more.
func (d *device) detach() error {
	d.target.guard.mu.Lock()
	defer d.target.guard.mu.Unlock()
	err := errors.Join(d.failed, d.unlink())
	d.placed, d.failed = nil, nil
	return err
}

func (d *device) unlink() error {
	var errs []error
	for _, l := range slices.Backward(d.links) {
		errs = append(errs, l.Close())
	}
	d.links = nil
	return errors.Join(errs...)
}

// begin has the programs count for at most a while, and forget the frames of
// earlier windows.
func (d *device) begin(most time.Duration) error {
	if err := d.allow(most); err != nil {
		return err
	}
	d.target.guard.mu.Lock()
	defer d.target.guard.mu.Unlock()
	d.window++
	d.counting = true
	return d.Window.Set(d.window)
}

// end has the programs count no more.
func (d *device) end() error {
	d.target.guard.mu.Lock()
	defer d.target.guard.mu.Unlock()
	d.counting = false
	return d.Window.Set(uint64(0))
}

// allow has the programs work for a while. After that, and some time for what
// comes late, they return at once, whatever has become of this process.
func (d *device) allow(most time.Duration) error {
	const late = 2 * time.Second
	until, err := clockIn(most + late)
	if err != nil {
		return err
	}
	return d.Until.Set(until)
}

// clockIn returns a moment to come of the programs' clock.
func clockIn(d time.Duration) (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("reading the clock: %w", err)
	}
	return uint64(now.Nano() + int64(d)), nil
}

// drain returns the calls told of since the last time, as routes of link-time
// addresses.
func (d *device) drain() ([]route, error) {
	var routes []route
	d.ring.SetDeadline(time.Now())
	for {
		rec, err := d.ring.Read()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return routes, nil
		case err != nil:
			return nil, fmt.Errorf("reading a BPF ring: %w", err)
		}
		var c deviceChain
		if err := binary.Read(bytes.NewReader(rec.RawSample), binary.LittleEndian, &c); err != nil {
			return nil, fmt.Errorf("reading a BPF ring: %w", err)
		}
		r := route{owner: int(c.Id)}
		for _, pc := range c.Pc[:min(max(0, int(c.N)), maxChain)] {
			r.rets = append(r.rets, pc-d.target.bias)
		}
		if len(r.rets) > 1 && r.rets[0] == r.rets[1] {
			r.rets = r.rets[1:] // newer kernels know what a push begins, and find the caller too
		}
		routes = append(routes, r)
	}
}

// counts returns the calls of functions that were looked at.
func (d *device) counts(n int) ([]uint64, error) {
	counts := make([]uint64, n)
	for i := range counts {
		if err := d.Seen.Lookup(uint32(i), &counts[i]); err != nil {
			return nil, fmt.Errorf("reading a BPF map: %w", err)
		}
	}
	return counts, nil
}

// tallied adds an owner's tallies of all CPUs up.
func (d *device) tallied(owner int) (deviceTally, error) {
	var each []deviceTally
	var sum deviceTally
	if err := d.Tallies.Lookup(uint32(owner), &each); err != nil {
		return sum, fmt.Errorf("reading a BPF map: %w", err)
	}
	for i := range each {
		t := &each[i]
		sum.Entered += t.Entered
		sum.Finished += t.Finished
		sum.Stale += t.Stale
		sum.Deep += t.Deep
		sum.Strange += t.Strange
		sum.Total += t.Total
		sum.Self += t.Self
		sum.Longest = max(sum.Longest, t.Longest)
		for b := range t.Hist {
			sum.Hist[b] += t.Hist[b]
		}
	}
	return sum, nil
}

// marked adds a mark's counts of all CPUs up.
func (d *device) marked(id int) (deviceMark, error) {
	var each []deviceMark
	var sum deviceMark
	if err := d.Marks.Lookup(uint32(id), &each); err != nil {
		return sum, fmt.Errorf("reading a BPF map: %w", err)
	}
	for _, m := range each {
		sum.Hits += m.Hits
		sum.Closed += m.Closed
	}
	return sum, nil
}
