//go:build !race && !386 && !arm && !mips && !mipsle

package sys

import (
	"syscall"
	"unsafe"
)

// Read reads from a socket into p, which must not be empty. It tries once and does not tell the
// scheduler: a call that cannot block needs no other thread to take over. That it cannot is said
// each time: a hook may have had the socket block (os.File.Fd), and a thread that waits without
// the scheduler's knowledge may hold up all others. Plain alternative: syscall.Read (BenchmarkRead).
func Read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), syscall.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Write writes p, which must not be empty, to a socket and returns how much of it the kernel
// took. It tries once, as Read does.
func Write(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// WriteBoth writes a and then b, which must not be empty, to a socket by one call, and returns
// how much of them the kernel took. It tries once, as Read does.
func WriteBoth(fd uintptr, a, b []byte) (int, syscall.Errno) {
	parts := [2]syscall.Iovec{{Base: unsafe.SliceData(a)}, {Base: unsafe.SliceData(b)}}
	parts[0].SetLen(len(a))
	parts[1].SetLen(len(b))
	all := syscall.Msghdr{Iov: &parts[0], Iovlen: uint64(len(parts))}
	n, _, errno := syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&all)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
