//go:build linux && amd64

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/pclntab"
	"github.com/tarehq/tare/cost/internal/task"
)

// The oldest kernel that has all that is used.
const kernelMajor, kernelMinor = 5, 15

// lacking says what the system lacks, given the error that it showed itself by.
func lacking(err error) error {
	release, old := kernelRelease()
	_, noTypes := os.Stat("/sys/kernel/btf/vmlinux")
	switch {
	case unprivileged(err):
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			err = errno // what was being done says nothing to who lacks a right
		}
		return fmt.Errorf("%w: sampling needs root or the capabilities CAP_BPF and CAP_PERFMON, and CAP_SYS_PTRACE for other users' processes: %w", cost.ErrNotSupported, err)
	case old:
		return fmt.Errorf("%w: sampling needs Linux %d.%d or newer, this is %s: %w", cost.ErrNotSupported, kernelMajor, kernelMinor, release, err)
	case errors.Is(noTypes, fs.ErrNotExist):
		return fmt.Errorf("%w: sampling needs a kernel built with CONFIG_DEBUG_INFO_BTF, which shows as /sys/kernel/btf/vmlinux: %w", cost.ErrNotSupported, err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w: sampling needs a kernel that loads BPF programs: %w", cost.ErrNotSupported, err)
	}
	return fmt.Errorf("loading the sampler: %w", err)
}

// kernelRelease returns the kernel's version, and whether it is too old.
func kernelRelease() (string, bool) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown", false
	}
	release := unix.ByteSliceToString(u.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return release, false
	}
	return release, major < kernelMajor || major == kernelMajor && minor < kernelMinor
}

// verify holds what this program reads of its own tables against what its runtime
// says, so that a toolchain that changed them is noticed before they are believed.
// A toolchain that is not known at all tells nothing.
func verify() error {
	table, err := pclntab.Open("/proc/self/exe")
	if errors.Is(err, pclntab.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	defer table.Close()
	self, err := openSelf(table)
	if err != nil {
		return err
	}
	var pcs [32]uintptr
	n := runtime.Callers(1, pcs[:])
	frames := runtime.CallersFrames(pcs[:n])
	for _, pc := range pcs[:n] {
		want, _ := frames.Next()
		got := table.Frames(uint64(pc) - 1 - self.bias)
		if len(got) == 0 || got[0].Func != want.Function || got[0].Line != want.Line {
			return fmt.Errorf("%w: this program's own functions are misread: %v where its runtime has %s:%d", cost.ErrNotSupported, got, strings.TrimSpace(want.Function), want.Line)
		}
	}
	return nil
}

// openSelf finds where this program lies in memory.
func openSelf(table *pclntab.Table) (*process, error) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	p := &process{pid: os.Getpid(), exe: exe, table: table}
	if p.maps, err = task.Maps(p.pid); err != nil {
		return nil, gone(err)
	}
	if !p.place() {
		return nil, fmt.Errorf("%w: this program's own code is nowhere in its memory", cost.ErrNotSupported)
	}
	return p, nil
}
