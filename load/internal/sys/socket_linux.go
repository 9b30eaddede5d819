package sys

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Address is where a stream socket connects to. Connecting writes the kernel's
// form into it, so each goroutine needs its own copy.
type Address struct {
	family int
	inet4  unix.SockaddrInet4
	inet6  unix.SockaddrInet6
	local  unix.SockaddrUnix
}

// TCP is a TCP address.
func TCP(a netip.AddrPort) Address {
	ip := a.Addr().Unmap()
	if ip.Is4() {
		return Address{family: unix.AF_INET, inet4: unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}}
	}
	return Address{family: unix.AF_INET6, inet6: unix.SockaddrInet6{Port: int(a.Port()), ZoneId: zone(ip.Zone()), Addr: ip.As16()}}
}

// zone is the number of an interface given by name or number; 0 if there is
// none.
func zone(name string) uint32 {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n)
	}
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return 0
	}
	return uint32(ifi.Index)
}

// Unix is the address of a Unix socket.
func Unix(path string) Address {
	return Address{family: unix.AF_UNIX, local: unix.SockaddrUnix{Name: path}}
}

func (a *Address) sockaddr() unix.Sockaddr {
	switch a.family {
	case unix.AF_INET:
		return &a.inet4
	case unix.AF_INET6:
		return &a.inet6
	}
	return &a.local
}

// Connect opens a socket and begins to connect it, without waiting. A
// connection that then fails tells so when it is read from or written to.
func Connect(a *Address) (fd int, err error) {
	fd, err = unix.Socket(a.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if a.family != unix.AF_UNIX {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	if err := unix.Connect(fd, a.sockaddr()); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Stamp has the kernel note when what a socket receives arrived. If no other
// socket of the machine asked for that, it begins a moment later.
func Stamp(fd int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
}

// Disordered is how many segments a TCP connection received before one that goes
// before them; false if the kernel does not count them, as before Linux 5.4.
func Disordered(fd int) (n uint32, ok bool) {
	var info unix.TCPInfo
	size := uint32(unsafe.Sizeof(info))
	_, _, e := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	const least = unsafe.Offsetof(info.Rcv_ooopack) + unsafe.Sizeof(info.Rcv_ooopack)
	return info.Rcv_ooopack, e == 0 && uintptr(size) >= least
}

// Close closes a socket.
func Close(fd int) { unix.Close(fd) }
