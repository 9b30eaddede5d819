//go:build linux

package serve_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// The ways to hold a connection by being slow: what is sent at once, and what
// then comes a byte at a time, if anything.
var slowWays = []struct {
	name     string
	orders   orders
	opening  string
	trickle  string // repeated
	most     int    // KiB of heap and stack that a connection may cost the server
	narrow   bool   // with the smallest receive buffer
	stream   bool   // by HTTP/2: what ends is the stream, see TestStreamsEnd
	lateRead bool   // the answer is read a byte at a time
}{
	{name: "never speaks", most: 24},
	{name: "head", opening: "GET / HTTP/1.1\r\nHost: a\r\nX-A: ", trickle: "a", most: 24},
	{name: "long head", opening: "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 60<<10), trickle: "a", most: 24 + 68},
	{name: "head at the limit", opening: "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 64<<10-30), most: 24 + 68},
	{name: "fields", opening: "GET / HTTP/1.1\r\nHost: a\r\n", trickle: "A: b\r\n", most: 24},
	{name: "body", opening: "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", trickle: "a", most: 64},
	{name: "chunks", opening: "POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", trickle: "1\r\na\r\n", most: 64},
	{name: "body that came well at first", opening: "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("a", 16<<10), most: 64},
	{name: "trailers", opening: "POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: ", trickle: "a", most: 64},
	{name: "answer", opening: "GET /big HTTP/1.1\r\nHost: a\r\n\r\n", most: 32, narrow: true, lateRead: true},
	{name: "pipelined answers", opening: pipelined(20) + "GET / HT", most: 32, narrow: true, lateRead: true},
	{name: "handshake", orders: orders{TLS: true}, opening: "\x16\x03\x01\x02\x00\x01\x00", trickle: "\x00", most: 32},
	{name: "preface", orders: orders{H2C: true}, opening: "PRI * HTTP/2.0\r\n", trickle: "", most: 24},
	{name: "body by HTTP/2", orders: orders{H2C: true}, opening: preface2 + settings2 + post2, trickle: data2, most: 96, stream: true},
	{name: "ten bodies by HTTP/2", orders: orders{H2C: true}, opening: preface2 + settings2 + posts2(10), trickle: data2, most: 96 + 9*64, narrow: true, stream: true},
	{name: "answer by HTTP/2", orders: orders{H2C: true}, opening: preface2 + noWindow2 + big2, trickle: ping2, most: 96, stream: true},
}

func pipelined(n int) (text string) {
	for range n {
		text += "GET /big HTTP/1.1\r\nHost: a\r\n\r\n"
	}
	return text
}

// posts2 begins n requests by HTTP/2.
func posts2(n int) (text string) {
	for i := range n {
		text += strings.Replace(post2, "\x00\x01\x83", "\x00"+string(rune(2*i+1))+"\x83", 1)
	}
	return text
}

// TestSlowMemory measures what a slow client costs a server with the default
// limits while it goes on slowly, and that others are served meanwhile.
func TestSlowMemory(t *testing.T) {
	n := 2000
	if raceEnabled || testing.Short() {
		n = 100
	}
	needFiles(t, n)
	for _, way := range slowWays {
		t.Run(way.name, func(t *testing.T) {
			if raceEnabled { // memory tells nothing then
				t.Parallel()
			}
			p := found(t, way.orders)
			serveOne(t, p.addr, way.orders.TLS)
			before := p.memory()
			n := n
			if way.narrow {
				n /= 10 // the kernel holds megabytes of each answer
			}
			conns := make([]net.Conn, n)
			for i := range conns {
				conns[i] = slowly(t, p.addr, way.narrow)
				if _, err := io.WriteString(conns[i], way.opening); err != nil {
					t.Fatal(err)
				}
			}
			if way.narrow {
				time.Sleep(200 * time.Millisecond) // until the server's writes stand
			}
			if way.trickle != "" {
				for range 3 {
					time.Sleep(300 * time.Millisecond)
					trickle(t, conns, way.trickle)
					serveOne(t, p.addr, way.orders.TLS)
				}
			}
			serveOne(t, p.addr, way.orders.TLS)
			each := (p.memory() - before) / n
			t.Logf("%d connections: %.1f KiB of heap and stacks each", n, float64(each)/1024)
			if !raceEnabled && each > way.most<<10 {
				t.Errorf("a connection costs %d bytes, want at most %d KiB", each, way.most)
			}
			for _, nc := range conns {
				nc.Close()
			}
		})
	}
}

// trickle sends text on each connection, none of which may have ended.
func trickle(t *testing.T, conns []net.Conn, text string) {
	t.Helper()
	for i, nc := range conns {
		if _, err := io.WriteString(nc, text); err != nil {
			t.Fatalf("connection %d has ended: %v", i, err)
		}
	}
}

// slowly connects, with the smallest receive buffer if narrow.
func slowly(t testing.TB, addr string, narrow bool) net.Conn {
	t.Helper()
	d := net.Dialer{}
	if narrow {
		d.Control = func(_, _ string, c syscall.RawConn) (err error) {
			c.Control(func(fd uintptr) {
				err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1)
			})
			return err
		}
	}
	nc, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(2 * long))
	return nc
}

// serveOne demands that a client is served.
func serveOne(t testing.TB, addr string, secure bool) {
	t.Helper()
	config := loopbackTLS()
	if !secure {
		config = nil
	}
	to, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := dialer(to, config)()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(2 * long))
	say(t, nc, "/")
	told(t, nc)
}

