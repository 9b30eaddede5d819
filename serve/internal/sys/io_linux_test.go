package sys_test

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/tarehq/tare/serve/internal/sys"
)

// sockets returns both ends of a connection; near takes little at once.
func sockets(t testing.TB) (near, far *net.TCPConn) {
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
	near, far = nc.(*net.TCPConn), other.(*net.TCPConn)
	near.SetWriteBuffer(4 << 10)
	return near, far
}

// TestWriteBoth has both parts be written as far as there is room.
func TestWriteBoth(t *testing.T) {
	near, far := sockets(t)
	raw, err := near.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	a, b := "head and ", strings.Repeat("body ", 1<<20)
	n := 0
	if err := raw.Write(func(fd uintptr) bool {
		var errno error
		n, errno = sys.WriteBoth(fd, []byte(a), []byte(b))
		if n == 0 {
			t.Error(errno)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if n <= len(a) || n >= len(a)+len(b) {
		t.Fatalf("the socket took %d bytes, want some of both parts", n)
	}
	got := make([]byte, n)
	if m, err := io.ReadFull(far, got); err != nil || string(got) != (a + b)[:n] {
		t.Errorf("%d bytes came, %v: not the %d that were written", m, err, n)
	}
}

// BenchmarkRead sends a byte and reads it, in the way of this package and that of syscall.
func BenchmarkRead(b *testing.B) {
	near, far := sockets(b)
	for _, way := range []struct {
		name        string
		write, read func(fd uintptr, p []byte) (int, syscall.Errno)
	}{
		{"sys", sys.Write, sys.Read},
		{"syscall", func(fd uintptr, p []byte) (int, syscall.Errno) {
			n, _ := syscall.Write(int(fd), p)
			return n, 0
		}, func(fd uintptr, p []byte) (int, syscall.Errno) {
			n, _ := syscall.Read(int(fd), p)
			return n, 0
		}},
	} {
		b.Run("call="+way.name, func(b *testing.B) {
			from, _ := near.SyscallConn()
			to, _ := far.SyscallConn()
			p := make([]byte, 1)
			from.Control(func(out uintptr) {
				to.Control(func(in uintptr) {
					for b.Loop() {
						n, _ := way.write(out, p)
						if m, _ := way.read(in, p); n != 1 || m != 1 {
							b.Fatal("the byte did not come")
						}
					}
				})
			})
		})
	}
}
