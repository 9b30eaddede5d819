package arm

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr puts a child into a process group and has the kernel kill it when
// the thread that forks it is no more.
func childAttr(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
}

// pin bounds the calling thread, and what it forks, to the CPUs; none are all.
func pin(cpus []int) (unpin func(), err error) {
	if len(cpus) == 0 {
		return func() {}, nil
	}
	var old, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return nil, fmt.Errorf("reading the usable CPUs: %w", err)
	}
	for _, c := range cpus {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("pinning to CPUs %v: %w", cpus, err)
	}
	return func() { _ = unix.SchedSetaffinity(0, &old) }, nil // the thread does no more than wait for the arm
}
