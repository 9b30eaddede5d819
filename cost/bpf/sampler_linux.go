//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/kallsyms"
	"github.com/tarehq/tare/internal/cgroup"
	"github.com/tarehq/tare/internal/cpus"
	"github.com/tarehq/tare/internal/task"
)

// Sampler watches processes until it is stopped. Its methods are safe for
// concurrent use.
type Sampler struct {
	o       Options
	objects samplerObjects
	clock   *clock
	leaving link.Link // the program that runs at switches of threads; nil where there is none
	ring    *ringbuf.Reader
	kernel  func() (kallsyms.Symbols, error)

	// Of the goroutine that fetches, and of Take; of nobody once that has ended.
	mu      sync.Mutex
	begun   time.Time
	taken   samplerTally     // what was counted when something was last taken
	procs   map[int]*process // by number; those that ended among them
	all     []*process
	known   programs // that any of them runs
	stacks  map[string]*seen
	tick    *time.Ticker // when samples are fetched
	key     []byte
	mend    bool // frame pointers alone are not trusted
	pending []error

	stop  chan struct{} // closed to end the goroutine
	done  chan struct{} // closed by it
	ended chan struct{} // closed by it when no process is left
}

// seen is one stack, and how often it was seen.
type seen struct {
	p      *process
	kernel []uint64
	chain  []uint64
	count  int
	weight uint64
	left   int    // times that a thread was seen to stop running there,
	leaves uint64 // which stand for so many
}

