//go:build !386 && !s390x

package sys

import (
	"syscall"
	"unsafe"
)

// Acked returns how many bytes the peer of a TCP connection has acknowledged
// since it was opened (tcpi_bytes_acked of tcp_info(7)).
func Acked(fd uintptr) (uint64, error) {
	info, err := tcpInfo(fd)
	return info.bytesAcked, err
}

// Moved returns how many bytes have gone over a TCP connection since it was
// opened: acknowledged by the peer, or received (tcpi_bytes_received).
func Moved(fd uintptr) (uint64, error) {
	info, err := tcpInfo(fd)
	return info.bytesAcked + info.bytesReceived, err
}

// Unacked returns how many bytes of what was written to a TCP connection its peer
// has yet to acknowledge, sent or not (SIOCOUTQ of tcp(7)).
func Unacked(fd uintptr) (int, error) {
	var n int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Backlog returns how many connections a TCP listener has that nobody has
// accepted yet (tcpi_unacked, which for a listener means that).
func Backlog(fd uintptr) (int, error) {
	info, err := tcpInfo(fd)
	return int(info.unacked), err
}

// tcpInformation is the part of struct tcp_info that is of use here.
type tcpInformation struct {
	_             [24]byte
	unacked       uint32
	_             [92]byte
	bytesAcked    uint64
	bytesReceived uint64
}

func tcpInfo(fd uintptr) (tcpInformation, error) {
	var info tcpInformation
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return tcpInformation{}, errno
	}
	if uintptr(size) < unsafe.Sizeof(info) {
		return tcpInformation{}, syscall.ENOSYS
	}
	return info, nil
}
