//go:build linux

package sys_test

import (
	"net"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/internal/sys"
)

func TestReadable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	readable := func() (ok bool) {
		if err := raw.Control(func(fd uintptr) { ok = sys.Readable(fd) }); err != nil {
			t.Fatal(err)
		}
		return ok
	}
	backlog := func() (n int) {
		if err := raw.Control(func(fd uintptr) { n, err = sys.Backlog(fd) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if readable() {
		t.Error("a listener without connections is readable")
	}
	if n := backlog(); n != 0 || err != nil {
		t.Errorf("a listener without connections has %d, %v", n, err)
	}
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for range 1000 {
		if readable() {
			if n := backlog(); n != 1 || err != nil {
				t.Errorf("a listener with a connection has %d, %v", n, err)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("a listener with a connection is not readable")
}
