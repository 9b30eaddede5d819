//go:build linux

package serve_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// lounge is a server and connections to it that have been answered once.
type lounge struct {
	*fort
	conns  []net.Conn
	theirs chan net.Conn // the same as the server has them
	ended  atomic.Int32  // connections that have ended for the server
}

func openLounge(t *testing.T, n int, s *serve.Server) *lounge {
	t.Helper()
	l := &lounge{theirs: make(chan net.Conn, 2*n)}
	s.Handler = http.HandlerFunc(stateHandler)
	s.ConnState = func(nc net.Conn, st http.ConnState) {
		switch st {
		case http.StateNew:
			l.theirs <- nc
		case http.StateClosed:
			l.ended.Add(1)
		}
	}
	l.fort = fortify(t, s)
	for range n {
		nc := l.dial()
		answeredOnce(t, nc)
		l.conns = append(l.conns, nc)
	}
	return l
}

func (l *lounge) park() {
	l.t.Helper()
	comes(l.t, "all connections to be parked", func() bool { return connGoroutines() == 0 })
}

func everyParking(t *testing.T, f func(t *testing.T, s *serve.Server)) {
	each(t, func(t *testing.T, reuse bool) {
		for name, config := range map[string]*tls.Config{"tcp": nil, "tls": loopbackTLS()} {
			t.Run(name, func(t *testing.T) { f(t, &serve.Server{Reuse: reuse, TLSConfig: config}) })
		}
	})
}

// TestParkedAnswer parks connections, asks on each again, and again.
func TestParkedAnswer(t *testing.T) {
	everyParking(t, func(t *testing.T, s *serve.Server) {
		l := openLounge(t, 50, s)
		for range 2 {
			l.park()
			for _, nc := range l.conns {
				answeredOnce(t, nc)
			}
		}
		if n := l.ended.Load(); n != 0 {
			t.Errorf("%d connections were closed, want none", n)
		}
		l.quiet()
	})
}

// TestParkedInPieces wakes a parked connection with a part of a request.
func TestParkedInPieces(t *testing.T) {
	everyParking(t, func(t *testing.T, s *serve.Server) {
		l := openLounge(t, 5, s)
		l.park()
		for _, nc := range l.conns {
			for _, b := range []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n") {
				if _, err := nc.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
			told(t, nc)
		}
		l.quiet()
	})
}

// TestParkedGone has clients leave: the server must not keep their connections.
func TestParkedGone(t *testing.T) {
	for name, leave := range map[string]func(nc net.Conn){
		"closed":      func(nc net.Conn) { nc.Close() },
		"half closed": func(nc net.Conn) { nc.(interface{ CloseWrite() error }).CloseWrite() },
		"reset":       reset,
	} {
		t.Run(name, func(t *testing.T) {
			everyParking(t, func(t *testing.T, s *serve.Server) {
				l := openLounge(t, 20, s)
				l.park()
				for _, nc := range l.conns {
					leave(nc)
				}
				comes(t, "the server to close its side", func() bool { return int(l.ended.Load()) == len(l.conns) })
				l.quiet()
			})
		})
	}
}

// reset closes nc with a reset.
func reset(nc net.Conn) {
	if c, ok := nc.(*tls.Conn); ok {
		nc = c.NetConn()
	}
	nc.(*net.TCPConn).SetLinger(0)
	nc.Close()
}

func TestParkedIdleTimeout(t *testing.T) {
	everyParking(t, func(t *testing.T, s *serve.Server) {
		s.IdleTimeout = 800 * time.Millisecond
		l := openLounge(t, 20, s)
		l.park()
		comes(t, "the idle time-out", func() bool { return int(l.ended.Load()) == len(l.conns) })
		for _, nc := range l.conns {
			nc.SetReadDeadline(time.Now().Add(long))
			if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("after the idle time-out: %v, want the connection's end", err)
			}
		}
		l.quiet()
	})
}

