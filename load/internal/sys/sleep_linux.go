package sys

import (
	"runtime"
	"syscall"
	"time"
)

// PreciseSleep readies the calling goroutine for short sleeps and returns how
// to sleep. time.Sleep rounds up to a millisecond while nothing else runs; a
// thread that sleeps in the kernel is some 50 µs late.
func PreciseSleep() func(time.Duration) {
	if runtime.GOMAXPROCS(0) == 1 {
		// A thread in the kernel would keep the only P from the workers for
		// up to 10 ms.
		return time.Sleep
	}
	// The timer slack is the thread's. Only a precision is lost without it.
	runtime.LockOSThread()
	_ = PreciseTimers()
	return func(d time.Duration) {
		ts := syscall.NsecToTimespec(int64(d))
		syscall.Nanosleep(&ts, nil) // a signal cuts it short; the caller looks at the clock
	}
}
