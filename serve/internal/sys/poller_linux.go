package sys

import (
	"os"
	"syscall"
)

// Poller reports which of many sockets have something to tell. It waits as a
// goroutine does, without a thread of its own. Add and Remove may be called from
// any goroutine, Wait from one.
type Poller struct {
	fd     int
	file   *os.File
	conn   syscall.RawConn
	events [128]syscall.EpollEvent
}

// Event is one report. Each registration reports once.
type Event struct {
	FD  int32
	Tag int32 // as given to Add
}

// NewPoller opens a poller.
func NewPoller() (*Poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &Poller{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	p.conn, err = p.file.SyscallConn()
	if err != nil {
		p.file.Close()
		return nil, err
	}
	return p, nil
}

// Close ends Wait. The sockets stay open.
func (p *Poller) Close() error { return p.file.Close() }

// Add asks for one report of fd, in place of any asked for before: when its
// peer has gone, or, with readable, also when there is something to read.
func (p *Poller) Add(fd, tag int32, readable bool) error {
	const once = 1 << 30 // EPOLLONESHOT
	e := syscall.EpollEvent{Events: syscall.EPOLLRDHUP | once, Fd: fd, Pad: tag}
	if readable {
		e.Events |= syscall.EPOLLIN
	}
	err := syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_MOD, int(fd), &e)
	if err == syscall.ENOENT {
		err = syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, int(fd), &e)
	}
	return os.NewSyscallError("epoll_ctl", err)
}

// Wait calls report for what is ready, at least one thing. It returns an error
// once the poller is closed.
func (p *Poller) Wait(report func(Event)) error {
	n := 0
	var failed error
	err := p.conn.Read(func(fd uintptr) bool {
		n, failed = syscall.EpollWait(int(fd), p.events[:], 0)
		if failed == syscall.EINTR {
			n, failed = 0, nil
		}
		return n > 0 || failed != nil
	})
	if err == nil {
		err = os.NewSyscallError("epoll_wait", failed)
	}
	if err != nil {
		return err
	}
	for _, e := range p.events[:n] {
		report(Event{FD: e.Fd, Tag: e.Pad})
	}
	return nil
}
