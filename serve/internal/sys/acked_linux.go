//go:build !386 && !s390x

package sys

import (
	"syscall"
	"unsafe"
)

// Acked returns how many bytes the peer of a TCP connection has acknowledged
// since it was opened (tcpi_bytes_acked of tcp_info(7)).
func Acked(fd uintptr) (uint64, error) {
	const offset = 120
	var info [offset + 8]byte
	size := uint32(len(info))
	_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	if int(size) < len(info) {
		return 0, syscall.ENOSYS
	}
	return *(*uint64)(unsafe.Pointer(&info[offset])), nil
}
