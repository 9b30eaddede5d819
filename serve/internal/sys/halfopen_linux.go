package sys

import (
	"encoding/binary"
	"syscall"
)

// HalfOpen reports whether a listening socket of TCP has connections under way: their
// clients have an answer, but what completes them the kernel has not processed. It counts
// those of other sockets at the same port, too. It asks by sock_diag(7) in the network
// namespace of the process, and returns an error where nobody answers that.
//
// Such a connection is first under way and then, before it is no longer that, among those
// that Readable knows. So who asks HalfOpen first and Readable then misses none.
func HalfOpen(fd uintptr) (bool, error) {
	family, port, err := boundTo(fd)
	if err != nil {
		return false, err
	}
	diag, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_INET_DIAG)
	if err != nil {
		return false, err
	}
	defer syscall.Close(diag)
	if err := syscall.Sendto(diag, halfOpenRequest(family, port), 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return false, err
	}
	// One message tells: of a socket that was found, of the end of them, or of an error.
	var answer [syscall.NLMSG_HDRLEN + 4]byte
	n, _, err := syscall.Recvfrom(diag, answer[:], syscall.MSG_DONTWAIT)
	if err != nil {
		return false, err
	}
	if n < len(answer) {
		return false, syscall.EBADMSG
	}
	switch binary.NativeEndian.Uint16(answer[4:]) {
	case sockDiagByFamily:
		return true, nil
	case syscall.NLMSG_DONE:
		return false, nil
	case syscall.NLMSG_ERROR:
		return false, syscall.Errno(-int32(binary.NativeEndian.Uint32(answer[syscall.NLMSG_HDRLEN:])))
	}
	return false, syscall.EBADMSG
}

const sockDiagByFamily = 20 // the type of requests and answers

// halfOpenRequest asks for all sockets of TCP at a port that are in a handshake:
// struct nlmsghdr and struct inet_diag_req_v2.
func halfOpenRequest(family byte, port int) []byte {
	const size = syscall.NLMSG_HDRLEN + 56
	const receivedSYN, requested = 1 << 3, 1 << 12 // TCP_SYN_RECV, TCP_NEW_SYN_RECV
	b := make([]byte, size)
	binary.NativeEndian.PutUint32(b, size)
	binary.NativeEndian.PutUint16(b[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(b[6:], syscall.NLM_F_REQUEST|syscall.NLM_F_DUMP)
	b[16], b[17] = family, syscall.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[20:], receivedSYN|requested)
	binary.BigEndian.PutUint16(b[24:], uint16(port)) // of the server's end
	return b
}

// boundTo returns where a socket of IP listens.
func boundTo(fd uintptr) (family byte, port int, err error) {
	addr, err := syscall.Getsockname(int(fd))
	switch a := addr.(type) {
	case *syscall.SockaddrInet4:
		return syscall.AF_INET, a.Port, nil
	case *syscall.SockaddrInet6:
		return syscall.AF_INET6, a.Port, nil
	}
	if err == nil {
		err = syscall.EAFNOSUPPORT
	}
	return 0, 0, err
}
