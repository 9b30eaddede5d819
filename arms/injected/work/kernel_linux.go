package work

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// threadCPU returns the CPU time of the thread that asks; 0 if that cannot be told.
func threadCPU() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// thread returns which thread asks; 0 if that cannot be told.
func thread() int { return unix.Gettid() }

// pipe makes one as a service's standard error often is: who writes waits in the
// kernel, not in the runtime's poller. It holds a page, so that it is soon full.
func pipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, os.Getpagesize()) // a larger one does too
	return os.NewFile(uintptr(fds[0]), "log's reader"), os.NewFile(uintptr(fds[1]), "log"), nil
}

// sleep may return early, upon a signal.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}
