package wrapped_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/internal/wrapped"
)

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return nc.(*net.TCPConn), other.(*net.TCPConn)
}

// TestDirectTorn writes on after a write was cut short: TLS is spoken on it, whose stream ends there.
func TestDirectTorn(t *testing.T) {
	near, far := pair(t)
	nc := wrapped.Direct(near)
	nc.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	written, cut := nc.Write(make([]byte, 64<<20))
	nc.SetWriteDeadline(time.Time{})
	go func() {
		far.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // whatever becomes of the write
		io.Copy(io.Discard, far)
	}()
	if n, err := nc.Write([]byte("on")); n != 0 || err != cut || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after a write of %d bytes, %v, the next took %d, %v, want 0 and the same error", written, cut, n, err)
	}
}

// TestDirect has a connection do what TCP's own does, errors and their words included.
func TestDirect(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(nc net.Conn, far *net.TCPConn) (int, error)
	}{
		{"read", func(nc net.Conn, far *net.TCPConn) (int, error) {
			far.Write([]byte("here"))
			return nc.Read(make([]byte, 10))
		}},
		{"read what comes later", func(nc net.Conn, far *net.TCPConn) (int, error) {
			time.AfterFunc(20*time.Millisecond, func() { far.Write([]byte("later")) })
			return nc.Read(make([]byte, 10))
		}},
		{"read nothing", func(nc net.Conn, far *net.TCPConn) (int, error) { return nc.Read(nil) }},
		{"read to the end", func(nc net.Conn, far *net.TCPConn) (int, error) {
			far.Close()
			return nc.Read(make([]byte, 10))
		}},
		{"read of a connection that was reset", func(nc net.Conn, far *net.TCPConn) (int, error) {
			far.SetLinger(0)
			far.Close()
			return nc.Read(make([]byte, 10))
		}},
		{"read in time", func(nc net.Conn, far *net.TCPConn) (int, error) {
			nc.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			return nc.Read(make([]byte, 10))
		}},
		{"read until closed", func(nc net.Conn, far *net.TCPConn) (int, error) {
			time.AfterFunc(20*time.Millisecond, func() { nc.Close() })
			return nc.Read(make([]byte, 10))
		}},
		{"write nothing", func(nc net.Conn, far *net.TCPConn) (int, error) { return nc.Write(nil) }},
		{"write when closed", func(nc net.Conn, far *net.TCPConn) (int, error) {
			nc.Close()
			return nc.Write([]byte("late"))
		}},
		{"write after the other end was reset", func(nc net.Conn, far *net.TCPConn) (int, error) {
			far.SetLinger(0)
			far.Close()
			nc.Read(make([]byte, 1)) // then it has been seen
			return nc.Write([]byte("late"))
		}},
		{"write in time", func(nc net.Conn, far *net.TCPConn) (int, error) {
			nc.SetWriteDeadline(time.Now().Add(-time.Second))
			return nc.Write([]byte("late"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			outcome := func(direct bool) string {
				near, far := pair(t)
				nc := net.Conn(near)
				if direct {
					nc = wrapped.Direct(near)
				}
				n, err := test.do(nc, far)
				text := fmt.Sprintf("%d, %T", n, err)
				if e, ok := err.(*net.OpError); ok {
					text += fmt.Sprintf(": %s %s, %v to %v, %T %v, timeout %v", e.Op, e.Net, e.Source == nil, e.Addr == nil, e.Err, e.Err, e.Timeout())
				} else if err != nil {
					text += ": " + err.Error()
				}
				return text
			}
			if got, want := outcome(true), outcome(false); got != want {
				t.Errorf("%s, want as TCP's own: %s", got, want)
			}
		})
	}
}

// TestDirectTakesTurns has more be written than a socket takes at once, both ways at the same
// time.
func TestDirectTakesTurns(t *testing.T) {
	near, far := pair(t)
	ends := []net.Conn{wrapped.Direct(near), wrapped.Direct(far)}
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB
	wrote := make(chan error, len(ends))
	for _, nc := range ends {
		go func() {
			n, err := nc.Write(sent)
			if err == nil && n != len(sent) {
				err = fmt.Errorf("%d bytes were written without an error", n)
			}
			wrote <- err
		}()
	}
	read := make(chan error, len(ends))
	for _, nc := range ends {
		go func() {
			got := make([]byte, len(sent))
			_, err := io.ReadFull(nc, got)
			if err == nil && !bytes.Equal(got, sent) {
				err = fmt.Errorf("other bytes came than were written")
			}
			read <- err
		}()
	}
	for range ends {
		for _, err := range []error{<-wrote, <-read} {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// TestDirectIsSeen has a connection show the socket, and TCP's own connection.
func TestDirectIsSeen(t *testing.T) {
	near, _ := pair(t)
	nc := wrapped.Direct(near)
	if runtime.GOOS == "linux" && nc == net.Conn(near) {
		t.Error("it is TCP's own")
	}
	if wrapped.Socket(nc) == nil {
		t.Error("its socket is not seen")
	}
	if runtime.GOOS == "linux" && wrapped.Conn(nc) != net.Conn(near) {
		t.Errorf("it wraps %v, want TCP's own connection", wrapped.Conn(nc))
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if wrapped.Direct(a) != a {
		t.Error("what is not TCP's is another connection then")
	}
}
