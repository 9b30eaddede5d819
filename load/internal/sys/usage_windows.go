package sys

import (
	"math"
	"syscall"
	"time"
)

// CPUTime is what this process has used, user and system; 0 where the system
// does not tell.
func CPUTime() time.Duration {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	var created, exited, kernel, user syscall.Filetime
	if syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	return span(kernel) + span(user)
}

// span is a Filetime that counts a length of time, in units of 100 ns.
func span(f syscall.Filetime) time.Duration {
	return 100 * time.Duration(uint64(f.HighDateTime)<<32|uint64(f.LowDateTime))
}

// MaxRSS is this process's largest resident set so far, in bytes; 0 where the
// system does not tell.
func MaxRSS() uint64 { return 0 }

// DescriptorLimit is how many files and sockets this process may have open.
func DescriptorLimit() uint64 { return math.MaxUint64 }
