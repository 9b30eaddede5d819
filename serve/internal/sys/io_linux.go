//go:build !race

package sys

import (
	"syscall"
	"unsafe"
)

// Read reads from a non-blocking descriptor into p, which must not be empty.
// It tries once and does not tell the scheduler: a call that cannot block needs
// no other thread to take over. Plain alternative: syscall.Read; the benchmark
// Read beside this file shows the ratio.
func Read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Write writes p, which must not be empty, to a non-blocking descriptor and
// returns how much of it the kernel took. It tries once, as Read does.
func Write(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// WriteBoth writes a and then b, which must not be empty, to a non-blocking descriptor by
// one call, and returns how much of them the kernel took. It tries once, as Read does.
func WriteBoth(fd uintptr, a, b []byte) (int, syscall.Errno) {
	parts := [2]syscall.Iovec{{Base: unsafe.SliceData(a)}, {Base: unsafe.SliceData(b)}}
	parts[0].SetLen(len(a))
	parts[1].SetLen(len(b))
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&parts)), uintptr(len(parts)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
