//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
)

// The oldest kernel that has all that is used.
const kernelMajor, kernelMinor = 5, 15

// explainMissing says what the system lacks, given the error that it showed itself by.
func explainMissing(err error) error {
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
