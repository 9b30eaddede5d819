//go:build unix

package sys

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"strconv"
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
	if runtime.GOOS == "linux" {
		return highWater()
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return uint64(u.Maxrss)
	}
	return uint64(u.Maxrss) << 10
}

// highWater is Linux's record of this program alone: that of getrusage begins
// with the size of whoever started the program.
func highWater() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte(" kB\n"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 54)
	if err != nil {
		return 0
	}
	return n << 10
}

// DescriptorLimit is how many files and sockets this process may have open.
func DescriptorLimit() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return math.MaxUint64
	}
	return uint64(l.Cur)
}
