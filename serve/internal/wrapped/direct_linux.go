package wrapped

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tarehq/tare/serve/internal/sys"
)

// direct is a TCP connection that is read and written by system calls which do not tell the
// scheduler: they cannot block. Waiting is the runtime's, as for every net.Conn.
type direct struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
	torn    atomic.Pointer[error] // of a write
}

// transfer is one way of a connection.
type transfer struct {
	mu    sync.Mutex
	p     []byte
	n     int
	errno syscall.Errno
	step  func(fd uintptr) bool // made once
}

// Direct returns a connection for TLS to be spoken on. Where nc is TCP's, it is one whose
// reads and writes do not tell the scheduler, else nc. A call that tells it wakes the thread
// that watches over threads (sysmon), which sleeps deeply while nothing runs.
func Direct(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nc
	}
	d := &direct{TCPConn: tcp, raw: raw}
	d.in.step, d.out.step = d.in.read, d.out.write
	return d
}

// NetConn returns the connection as net has it.
func (d *direct) NetConn() net.Conn { return d.TCPConn }

func (d *direct) socket() syscall.RawConn { return d.raw }

func (d *direct) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return d.TCPConn.Read(p)
	}
	n, err := d.in.move(p, d.raw.Read)
	switch {
	case err != nil:
		return n, d.failure("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write writes nothing more after an error. A record of TLS is cut off or missing then, and the
// alert that ends a connection would be read as the rest of it: "bad record MAC".
func (d *direct) Write(p []byte) (int, error) {
	if torn := d.torn.Load(); torn != nil {
		return 0, *torn
	}
	n, err := d.out.move(p, d.raw.Write)
	if err != nil {
		err = d.failure("write", err)
		d.torn.Store(&err)
	}
	return n, err
}

// move has wait call the step until that is done with p.
func (t *transfer) move(p []byte, wait func(step func(fd uintptr) bool) error) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p, t.n, t.errno = p, 0, 0
	err := wait(t.step)
	t.p = nil
	if err == nil && t.errno != 0 {
		err = t.errno
	}
	return t.n, err
}

func (t *transfer) read(fd uintptr) bool {
	for {
		n, errno := sys.Read(fd, t.p)
		switch errno {
		case 0:
			t.n = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		default:
			t.errno = errno
		}
		return true
	}
}

func (t *transfer) write(fd uintptr) bool {
	for t.n < len(t.p) {
		n, errno := sys.Write(fd, t.p[t.n:])
		switch errno {
		case 0:
			t.n += n
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			t.errno = errno
			return true
		}
	}
	return true
}

// failure returns an error as the connection's own reads and writes have it.
func (d *direct) failure(op string, err error) error {
	switch e := err.(type) {
	case *net.OpError: // its operation is that of a RawConn
		err = e.Err
	case syscall.Errno:
		err = os.NewSyscallError(op, e)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: d.LocalAddr(), Addr: d.RemoteAddr(), Err: err}
}