// TestParkedClosedByHook closes parked connections behind the server's back, as
// a ConnState hook may. The server must notice long before the idle time-out,
// and tell so.
func TestParkedClosedByHook(t *testing.T) {
	everyParking(t, func(t *testing.T, s *serve.Server) {
		s.IdleTimeout = 10 * long
		l := openLounge(t, 20, s)
		l.park()
		for range l.conns {
			(<-l.theirs).Close()
		}
		for range l.conns { // on the same descriptors
			answeredOnce(t, l.dial())
		}
		comes(t, "the server to notice", func() bool { return int(l.ended.Load()) == len(l.conns) })
		l.quiet()
	})
}

// TestClosedByHookWhileHandled closes a connection behind the server's back while
// its handler waits. The handler is told, as http.Server's is.
func TestClosedByHookWhileHandled(t *testing.T) {
	for name, config := range map[string]*tls.Config{"tcp": nil, "tls": loopbackTLS()} {
		t.Run(name, func(t *testing.T) {
			active, told := make(chan net.Conn, 1), make(chan struct{})
			f := fortify(t, &serve.Server{
				TLSConfig: config,
				ConnState: func(nc net.Conn, s http.ConnState) {
					if s == http.StateActive {
						active <- nc
					}
				},
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					(<-active).Close()
					select {
					case <-r.Context().Done():
						close(told)
					case <-time.After(long):
					}
				}),
			})
			nc := f.dial()
			say(t, nc, "/")
			select {
			case <-told:
			case <-time.After(2 * long):
				t.Error("the handler was not told")
			}
		})
	}
}

// needFiles skips the test where there are too few descriptors for n connections.
func needFiles(t *testing.T, n int) {
	t.Helper()
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < uint64(n)*5/4 {
		t.Skipf("%d descriptors (%v) are too few for %d connections", files.Cur, err, n)
	}
}

// TestIdleMemory measures the resident memory that an idle connection costs a
// server in a process of its own.
func TestIdleMemory(t *testing.T) {
	n := 10000
	if raceEnabled || testing.Short() {
		n = 500
	}
	needFiles(t, n)
	for _, reuse := range []bool{false, true} {
		p := found(t, orders{Reuse: reuse})
		for range 200 {
			serveOne(t, p.addr, false)
		}
		before := p.resident()
		conns := make([]net.Conn, n)
		for i := range conns {
			conns[i] = p.dial()
			answeredOnce(t, conns[i])
		}
		comes(t, "the goroutines to be few", func() bool { return p.goroutines() < 20 })
		p.resident()
		grown := (p.resident() - before) / n
		t.Logf("reuse %v: %d idle connections: %.2f KiB of resident memory each, %.2f KiB of heap and stacks",
			reuse, n, float64(grown)/1024, float64(p.memory())/float64(n)/1024)
		if !raceEnabled && n == 10000 && grown > 3<<10 {
			t.Errorf("an idle connection costs %d bytes of resident memory, want at most 3 KiB", grown)
		}
		for _, nc := range conns[:n/10] {
			answeredOnce(t, nc)
		}
		for _, nc := range conns {
			nc.Close()
		}
	}
}

// TestBurstMemory opens many connections at once and asks on each.
// Ten seconds later, without a collection that the test asks for, each costs little.
// TARE_BURST is the number of connections.
func TestBurstMemory(t *testing.T) {
	const most = 5 << 9 // 2.5 KiB
	n := number(t, "TARE_BURST", 10000)
	if raceEnabled || testing.Short() {
		n = 500
	}
	rest := 10 * time.Second
	if raceEnabled { // and memory tells nothing
		rest = time.Second
	}
	needFiles(t, n)
	for _, reuse := range []bool{false, true} {
		p := found(t, orders{Reuse: reuse})
		for range 200 {
			serveOne(t, p.addr, false)
		}
		before := p.resident()
		conns := p.burst(n)
		peak := p.status("VmHWM:")
		time.Sleep(rest)
		grown := (p.status("VmRSS:") - before) / n
		t.Logf("reuse %v: a burst of %d connections: %.2f KiB of resident memory each after %s, %.2f MiB of all at the peak",
			reuse, n, float64(grown)/1024, rest, float64(peak)/(1<<20))
		if !raceEnabled && n >= 10000 && grown > most {
			t.Errorf("after a burst an idle connection costs %d bytes of resident memory, want at most %d", grown, most)
		}
		for _, nc := range conns {
			nc.Close()
		}
	}
}

