package sys

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Interest in a descriptor, and what is reported of it. Reports are
// edge-triggered: each tells of a change.
const (
	Readable = unix.EPOLLIN
	Writable = unix.EPOLLOUT
	Hangup   = unix.EPOLLRDHUP | unix.EPOLLHUP
	Broken   = unix.EPOLLERR
)

// MostReports is how many reports a wait returns at most.
const MostReports = 256

// Poller waits for descriptors to become ready. It is for one goroutine.
type Poller struct {
	fd     int
	coarse bool // the kernel counts waits in milliseconds
	events [MostReports]unix.EpollEvent
}

// NewPoller opens a poller.
func NewPoller() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &Poller{fd: fd}, nil
}

// Close closes the poller, not the descriptors in it.
func (p *Poller) Close() error { return unix.Close(p.fd) }

// Add begins to watch fd. Its reports carry slot and generation.
func (p *Poller) Add(fd int, interest uint32, slot, generation int32) error {
	return p.control(unix.EPOLL_CTL_ADD, fd, interest, [2]int32{slot, generation})
}

// Rearm changes the interest in fd and reports at once what is ready.
func (p *Poller) Rearm(fd int, interest uint32, slot, generation int32) error {
	return p.control(unix.EPOLL_CTL_MOD, fd, interest, [2]int32{slot, generation})
}

func (p *Poller) control(op, fd int, interest uint32, token [2]int32) error {
	ev := unix.EpollEvent{Events: interest | unix.EPOLLRDHUP | unix.EPOLLET, Fd: token[0], Pad: token[1]}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.fd, op, fd, &ev))
}

// Event is the i-th report of the last wait.
func (p *Poller) Event(i int) (slot, generation int32, ready uint32) {
	ev := &p.events[i]
	return ev.Fd, ev.Pad, ev.Events
}

// Wait waits for reports, d at the longest, and returns their number. It may
// return none early. The scheduler is not told: the caller keeps its processor
// while it waits.
func (p *Poller) Wait(d time.Duration) int {
	if p.coarse {
		n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd),
			uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(d/time.Millisecond), 0, 0)
		return p.reports(n, e)
	}
	ts := [2]int64{int64(d / time.Second), int64(d % time.Second)} // 64 bits each on every machine
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	return p.reports(n, e)
}

func (p *Poller) reports(n uintptr, e syscall.Errno) int {
	if e == syscall.ENOSYS {
		p.coarse = true // Linux before 5.11
	}
	if e != 0 {
		return 0
	}
	return int(n)
}

// Recv reads from a non-blocking socket. The scheduler is not told.
func Recv(fd int, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	return int(n), e
}

// Inbox reads from stamped sockets. It is for one goroutine.
type Inbox struct {
	head    unix.Msghdr
	part    unix.Iovec
	control [128]byte
}

// Recv is like the function, and tells when the last of what it read arrived, in
// nanoseconds since 1970; 0 if the kernel did not note it.
func (in *Inbox) Recv(fd int, b []byte) (n int, arrived int64, e syscall.Errno) {
	in.part.Base = unsafe.SliceData(b)
	in.part.SetLen(len(b))
	in.head = unix.Msghdr{Iov: &in.part, Control: &in.control[0]}
	in.head.SetIovlen(1)
	in.head.SetControllen(len(in.control))
	r, _, e := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&in.head)), 0)
	if e != 0 {
		return 0, 0, e
	}
	return int(r), in.arrived(), 0
}

// arrived is the time in the control message that the kernel left, if it did.
func (in *Inbox) arrived() int64 {
	const size = int(unsafe.Sizeof(unix.Timespec{}))
	if int(in.head.Controllen) < unix.CmsgLen(size) {
		return 0
	}
	c := (*unix.Cmsghdr)(unsafe.Pointer(&in.control))
	if c.Level != unix.SOL_SOCKET || c.Type != unix.SO_TIMESTAMPNS {
		return 0
	}
	return (*unix.Timespec)(unsafe.Pointer(&in.control[unix.CmsgLen(0)])).Nano()
}

// Send writes to a non-blocking socket. The scheduler is not told.
func Send(fd int, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), e
}

// PreciseTimers makes the calling thread's waits end on time rather than when
// it suits the kernel: 50 µs later by default.
func PreciseTimers() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0))
}

// Pin keeps the calling thread on one CPU.
func Pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, &set))
}
