//go:build unix

package lab

import (
	"syscall"
	"time"
)

// ownCPU is the CPU time of this process; 0 if the system does not report it.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
