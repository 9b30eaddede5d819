package env

import (
	"syscall"
	"time"
)

// nap asks the kernel itself: time.Sleep waits in epoll, whose time-outs the Go
// runtime rounds up to a millisecond.
func nap(d time.Duration) time.Duration {
	start := time.Now()
	t := syscall.NsecToTimespec(int64(d))
	// A nap cut short by a signal counts as it is; the median does not feel it.
	_ = syscall.Nanosleep(&t, nil)
	return time.Since(start)
}
