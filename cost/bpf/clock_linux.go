//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/internal/cpus"
)

// clock is what ticks on every CPU.
type clock struct {
	name   string
	cycles bool // it counts cycles, not nanoseconds
	events []int
}

// allowed returns an error if the kernel allows fewer samples a second, given its
// setting of how many it allows. Opening a clock would only say that an argument is
// invalid.
func allowed(hz int, setting string) error {
	most, err := strconv.Atoi(strings.TrimSpace(setting))
	if err != nil || hz <= most {
		return nil
	}
	return fmt.Errorf("%w: %d samples a second are wanted, and kernel.perf_event_max_sample_rate allows %d: raise it by sysctl, or ask for fewer", cost.ErrNotSupported, hz, most)
}

// newClock opens a clock on every CPU, stopped, that runs a program at each tick:
// cycles where the processor counts them, else a timer of the kernel's.
func newClock(hz, program int) (*clock, error) {
	hardware := &clock{name: "cycles of the processor", cycles: true}
	err := hardware.open(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES, hz, program)
	if err == nil {
		return hardware, nil
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return nil, err
	}
	software := &clock{name: "a timer, as this machine shows no cycle counter"}
	return software, software.open(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK, hz, program)
}

// open opens the events; on an error none is left.
func (c *clock) open(kind uint32, config uint64, hz, program int) error {
	online, err := cpus.Online()
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{
		Type: kind, Config: config, Sample: uint64(hz),
		Bits: unix.PerfBitFreq | unix.PerfBitDisabled,
	}
	attr.Size = unix.PERF_ATTR_SIZE_VER5
	for _, cpu := range online {
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err == nil {
			c.events = append(c.events, fd)
			err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, program)
		}
		if err != nil {
			c.Close()
			return fmt.Errorf("opening a clock on CPU %d: %w", cpu, err)
		}
	}
	return nil
}

// run starts or stops the clock.
func (c *clock) run(on bool) error {
	request := uint(unix.PERF_EVENT_IOC_DISABLE)
	if on {
		request = unix.PERF_EVENT_IOC_ENABLE
	}
	for _, fd := range c.events {
		if err := unix.IoctlSetInt(fd, request, 0); err != nil {
			return fmt.Errorf("switching a clock: %w", err)
		}
	}
	return nil
}

// Close stops the clock for good.
func (c *clock) Close() error {
	var all error
	for _, fd := range c.events {
		all = errors.Join(all, unix.Close(fd))
	}
	c.events = nil
	return all
}
