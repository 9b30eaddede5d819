package arm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Counters count what the processor sees of a process from when they are opened
// until they are closed: of every thread there is, and of those that these
// start. Not safe for concurrent use.
type Counters struct {
	loads, misses []int // file descriptors, one a thread
}

// event is one thing that the kernel counts.
type event struct {
	kind   uint32
	config uint64
}

// cacheEvent is an event of the first-level data cache when it is read.
func cacheEvent(result uint64) event {
	return event{unix.PERF_TYPE_HW_CACHE, unix.PERF_COUNT_HW_CACHE_L1D | unix.PERF_COUNT_HW_CACHE_OP_READ<<8 | result<<16}
}

// OpenCounters counts the loads of a process's own code and those that missed
// the first-level data cache. The error wraps ErrNotSupported where the
// processor or its virtual machine has no such counters, or the kernel keeps
// them to itself.
func OpenCounters(pid int) (*Counters, error) {
	var c Counters
	var err error
	if c.loads, err = openEvent(pid, cacheEvent(unix.PERF_COUNT_HW_CACHE_RESULT_ACCESS)); err == nil {
		c.misses, err = openEvent(pid, cacheEvent(unix.PERF_COUNT_HW_CACHE_RESULT_MISS))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &c, nil
}

// openEvent counts an event in every thread of a process.
func openEvent(pid int, e event) ([]int, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return nil, err
	}
	attr := unix.PerfEventAttr{
		Type: e.kind, Size: unix.PERF_ATTR_SIZE_VER1, Config: e.config,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
		Bits:        unix.PerfBitInherit | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	var fds []int
	for _, t := range threads {
		tid, err := strconv.Atoi(filepath.Base(t))
		if err != nil {
			continue
		}
		fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			closeAll(fds)
			return nil, refusal(err)
		}
		fds = append(fds, fd)
	}
	if len(fds) == 0 {
		return nil, fmt.Errorf("opening counters: process %d has ended", pid)
	}
	return fds, nil
}

// refusal says why the kernel opens no counter.
func refusal(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("hardware counters of the cache: %w: the processor, or the virtual machine that it is, offers none", ErrNotSupported)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		level, _ := os.ReadFile("/proc/sys/kernel/perf_event_paranoid") // unreadable: nothing to add
		return fmt.Errorf("hardware counters of the cache: %w: the kernel keeps them from this user (kernel.perf_event_paranoid is %s; 2 allows users to count in their own programs)",
			ErrNotSupported, strings.TrimSpace(string(level)))
	}
	return fmt.Errorf("opening counters: %w", err)
}

// Hits is the share of loads that hit the cache so far.
func (c *Counters) Hits() (float64, error) {
	loads, err := total(c.loads)
	if err != nil {
		return 0, err
	}
	misses, err := total(c.misses)
	if err != nil {
		return 0, err
	}
	if loads <= 0 {
		return 0, errors.New("reading counters: no loads were counted")
	}
	return 1 - misses/loads, nil
}

// total adds up counts, each scaled to the time that its thread ran where
// counters had to take turns.
func total(fds []int) (float64, error) {
	var sum float64
	var buf [24]byte
	for _, fd := range fds {
		n, err := unix.Read(fd, buf[:])
		if err != nil {
			return 0, fmt.Errorf("reading counters: %w", err)
		}
		if n < len(buf) {
			return 0, fmt.Errorf("reading counters: %d bytes, want %d", n, len(buf))
		}
		count, enabled, running := word(buf[:], 0), word(buf[:], 1), word(buf[:], 2)
		if running > 0 {
			sum += count * enabled / running
		}
	}
	return sum, nil
}

func word(b []byte, i int) float64 { return float64(binary.NativeEndian.Uint64(b[8*i:])) }

// Close ends the counting.
func (c *Counters) Close() {
	closeAll(c.loads)
	closeAll(c.misses)
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // nothing was written
	}
}
