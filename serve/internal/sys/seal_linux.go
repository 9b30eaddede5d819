//go:build !386 && !s390x

package sys

import (
	"errors"
	"syscall"
	"unsafe"
)

// sealed drops TCP packets with SYN. It is read from the TCP header on: what a socket's
// filter sees begins there.
var sealed = [...]syscall.SockFilter{
	{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: 13}, // the flags
	{Code: syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K, K: 0x02, Jt: 1},
	{Code: syscall.BPF_RET | syscall.BPF_K, K: 1 << 18}, // that is, all of it
	{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
}

// Seal has a listening socket drop the first packet of new connections. Those under way
// are still completed, but soon what there is to accept is all there will be. The client
// of a dropped packet repeats it after a second.
//
// The filter stays with the socket, also in other processes that have it, until Unseal.
// Sockets of other protocols than TCP, such as MPTCP, have no use for it, and get an error.
func Seal(fd uintptr) error {
	if p, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_PROTOCOL); err != nil || p != syscall.IPPROTO_TCP {
		return errors.Join(errors.ErrUnsupported, err)
	}
	prog := syscall.SockFprog{Len: uint16(len(sealed)), Filter: &sealed[0]}
	_, _, errno := syscall.Syscall6(syscall.SYS_SETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_ATTACH_FILTER,
		uintptr(unsafe.Pointer(&prog)), unsafe.Sizeof(prog), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Duplicate returns another descriptor of the same socket.
func Duplicate(fd uintptr) (int, error) {
	d, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(d), nil
}

// Unseal ends what Seal began, and closes fd. If no other descriptor has the socket, that
// ends it with next to nothing between: a connection that the kernel begins there is reset.
// So the thread begins with a new share of the processor, and the calls tell the runtime
// nothing: they do not block.
func Unseal(fd int) {
	var none int32
	syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), syscall.SOL_SOCKET, syscall.SO_DETACH_FILTER,
		uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none), 0)
	syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0)
}
