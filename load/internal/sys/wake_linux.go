package sys

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// Waker has a poller report when another goroutine asks for it. Wake is safe for
// concurrent use.
type Waker struct{ fd int }

// NewWaker opens a waker. What p reports of it carries slot, and generation 0.
func NewWaker(p *Poller, slot int32) (*Waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	if err := p.Add(fd, Readable, slot, 0); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Waker{fd}, nil
}

// Wake has the poller report. It waits for nothing: reports are of changes, so that
// nobody has to read what it writes.
func (w *Waker) Wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(w.fd, one[:])
}

// Close closes the waker. Nobody wakes any more.
func (w *Waker) Close() { unix.Close(w.fd) }
