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
	if readable() {
		t.Error("a listener without connections is readable")
	}
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for range 1000 {
		if readable() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("a listener with a connection is not readable")
}
