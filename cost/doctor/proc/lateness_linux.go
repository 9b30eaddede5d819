package proc

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Lateness returns how late the kernel's timers ring on a CPU that is busy, three in
// four of some that ring hz times a second, but no fewer than 99; 0 if that cannot be
// told. It takes a few such periods, which it spins. The quickest quarter is told
// apart because others may want the CPU at the same time.
//
// Note: on a virtual machine whose host rings for it that was 14 to 38 µs at 99 Hz
// from hour to hour, where a processor's own timer takes one or two.
func Lateness(hz int) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	const rings = 15
	period := time.Second / time.Duration(max(99, hz))
	var late [rings]time.Duration
	for i := range late {
		if late[i], err = ring(fd, period); err != nil {
			return 0
		}
	}
	slices.Sort(late[:])
	return late[rings/4]
}

// ring has a timer ring after d, spins until it does, and returns how late that was.
func ring(fd int, d time.Duration) (time.Duration, error) {
	begun := time.Now()
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil); err != nil {
		return 0, err
	}
	var rung [8]byte
	for {
		_, err := unix.Read(fd, rung[:])
		late := time.Since(begun) - d
		if err == nil || err != unix.EAGAIN && err != unix.EINTR || late > time.Second {
			return late, err
		}
	}
}