// Start begins to watch.
func Start(o Options) (*Sampler, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// prepare does what may be refused.
func prepare(o Options) (*Sampler, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := Verify(); err != nil {
		return nil, err
	}
	s := &Sampler{
		o: o, kernel: sync.OnceValues(kallsyms.Load), procs: map[int]*process{}, known: programs{}, stacks: map[string]*seen{}, mend: true,
		stop: make(chan struct{}), done: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// open has the kernel ready to tick.
func (s *Sampler) open() error {
	if setting, err := os.ReadFile("/proc/sys/kernel/perf_event_max_sample_rate"); err == nil {
		if err := allowed(s.o.Hz, string(setting)); err != nil {
			return err
		}
	}
	if err := s.load(); err != nil {
		return explainMissing(err)
	}
	clock, err := newClock(s.o.Hz, s.objects.Tick.FD())
	if err != nil {
		return explainMissing(err)
	}
	s.clock = clock
	if s.o.PID != 0 {
		return s.watch(s.o.PID)
	}
	return s.watchGroup()
}

// load loads the program into the kernel.
func (s *Sampler) load() error {
	spec, err := loadSampler()
	if err != nil {
		return err
	}
	online, err := cpus.Online()
	if err != nil {
		return err
	}
	spec.Maps[samplerMapSamples].MaxEntries = room((s.o.Hz+s.o.Switches)*len(online), s.o.Fetch)
	if err := spec.Variables[samplerVarBetween].Set(uint64(time.Second) / uint64(s.o.Switches)); err != nil {
		return err
	}
	if err := namespace(spec); err != nil {
		return err
	}
	if err := spec.LoadAndAssign(&s.objects, nil); err != nil {
		return err
	}
	s.ring, err = ringbuf.NewReader(s.objects.Samples)
	return err
}

// room returns the size of a ring that holds the samples of four fetchings, or a little
// more than those of one if each has its stack.
func room(perSecond int, fetch time.Duration) uint32 {
	const least, most = 1 << 20, 256 << 20
	perInterval := float64(perSecond) * fetch.Seconds()
	each := max(4*float64(binary.Size(samplerSample{})), 1.25*float64(binary.Size(samplerAstray{})))
	size := uint64(min(most, max(least, each*perInterval)))
	return uint32(1) << (bits.Len64(size - 1))
}

// firstNamespace is the kernel's fixed number of the first PID namespace.
const firstNamespace = 0xeffffffc

// namespace has the program see processes' numbers as this process does.
func namespace(spec *ebpf.CollectionSpec) error {
	var at unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &at); err != nil {
		return err
	}
	if at.Ino == firstNamespace {
		return nil
	}
	return errors.Join(
		spec.Variables[samplerVarNamespaceDevice].Set(at.Dev),
		spec.Variables[samplerVarNamespaceInode].Set(at.Ino),
	)
}

// errNested says why nothing would be seen of a process.
var errNested = fmt.Errorf("%w: a process in a PID namespace inside that of tare is not seen to run, unless tare's is the machine's first: run tare on the machine itself, or in the namespace of the process", cost.ErrNotSupported)

// nested reports whether a process's number is known here and not to the program in the
// kernel, which is told those of the first namespace and of each process's own.
func nested(pid int) bool {
	var own, other unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &own) != nil || unix.Stat(task.Path(pid, "ns/pid"), &other) != nil {
		return false
	}
	return own.Ino != firstNamespace && own.Ino != other.Ino
}

// watch adds a process.
func (s *Sampler) watch(pid int) error {
	p, err := s.known.process(pid)
	if err == nil && s.o.PID != 0 && p.why != nil {
		err = fmt.Errorf("%s: %w", p.name, p.why)
	}
	if errors.Is(err, ErrEnded) && s.o.PID != 0 && task.OfKernel(pid) {
		err = errKernel
	}
	if err == nil && nested(pid) {
		if s.o.PID != 0 {
			err = errNested
		} else {
			s.note(errNested) // others of the group may be seen
		}
	}
	if err != nil {
		return fmt.Errorf("looking at process %d: %w", pid, err)
	}
	s.follow(p)
	return s.objects.Watched.Put(uint32(pid), p.sampled())
}

// follow has samples of a process's number be its own from now on.
func (s *Sampler) follow(p *process) {
	p.nth = len(s.all)
	s.procs[p.pid] = p
	s.all = append(s.all, p)
}

// members are the processes of the control group, or those that Find finds.
func (s *Sampler) members() ([]int, error) {
	if s.o.Find != nil {
		return s.o.Find()
	}
	return cgroup.Members(s.o.Cgroup)
}

// watchGroup adds members that are not watched yet, and drops what Find no longer finds.
func (s *Sampler) watchGroup() error {
	pids, err := s.members()
	if err != nil {
		return err
	}
	for pid, p := range s.procs {
		if s.o.Find != nil && !p.ended && !slices.Contains(pids, pid) {
			s.note(s.drop(p))
		}
	}
	for _, pid := range pids {
		if p := s.procs[pid]; p != nil && !p.ended {
			continue
		}
		err := s.watch(pid)
		switch {
		case err == nil || errors.Is(err, ErrEnded):
		case s.o.Find != nil:
			s.note(err) // the others are watched all the same
		default:
			return err
		}
	}
	if len(s.all) == 0 && s.o.Find == nil {
		return fmt.Errorf("%s: %w: no process is in this control group", s.o.Cgroup, ErrEnded)
	}
	return nil
}

// begin starts the clock and fetches from then on.
func (s *Sampler) begin() error {
	for _, p := range s.all {
		if err := s.look(p, true); err != nil {
			return err
		}
		p.begun = p.last
	}
	s.begun = time.Now()
	if err := s.clock.run(true); err != nil {
		return err
	}
	if !s.clock.cycles {
		leaving, err := link.AttachTracing(link.TracingOptions{Program: s.objects.Leave})
		if err != nil {
			return explainMissing(err)
		}
		s.leaving = leaving
	}
	s.tick = time.NewTicker(s.o.Fetch)
	go s.fetch()
	return nil
}

// Pace goes on at other rates, which are those of Options. The room for samples stays.
//
// Note: to start anew verifies the program and reads all names again (BenchmarkPace).
func (s *Sampler) Pace(hz, switches int, fetch time.Duration) error {
	o := s.o
	o.Hz, o.Switches, o.Fetch = hz, switches, fetch
	if err := o.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clock, err := newClock(o.Hz, s.objects.Tick.FD())
	if err != nil {
		return explainMissing(err)
	}
	if err := errors.Join(s.clock.Close(), clock.run(true), s.objects.Between.Set(uint64(time.Second)/uint64(o.Switches))); err != nil {
		return errors.Join(err, clock.Close())
	}
	s.o, s.clock = o, clock
	s.tick.Reset(o.Fetch)
	return nil
}

// fetch takes samples until it is told to stop.
func (s *Sampler) fetch() {
	defer close(s.done)
	defer s.tick.Stop()
	for over := false; ; {
		select {
		case <-s.stop:
			return
		case <-s.tick.C:
		}
		s.mu.Lock()
		s.drain()
		s.note(s.refresh(s.o.Find == nil))
		if !over && s.o.Find == nil && s.allEnded() {
			over = true
			close(s.ended)
		}
		s.mu.Unlock()
	}
}

// allEnded reports whether no process is left.
func (s *Sampler) allEnded() bool {
	return !slices.ContainsFunc(s.all, func(p *process) bool { return !p.ended })
}

// note keeps an error for the profile's warnings, each once.
func (s *Sampler) note(err error) {
	if err == nil {
		return
	}
	for _, e := range s.pending {
		if e.Error() == err.Error() {
			return
		}
	}
	s.pending = append(s.pending, err)
}

// refresh looks at every process, drops those that ended and finds new ones.
func (s *Sampler) refresh(closely bool) error {
	for pid, p := range s.procs {
		if p.ended {
			continue
		}
		if err := s.look(p, closely); err != nil {
			return err
		}
		if p.ended && s.o.PID != 0 {
			// The same process may have begun to run another program.
			if err := s.watch(pid); err != nil && !errors.Is(err, ErrEnded) {
				return err
			}
		}
	}
	if s.o.PID != 0 {
		return nil
	}
	return s.watchGroup()
}

// look looks at a process. What Find no longer finds runs another program, if it runs.
func (s *Sampler) look(p *process, closely bool) error {
	if p.checkAlive(closely && s.o.Find == nil); p.ended {
		return s.drop(p)
	}
	if closely {
		p.noteMonitor()
	}
	return nil
}

// drop has the kernel watch a process no more that has ended.
func (s *Sampler) drop(p *process) error {
	p.ended = true
	if err := s.objects.Watched.Delete(uint32(p.pid)); !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// drain takes what is in the ring.
func (s *Sampler) drain() {
	var rec ringbuf.Record
	var sample samplerAstray
	s.ring.SetDeadline(time.Now())
	for {
		err := s.ring.ReadInto(&rec)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err == nil {
			err = read(rec.RawSample, &sample)
		}
		if err != nil {
			s.note(fmt.Errorf("fetching samples: %w", err))
			return
		}
		s.add(&sample)
	}
}

// read takes a sample out of the ring, with its stack if it was written down. Of stacks it
// reads what was filled in.
//
// Note: encoding/binary reads all of them, by reflection (BenchmarkRead).
func read(raw []byte, into *samplerAstray) error {
	const top, kernel, user, behind, stack, end = 56, 184, 696, 1712, 1720, 7864
	if len(raw) < behind {
		return io.ErrUnexpectedEOF
	}
	long, short := binary.NativeEndian.Uint64, binary.NativeEndian.Uint32
	s := &into.Sample
	s.Weight, s.Ip, s.Sp, s.Bp = long(raw), long(raw[8:]), long(raw[16:]), long(raw[24:])
	s.Pid, s.KernelBytes, s.UserBytes = short(raw[32:]), int32(short(raw[36:])), int32(short(raw[40:]))
	s.TopBytes, s.Switched, into.Bytes = short(raw[44:]), short(raw[48:]), 0
	words(s.Top[:], raw[top:], len(s.Top))
	words(s.Kernel[:], raw[kernel:], int(s.KernelBytes)/word)
	words(s.User[:], raw[user:], int(s.UserBytes)/word)
	if len(raw) >= end {
		into.Bytes = short(raw[behind:])
		words(into.Stack[:], raw[stack:], int(into.Bytes)/word)
	}
	return nil
}

// words reads n words, or as many as there is room for.
func words(into []uint64, raw []byte, n int) {
	for k := range into[:min(max(0, n), len(into))] {
		into[k] = binary.NativeEndian.Uint64(raw[word*k:])
	}
}

// add counts a sample.
func (s *Sampler) add(astray *samplerAstray) {
	sample := &astray.Sample
	p := s.procs[int(sample.Pid)]
	if p == nil {
		return // nothing is known of it
	}
	switched := sample.Switched != 0
	if switched {
		p.leaves += sample.Weight
	} else {
		p.seen++
		p.weight += sample.Weight
	}
	kernel := sample.Kernel[:min(len(sample.Kernel), max(0, int(sample.KernelBytes)/8))]
	chain := p.chain(astray, s.mend)
	// Not the number: what runs a program anew by it has the same stacks.
	s.key = binary.NativeEndian.AppendUint32(s.key[:0], uint32(p.nth))
	s.key = binary.NativeEndian.AppendUint32(s.key, uint32(len(kernel)))
	for _, part := range [][]uint64{kernel, chain} {
		for _, a := range part {
			s.key = binary.NativeEndian.AppendUint64(s.key, a)
		}
	}
	at := s.stacks[string(s.key)]
	if at == nil {
		at = &seen{p: p, kernel: append([]uint64(nil), kernel...), chain: chain}
		s.stacks[string(s.key)] = at
	}
	if switched {
		at.left++
		at.leaves += sample.Weight
		return
	}
	at.count++
	at.weight += sample.Weight
}

// Take returns what was seen since the last time, or since Start, and goes on. A process
// that has ended is in it for the last time. It may not be called with Stop, or after it.
func (s *Sampler) Take() (*Profile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	s.note(s.refresh(true))
	now := time.Now()
	p, err := s.profile(now.Sub(s.begun))
	s.begun = now
	return p, errors.Join(err, s.forget())
}

// forget begins anew with the processes that run.
func (s *Sampler) forget() error {
	const most = 2048 // addresses of a process, in half a megabyte
	clear(s.stacks)
	s.pending = nil
	s.all = slices.DeleteFunc(s.all, func(p *process) bool { return p.ended })
	maps.DeleteFunc(s.procs, func(_ int, p *process) bool { return p.ended })
	for nth, p := range s.all {
		p.nth, p.begun = nth, p.last
		p.weight, p.leaves, p.seen = 0, 0, 0
		if len(p.frames) > most {
			clear(p.frames)
		}
	}
	return s.known.drop(func(g *program) bool {
		return !slices.ContainsFunc(s.all, func(p *process) bool { return p.program == g })
	})
}

// Ended is closed when all watched processes have ended, or run another program; never
// if they are those that Find finds.
func (s *Sampler) Ended() <-chan struct{} { return s.ended }

// Stop ends the sampling and returns what was seen. It may be called once.
func (s *Sampler) Stop() (*Profile, error) {
	defer s.release()
	close(s.stop)
	<-s.done
	stopped := s.clock.run(false)
	if s.leaving != nil {
		stopped = errors.Join(stopped, s.leaving.Close())
		s.leaving = nil
	}
	duration := time.Since(s.begun)
	for _, p := range s.all {
		p.checkAlive(s.o.Find == nil) // at once: the process runs on
		p.noteMonitor()
	}
	if stopped != nil {
		return nil, stopped
	}
	s.drain()
	return s.profile(duration)
}

// release gives everything back.
func (s *Sampler) release() error {
	var all error
	if s.clock != nil {
		all = s.clock.Close()
	}
	if s.leaving != nil {
		all = errors.Join(all, s.leaving.Close())
	}
	if s.ring != nil {
		all = errors.Join(all, s.ring.Close())
	}
	all = errors.Join(all, s.known.Close())
	if s.objects.Tick == nil {
		return all // not loaded
	}
	return errors.Join(all, s.objects.Close())
}

// unprivileged reports whether an error is for want of a right.
func unprivileged(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)
}
