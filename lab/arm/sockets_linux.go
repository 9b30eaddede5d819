package arm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// Lengths and offsets of linux/inet_diag.h.
const (
	diagByFamily  = 20 // SOCK_DIAG_BY_FAMILY
	headerLen     = unix.SizeofNlMsghdr
	requestLen    = headerLen + 56 // struct inet_diag_req_v2
	requestStates = headerLen + 4
	requestSport  = headerLen + 8
	answerState   = 1 // in struct inet_diag_msg
	answerSport   = 4
	answerLen     = 72
)

// Sockets counts the TCP sockets, IPv4 and IPv6, whose local port is the
// arm's, those in TIME_WAIT among them. A connection from this machine has two
// ends; only the arm's is counted.
func (a *Process) Sockets() (Sockets, error) {
	if a.cmd == nil {
		return nil, fmt.Errorf("counting sockets: %w", errNoProcess)
	}
	_, text, err := net.SplitHostPort(a.addr)
	if err != nil {
		return nil, fmt.Errorf("counting sockets: %w", err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("counting sockets: %w", err)
	}
	n := Sockets{}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if err := n.countPort(family, uint16(port)); err != nil {
			return nil, fmt.Errorf("counting sockets: %w", err)
		}
	}
	return n, nil
}

// countPort asks the kernel by sock_diag(7). Unlike /proc/net/tcp it filters by
// port itself, which matters beside many thousand connections.
func (n Sockets) countPort(family byte, port uint16) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return fmt.Errorf("this kernel is built without INET_DIAG: %w", ErrNotSupported)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return err
	}
	if err := unix.Sendto(fd, diagRequest(family, port), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		got, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if done, err := n.parse(buf[:got], port); done || err != nil {
			return err
		}
	}
}

func diagRequest(family byte, port uint16) []byte {
	b := make([]byte, requestLen)
	binary.NativeEndian.PutUint32(b[0:], requestLen)
	binary.NativeEndian.PutUint16(b[4:], diagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b[headerLen], b[headerLen+1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[requestStates:], ^uint32(0))
	binary.BigEndian.PutUint16(b[requestSport:], port)
	return b
}

// parse counts the sockets in a datagram of answers and reports whether it was
// the last.
func (n Sockets) parse(b []byte, port uint16) (done bool, err error) {
	for len(b) >= headerLen {
		size := int(binary.NativeEndian.Uint32(b))
		if size < headerLen || size > len(b) {
			return false, errors.New("malformed netlink message")
		}
		body := b[headerLen:size]
		switch binary.NativeEndian.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			if len(body) < 4 {
				return false, errors.New("malformed netlink error")
			}
			errno := unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
			if errno == unix.ENOENT {
				return false, fmt.Errorf("the kernel's module tcp_diag is not loaded: %w", ErrNotSupported)
			}
			return false, errno
		case diagByFamily:
			if len(body) < answerLen {
				return false, errors.New("malformed sock_diag answer")
			}
			if binary.BigEndian.Uint16(body[answerSport:]) == port {
				n[stateName(body[answerState])]++
			}
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return false, nil
}

// stateName is the kernel's name of a state of enum tcp_state.
func stateName(state byte) string {
	names := [...]string{1: "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT",
		"CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING", "SYN_RECV"}
	if int(state) < len(names) && state > 0 {
		return names[state]
	}
	return strconv.Itoa(int(state))
}
