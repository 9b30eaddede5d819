//go:build unix

package arm

import (
	"syscall"
	"time"
)

// cpuTime is the CPU time that the process has used; 0 if that is not known.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
