//go:build unix

package sys

import (
	"math"
	"runtime"
	"syscall"
	"time"
)

// CPUTime is what this process has used, user and system; 0 where the system
// does not tell.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// MaxRSS is this process's largest resident set so far, in bytes; 0 where the
// system does not tell.
func MaxRSS() uint64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return uint64(u.Maxrss)
	}
	return uint64(u.Maxrss) << 10
}

// DescriptorLimit is how many files and sockets this process may have open.
func DescriptorLimit() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxUint64
	}
	return uint64(l.Cur)
}
