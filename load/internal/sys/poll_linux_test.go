package sys_test

import (
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/internal/sockets"
	"github.com/tarehq/tare/load/internal/sys"
)

// await waits until the poller reports one of want for slot 7.
func await(t *testing.T, p *sys.Poller, want uint32) {
	t.Helper()
	for range 1000 {
		n := p.Wait(0)
		if n == 0 {
			n = p.Wait(10 * time.Millisecond)
		}
		for i := range n {
			slot, generation, ready := p.Event(i)
			if slot != 7 || generation != -3 {
				t.Fatalf("got a report of slot %d, generation %d, want 7 and -3", slot, generation)
			}
			if ready&want != 0 {
				return
			}
		}
	}
	t.Fatalf("no report of %#x", want)
}

func TestPoller(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6", "unix"} {
		t.Run(network, func(t *testing.T) {
			l := listen(t, network)
			defer l.Close()
			to := address(t, l)
			p, err := sys.NewPoller()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			fd, err := sys.Connect(&to)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Add(fd, sys.Readable|sys.Writable, 7, -3); err != nil {
				t.Fatal(err)
			}
			await(t, p, sys.Writable)
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 16)
			if n, e := sys.Recv(fd, buf); e != syscall.EAGAIN {
				t.Errorf("nothing sent: got %d bytes and %v, want EAGAIN", n, e)
			}
			if n, e := sys.Send(fd, []byte("ping")); n != 4 || e != 0 {
				t.Fatalf("sending 4 bytes: got %d and %v", n, e)
			}
			if _, err := io.ReadFull(c, buf[:4]); err != nil || string(buf[:4]) != "ping" {
				t.Errorf("the other side got %q and %v", buf[:4], err)
			}
			io.WriteString(c, "pong")
			await(t, p, sys.Readable)
			if n, e := sys.Recv(fd, buf); e != 0 || string(buf[:n]) != "pong" {
				t.Errorf("got %q and %v, want pong", buf[:n], e)
			}
			if err := p.Rearm(fd, sys.Readable|sys.Writable, 7, -3); err != nil {
				t.Fatal(err)
			}
			await(t, p, sys.Writable) // reported anew, though nothing changed
			c.Close()
			await(t, p, sys.Hangup)
			sys.Close(fd)
		})
	}
}

// What waits to be read arrived when it was sent.
func TestInbox(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6"} {
		t.Run(network, func(t *testing.T) {
			l := listen(t, network)
			defer l.Close()
			to := address(t, l)
			fd, err := sys.Connect(&to)
			if err != nil {
				t.Fatal(err)
			}
			defer sys.Close(fd)
			if err := sys.Stamp(fd); err != nil {
				t.Fatal(err)
			}
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var in sys.Inbox
			buf := make([]byte, 16)
			if n, at, e := in.Recv(fd, buf); n != 0 || at != 0 || e != syscall.EAGAIN {
				t.Errorf("nothing sent: got %d bytes at %d and %v, want EAGAIN", n, at, e)
			}
			const wait = 50 * time.Millisecond
			var at int64
			for range 20 { // the kernel may not have begun to note arrivals, or be busy
				before := time.Now()
				io.WriteString(c, "pong")
				sent := time.Now()
				time.Sleep(wait)
				var n int
				var e syscall.Errno
				if n, at, e = in.Recv(fd, buf); e != 0 || string(buf[:n]) != "pong" {
					t.Fatalf("got %q and %v, want pong", buf[:n], e)
				}
				if at != 0 && at < before.UnixNano() {
					t.Fatalf("arrived %v before it was sent", before.Sub(time.Unix(0, at)))
				}
				if at != 0 && at < sent.Add(wait/2).UnixNano() {
					return
				}
			}
			t.Errorf("arrived at %v, or that was not noted: want when it was sent, not when it was read, at %v", time.Unix(0, at), time.Now())
		})
	}
}

func TestDisordered(t *testing.T) {
	l := listen(t, "tcp4")
	defer l.Close()
	to := address(t, l)
	fd, err := sys.Connect(&to)
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := sys.Disordered(fd); n != 0 || !ok {
		t.Errorf("of a new connection: got %d, %v; want none, known (Linux 5.4 and later)", n, ok)
	}
	sys.Close(fd)
	if _, ok := sys.Disordered(fd); ok {
		t.Error("known of a socket that is closed")
	}
}

func TestConnectRefused(t *testing.T) {
	l := listen(t, "tcp4")
	to := address(t, l)
	l.Close()
	fd, err := sys.Connect(&to)
	if err != nil {
		if err != syscall.ECONNREFUSED {
			t.Errorf("got %v, want connection refused", err)
		}
		return
	}
	defer sys.Close(fd)
	p, err := sys.NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Add(fd, sys.Writable, 7, -3); err != nil {
		t.Fatal(err)
	}
	await(t, p, sys.Broken)
	if _, e := sys.Send(fd, []byte("x")); e != syscall.ECONNREFUSED {
		t.Errorf("sending: got %v, want connection refused", e)
	}
}

func listen(t *testing.T, network string) net.Listener {
	t.Helper()
	addr := map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0", "unix": sockets.Path(t)}[network]
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Skip(err)
	}
	return l
}

func address(t *testing.T, l net.Listener) sys.Address {
	t.Helper()
	if l.Addr().Network() == "unix" {
		return sys.Unix(l.Addr().String())
	}
	a, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return sys.TCP(a)
}