// TestBurstInParts is TestBurstMemory where some of the connections come seconds after the
// others, as on a busy machine.
func TestBurstInParts(t *testing.T) {
	const most = 5 << 9
	n := 10000
	if raceEnabled || testing.Short() {
		n = 500
	}
	needFiles(t, n)
	p := found(t, orders{})
	for range 200 {
		serveOne(t, p.addr, false)
	}
	before := p.resident()
	p.burst(n - n/11)
	time.Sleep(4 * time.Second)
	p.burst(n / 11)
	time.Sleep(4 * time.Second)
	grown := (p.status("VmRSS:") - before) / n
	t.Logf("a burst of %d connections in two parts: %.2f KiB of resident memory each", n, float64(grown)/1024)
	if !raceEnabled && n >= 10000 && grown > most {
		t.Errorf("after a burst in parts an idle connection costs %d bytes of resident memory, want at most %d", grown, most)
	}
}

// burst opens n connections, asks on each, and then reads the answers.
func (p *outpost) burst(n int) []net.Conn {
	p.t.Helper()
	conns := make([]net.Conn, n)
	var opened, asked sync.WaitGroup
	const hands = 8
	for h := range hands {
		opened.Add(1)
		asked.Go(func() {
			for i := h; i < n; i += hands {
				conns[i] = p.dialFrom(byte(i / 20000)) // each address has so many ports
				io.WriteString(conns[i], "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			}
			opened.Done()
			opened.Wait()
			for i := h; i < n; i += hands {
				if err := hearOK(bufio.NewReader(conns[i])); err != nil {
					p.t.Errorf("connection %d: %v", i, err)
				}
			}
		})
	}
	asked.Wait()
	return conns
}

// dialFrom connects from one of the many addresses that are this server's alone: ports of
// earlier clients stay taken for a minute. It panics where it fails: a goroutine of the
// test may call it.
func (p *outpost) dialFrom(host byte) net.Conn {
	port := netip.MustParseAddrPort(p.addr).Port()
	nc, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(port>>8), byte(port), host)}}).Dial("tcp", p.addr)
	if err != nil {
		panic(err)
	}
	p.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(4 * long))
	return nc
}

// TestBusyMemory has 5,000 clients ask without pause: the process at its largest.
func TestBusyMemory(t *testing.T) {
	const most = 90 << 20
	n := 5000
	if raceEnabled || testing.Short() {
		n = 500
	}
	needFiles(t, n)
	for _, reuse := range []bool{false, true} {
		p := found(t, orders{Reuse: reuse})
		conns := p.burst(n)
		var asking sync.WaitGroup
		for _, nc := range conns {
			asking.Go(func() {
				br := bufio.NewReaderSize(nc, 256)
				for range 10 {
					io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
					if err := hearOK(br); err != nil {
						t.Errorf("a request of many: %v", err)
						return
					}
				}
			})
		}
		asking.Wait()
		peak := p.status("VmHWM:")
		t.Logf("reuse %v: %d busy connections: %.1f MiB at the peak", reuse, n, float64(peak)/(1<<20))
		if !raceEnabled && peak > most {
			t.Errorf("%d busy connections take %d bytes of resident memory at the peak, want at most %d", n, peak, most)
		}
		for _, nc := range conns {
			nc.Close()
		}
	}
}