// TestSlowEnds lets clients go on slowly until the server has had enough, under
// short limits, while others are served.
func TestSlowEnds(t *testing.T) {
	for _, way := range slowWays {
		if way.stream {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			f := fortify(t, slowServer(way.orders))
			var slow sync.WaitGroup
			ended := make(chan struct{})
			for range 20 {
				nc := slowly(t, f.addr, way.narrow)
				slow.Go(func() {
					io.WriteString(nc, way.opening)
					if way.lateRead {
						sip(nc, ended)
						return
					}
					drip(t, nc, way.trickle)
				})
			}
			serveOne(t, f.addr, way.orders.TLS)
			if way.lateRead {
				time.Sleep(100 * time.Millisecond) // until they are served at all
				comes(t, "the server to end slow readers", func() bool { return connGoroutines() == 0 })
			}
			close(ended)
			slow.Wait()
			serveOne(t, f.addr, way.orders.TLS)
		})
	}
}

func slowServer(o orders) *serve.Server {
	s := &serve.Server{
		Handler:           outpostHandler(nil),
		ReadHeaderTimeout: 300 * time.Millisecond,
		Limits:            serve.Limits{StallTimeout: 300 * time.Millisecond, MinRate: 1000},
	}
	if o.TLS {
		s.TLSConfig = loopbackTLS()
	}
	if o.H2C {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
	}
	return s
}

// drip sends text now and then until the server closes the connection.
func drip(t *testing.T, nc net.Conn, text string) {
	for end := time.Now().Add(long); time.Now().Before(end); {
		if text != "" {
			io.WriteString(nc, text) // may fail: then reading tells why
		}
		nc.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := io.Copy(io.Discard, nc); !timedOut(err) {
			return
		}
	}
	t.Errorf("the server did not end a slow client")
}

// sip reads a byte now and then. That the server has ended the connection it
// would learn only once it has read all that came before.
func sip(nc net.Conn, ended <-chan struct{}) {
	b := make([]byte, 1)
	for {
		select {
		case <-ended:
			return
		case <-time.After(20 * time.Millisecond):
			nc.Read(b)
		}
	}
}

// TestFairIsServed holds clients that are slow, yet above the least rate, to be
// served to the end under the same limits.
func TestFairIsServed(t *testing.T) {
	s := slowServer(orders{})
	s.ReadHeaderTimeout, s.Limits.StallTimeout = time.Second, time.Second // a busy machine may keep a client from its work
	f := fortify(t, s)
	var fair sync.WaitGroup
	for range 5 {
		nc := f.dial()
		fair.Go(func() {
			io.WriteString(nc, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 15000\r\n\r\n")
			for range 75 {
				nc.Write(make([]byte, 200))
				time.Sleep(40 * time.Millisecond)
			}
			told(t, nc)
		})
		big := slowly(t, f.addr, true)
		fair.Go(func() {
			io.WriteString(big, "GET /big HTTP/1.0\r\n\r\n")
			time.Sleep(50 * time.Millisecond)
			some := make([]byte, 16<<10)
			for range 75 { // 3 s, longer than any limit
				if _, err := io.ReadFull(big, some); err != nil {
					t.Errorf("reading an answer slowly: %v", err)
					return
				}
				time.Sleep(40 * time.Millisecond)
			}
		})
	}
	fair.Wait()
	f.quiet()
}

// TestOwnDeadlinesRule holds a handler's own deadlines to take the place of the
// server's limits.
func TestOwnDeadlinesRule(t *testing.T) {
	s := slowServer(orders{})
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(long))
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Errorf("reading a body that stalls, under the handler's own deadline: %v", err)
		}
		io.WriteString(w, "ok")
	})
	f := fortify(t, s)
	nc := f.dial()
	io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
	time.Sleep(time.Second)
	io.WriteString(nc, "a")
	told(t, nc)
}
