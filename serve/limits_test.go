//go:build linux

package serve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// say sends a request for path.
func say(t testing.TB, nc net.Conn, path string) {
	t.Helper()
	if _, err := io.WriteString(nc, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

// told reads one answer and fails the test unless it is 200 and "ok".
func told(t testing.TB, nc net.Conn) {
	t.Helper()
	if err := hearOK(bufio.NewReader(nc)); err != nil {
		t.Fatal(err)
	}
}

func hearOK(br *bufio.Reader) error {
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || string(body) != "ok" {
		return errors.New("answer " + res.Status + " " + string(body))
	}
	return nil
}

// closed waits until the server has closed nc without an answer.
func closed(t *testing.T, nc net.Conn) {
	t.Helper()
	nc.SetReadDeadline(time.Now().Add(long))
	if n, err := nc.Read(make([]byte, 1)); n > 0 || err == nil || timedOut(err) {
		t.Errorf("read %d bytes, error %v, want the connection to be closed", n, err)
	}
}

// TestFirstAfterNone lets longer than the time for a head pass without a connection:
// the next has its own time all the same.
func TestFirstAfterNone(t *testing.T) {
	t.Cleanup(func() { noLeftovers(t) })
	for name, config := range map[string]*tls.Config{"tcp": nil, "tls": loopbackTLS()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := raise(t, &serve.Server{Handler: http.HandlerFunc(stateHandler), TLSConfig: config, ReadHeaderTimeout: 2 * time.Second})
			for range 2 {
				time.Sleep(2500 * time.Millisecond)
				nc := f.dial()
				time.Sleep(300 * time.Millisecond) // many ticks of the clock
				say(t, nc, "/")
				told(t, nc)
				nc.Close()
			}
			f.quiet()
		})
	}
}

func timedOut(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// open reports whether the server has not closed nc.
func open(nc net.Conn) bool {
	nc.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, err := nc.Read(make([]byte, 1))
	nc.SetReadDeadline(time.Now().Add(long))
	return timedOut(err)
}

func TestOutOfDescriptors(t *testing.T) {
	p := found(t, orders{Files: 64, MaxConns: -1})
	t.Run("heads are shed, the oldest first", func(t *testing.T) {
		slow := make([]net.Conn, 100)
		for i := range slow {
			slow[i] = call(t, p.addr)
			io.WriteString(slow[i], "GET / HT")
		}
		nc := call(t, p.addr)
		say(t, nc, "/")
		told(t, nc)
		for _, nc := range slow[:20] {
			closed(t, nc)
		}
		if last := slow[len(slow)-1]; !open(last) {
			t.Error("the youngest unfinished head was shed")
		}
		for _, nc := range slow {
			nc.Close()
		}
		nc.Close()
	})
	t.Run("serving goes on once there are descriptors", func(t *testing.T) {
		begin := time.Now()
		busy := make([]net.Conn, 100)
		for i := range busy {
			busy[i] = call(t, p.addr)
			say(t, busy[i], "/hold")
		}
		comes(t, "a word in the log", func() bool { return strings.Contains(p.log.text(), "too many open files") })
		time.Sleep(1500 * time.Millisecond)
		p.tell("release")
		for _, nc := range busy {
			told(t, nc)
			nc.Close()
		}
		nc := call(t, p.addr)
		say(t, nc, "/")
		told(t, nc)
		if n, most := strings.Count(p.log.text(), "\n"), int(time.Since(begin).Seconds())+2; n > most {
			t.Errorf("%d lines in the log, want one a second at most, %d:\n%s", n, most, p.log.text())
		}
	})
}

// holding is a handler that holds requests for /hold until released.
func holding(t *testing.T) (h http.Handler, entered <-chan struct{}, release context.CancelFunc) {
	in := make(chan struct{}, 1000)
	ctx, release := context.WithCancel(context.Background())
	t.Cleanup(release)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			in <- struct{}{}
			<-ctx.Done()
		}
		if r.URL.Path != "/hold" {
			outpostHandler(nil).ServeHTTP(w, r)
			return
		}
		io.WriteString(w, "ok")
	}), in, release
}

func TestMaxConns(t *testing.T) {
	const most = 6
	type scene struct {
		f       *fort
		conns   [most]net.Conn
		release context.CancelFunc
	}
	t.Cleanup(func() { noLeftovers(t) })
	setAlone := func(t *testing.T, prepare func(t *testing.T, nc net.Conn)) *scene {
		h, _, release := holding(t)
		sc := &scene{f: raise(t, &serve.Server{Handler: h, Protocols: protocols("1", "h2c"),
			Limits: serve.Limits{MaxConns: most, ShutdownGrace: 50 * time.Millisecond}}), release: release}
		for i := range sc.conns {
			sc.conns[i] = sc.f.dial()
			prepare(t, sc.conns[i])
			time.Sleep(5 * time.Millisecond) // so that their ages differ
		}
		return sc
	}
	set := func(t *testing.T, prepare func(t *testing.T, nc net.Conn)) *scene {
		t.Parallel() // each has a server of its own, and waits
		return setAlone(t, prepare)
	}
	t.Run("the oldest head is shed", func(t *testing.T) {
		sc := set(t, func(t *testing.T, nc net.Conn) { io.WriteString(nc, "GET / HTTP/1.1\r\nA: ") })
		nc := sc.f.dial()
		say(t, nc, "/")
		told(t, nc)
		closed(t, sc.conns[0])
		if !open(sc.conns[most-1]) {
			t.Error("the youngest was shed")
		}
	})
	t.Run("one that never spoke is shed", func(t *testing.T) {
		sc := set(t, func(*testing.T, net.Conn) {})
		nc := sc.f.dial()
		say(t, nc, "/")
		told(t, nc)
		closed(t, sc.conns[0])
	})
	t.Run("else the longest idle", func(t *testing.T) {
		sc := set(t, func(t *testing.T, nc net.Conn) { say(t, nc, "/"); told(t, nc) })
		nc := sc.f.dial()
		say(t, nc, "/")
		told(t, nc)
		if open(sc.conns[0]) && open(sc.conns[1]) {
			t.Error("neither of the two oldest was shed")
		}
	})
	t.Run("parked ones as well", func(t *testing.T) {
		sc := setAlone(t, func(t *testing.T, nc net.Conn) { say(t, nc, "/"); told(t, nc) })
		comes(t, "the connections to be parked", func() bool { return connGoroutines() == 0 })
		nc := sc.f.dial()
		say(t, nc, "/")
		told(t, nc)
	})
	t.Run("HTTP/2 without a request", func(t *testing.T) {
		sc := set(t, func(t *testing.T, nc net.Conn) { io.WriteString(nc, preface2+settings2) })
		nc := sc.f.dial()
		say(t, nc, "/")
		told(t, nc)
	})
	for name, crawl := range map[string]struct{ opening, more string }{
		"a body a byte at a time":     {"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", "a"},
		"a body just above MinRate":   {"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", "abc"},
		"an answer that is not taken": {pipelined(20), ""},
		"HTTP/2, a body that stalls":  {preface2 + settings2 + post2, ""},
		"HTTP/2, an answer not taken": {preface2 + noWindow2 + big2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sc := set(t, func(t *testing.T, nc net.Conn) { io.WriteString(nc, crawl.opening) })
			stop := make(chan struct{})
			var slow sync.WaitGroup
			defer slow.Wait()
			defer close(stop)
			slow.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					for _, nc := range sc.conns {
						io.WriteString(nc, crawl.more) // fails on the one that is shed
					}
				}
			})
			nc := sc.f.dial()
			say(t, nc, "/")
			told(t, nc)
			sc.release()
		})
	}
	t.Run("not those that move well", func(t *testing.T) {
		sc := set(t, func(t *testing.T, nc net.Conn) {
			io.WriteString(nc, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
		})
		var fair sync.WaitGroup
		for _, body := range sc.conns {
			fair.Go(func() {
				for range 100 { // some 3 s, at many times the rate that is due
					body.Write(make([]byte, 1000))
					time.Sleep(30 * time.Millisecond)
				}
				if err := hearOK(bufio.NewReader(body)); err != nil {
					t.Errorf("a body that came well: %v", err)
				}
			})
		}
		nc := sc.f.dial()
		say(t, nc, "/")
		told(t, nc)
		fair.Wait()
	})
	t.Run("else new ones wait", func(t *testing.T) {
		sc := set(t, func(t *testing.T, nc net.Conn) { say(t, nc, "/hold") })
		nc := sc.f.dial()
		say(t, nc, "/")
		if !open(nc) {
			t.Error("the connection beyond the limit was answered or closed, want it to wait")
		}
		sc.release()
		told(t, nc)
		for i, held := range sc.conns {
			if err := hearOK(bufio.NewReader(held)); err != nil {
				t.Errorf("connection %d, which was at work: %v", i, err)
			}
		}
	})
	t.Run("shutdown does not wait with them", func(t *testing.T) {
		sc := set(t, func(t *testing.T, nc net.Conn) { say(t, nc, "/hold") })
		nc := sc.f.dial()
		say(t, nc, "/")
		done := make(chan error, 1)
		go func() { done <- sc.f.Shutdown(context.Background()) }()
		told(t, nc)
		sc.release()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Slow clients give their places up also where a listener wraps their connections.
func TestMaxConnsWrapped(t *testing.T) {
	h, _, release := holding(t)
	defer release()
	s := &serve.Server{Handler: h, Limits: serve.Limits{MaxConns: 3}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(wrapping{l, func(nc net.Conn) net.Conn { return struct{ net.Conn }{nc} }})
	}()
	defer func() { s.Close(); <-served }()
	dial := func() net.Conn {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		nc.SetDeadline(time.Now().Add(long))
		return nc
	}
	for range s.Limits.MaxConns {
		io.WriteString(dial(), pipelined(20))
	}
	time.Sleep(100 * time.Millisecond)
	nc := dial()
	say(t, nc, "/")
	told(t, nc)
}

// connGoroutines counts the goroutines that serve connections.
func connGoroutines() (n int) {
	for _, stack := range serverStacks() {
		if strings.Contains(stack, "serve.(*conn).serve") {
			n++
		}
	}
	return n
}

func TestMaxConnsPerAddr(t *testing.T) {
	h, entered, release := holding(t)
	f := fortify(t, &serve.Server{Handler: h, Limits: serve.Limits{MaxConnsPerAddr: 3}})
	held := make([]net.Conn, 3)
	for i := range held {
		held[i] = f.dial()
		say(t, held[i], "/hold")
		<-entered
	}
	closed(t, f.dial())
	elsewhere := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	nc, err := elsewhere.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	say(t, nc, "/")
	told(t, nc)
	release()
	told(t, held[0])
	held[0].Close()
	comes(t, "a place to be free", func() bool {
		nc := f.dial()
		defer nc.Close()
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		return hearOK(bufio.NewReader(nc)) == nil
	})
	f.quiet()
}

// nameless is a listener whose connections do not know their peer's address, as
// those may not that were reset before they were accepted.
type nameless struct{ net.Listener }

func (l nameless) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	return namelessConn{nc}, err
}

type namelessConn struct{ net.Conn }

func (namelessConn) RemoteAddr() net.Addr { return nil }

// TestMaxConnsPerNoAddr holds connections without an address to be served.
func TestMaxConnsPerNoAddr(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }), Limits: serve.Limits{MaxConnsPerAddr: 1}}
	go s.Serve(nameless{l})
	defer s.Close()
	for range 2 {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		say(t, nc, "/")
		told(t, nc)
	}
}

// proxied is a listener whose connections begin with a line that a proxy has put
// there: their peer's address.
type proxied struct{ net.Listener }

func (l proxied) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	return &proxiedConn{Conn: nc, from: bufio.NewReader(nc)}, err
}

type proxiedConn struct {
	net.Conn
	from *bufio.Reader
	once sync.Once
	peer net.Addr
}

// RemoteAddr waits for the line if it must, as that of a PROXY protocol's connection
// does.
func (c *proxiedConn) RemoteAddr() net.Addr {
	c.once.Do(func() {
		line, _ := c.from.ReadString('\n')
		if at, err := netip.ParseAddrPort(strings.TrimSpace(line)); err == nil {
			c.peer = net.TCPAddrFromAddrPort(at)
		}
	})
	return c.peer
}

func (c *proxiedConn) Read(p []byte) (int, error) {
	c.RemoteAddr()
	return c.from.Read(p)
}

// TestMaxConnsPerAddrProxied holds the limit to the addresses that a proxy tells, and
// a connection that has told none to keep nobody from being accepted.
func TestMaxConnsPerAddrProxied(t *testing.T) {
	h, entered, release := holding(t)
	t.Cleanup(func() { noLeftovers(t) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &serve.Server{Handler: h, Limits: serve.Limits{MaxConnsPerAddr: 1}}
	go s.Serve(proxied{l})
	t.Cleanup(func() { s.Close() })
	from := func(peer string) net.Conn {
		nc := call(t, l.Addr().String())
		io.WriteString(nc, peer)
		return nc
	}
	from("")
	other := from("192.0.2.2:1\n")
	say(t, other, "/")
	told(t, other)
	held := from("192.0.2.1:1\n")
	say(t, held, "/hold")
	<-entered
	closed(t, from("192.0.2.1:2\n"))
	release()
	told(t, held)
	held.Close()
	comes(t, "a place to be free", func() bool {
		nc := from("192.0.2.1:3\n")
		defer nc.Close()
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		return hearOK(bufio.NewReader(nc)) == nil
	})
}

// TestMaxConnsHTTP2 holds connections that speak HTTP/2 to count as others do.
func TestMaxConnsHTTP2(t *testing.T) {
	h, entered, release := holding(t)
	f := fortify(t, &serve.Server{Handler: h, TLSConfig: loopbackTLS(), Limits: serve.Limits{MaxConns: 2}})
	var held sync.WaitGroup
	for range 2 {
		tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		held.Go(func() {
			defer tr.CloseIdleConnections()
			res, err := (&http.Client{Transport: tr}).Get("https://" + f.addr + "/hold")
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); string(body) != "ok" || res.ProtoMajor != 2 {
				t.Errorf("answer %q by %s, error %v, want ok by HTTP/2", body, res.Proto, err)
			}
		})
		<-entered
	}
	spoke := make(chan error, 1)
	go func() {
		nc, err := f.reach()
		if err != nil {
			spoke <- err
			return
		}
		defer nc.Close()
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		spoke <- hearOK(bufio.NewReader(nc))
	}()
	select {
	case err := <-spoke:
		t.Errorf("a third connection was served beyond the limit of two, %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	release()
	held.Wait()
	if err := <-spoke; err != nil {
		t.Errorf("the third connection, once there was room: %v", err)
	}
}

func TestHeadLimits(t *testing.T) {
	f := fortify(t, &serve.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }),
		Limits:  serve.Limits{MaxHeaders: 20}, MaxHeaderBytes: 8 << 10,
	})
	for _, tc := range []struct {
		name string
		head string
		want int
	}{
		{"fields at the limit", strings.Repeat("A: b\r\n", 19), 200},
		{"fields beyond it", strings.Repeat("A: b\r\n", 20), 431},
		{"bytes within the limit", "A: " + strings.Repeat("b", 8000) + "\r\n", 200},
		{"bytes beyond it", "A: " + strings.Repeat("b", 8200) + "\r\n", 431},
		{"a field without an end", "A: " + strings.Repeat("b", 1<<20), 431},
	} {
		nc := f.dial()
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n"+tc.head+"\r\n")
		res, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if res.StatusCode != tc.want {
			t.Errorf("%s: status %d, want %d", tc.name, res.StatusCode, tc.want)
		}
		if tc.want != 200 && !res.Close {
			t.Errorf("%s: the answer does not say that the connection closes", tc.name)
		}
		nc.Close()
	}
	f.quiet()
}

// TestReadTimeoutBesideHTTP2 gives the body of a connection's first request all its
// time on a server that has to tell HTTP/2 from HTTP/1 first, and tells of it.
func TestReadTimeoutBesideHTTP2(t *testing.T) {
	const limit = 400 * time.Millisecond
	var mu sync.Mutex
	states := map[string][]http.ConnState{} // by client
	s := &serve.Server{ReadTimeout: limit, Protocols: new(http.Protocols)}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusRequestTimeout)
			return
		}
		io.WriteString(w, "ok")
	})
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	s.ConnState = func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		states[c.RemoteAddr().String()] = append(states[c.RemoteAddr().String()], state)
	}
	f := fortify(t, s)
	f.dial() // the server's time goes on while there is a connection
	time.Sleep(2 * limit)
	for _, parts := range [][]string{
		{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n", "body"},
		{"P", "OST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n", "body"},
	} {
		var client string
		var err error
		for range 5 { // a busy machine may keep the client from sending in time
			nc := f.dial()
			client = nc.LocalAddr().String()
			for _, part := range parts {
				io.WriteString(nc, part)
				time.Sleep(limit / 4)
			}
			if err = hearOK(bufio.NewReader(nc)); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("in %d parts: %v", len(parts), err)
		}
		mu.Lock()
		if got := states[client]; len(got) < 2 || got[0] != http.StateNew || got[1] != http.StateActive {
			t.Errorf("in %d parts: got states %v, want new, active first", len(parts), got)
		}
		mu.Unlock()
	}
}

// TestContinueBeforeSwitching has 100 Continue come before 101, not within its head.
func TestContinueBeforeSwitching(t *testing.T) {
	f := fortify(t, &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "x")
		w.WriteHeader(http.StatusSwitchingProtocols)
		if b, err := io.ReadAll(r.Body); string(b) != "body" || err != nil {
			t.Errorf("the handler read %q, %v", b, err)
		}
	})})
	nc := f.dial()
	nc.SetDeadline(time.Now().Add(long))
	io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	br := bufio.NewReader(nc)
	for _, want := range []int{http.StatusContinue, http.StatusSwitchingProtocols} {
		res, err := http.ReadResponse(br, nil)
		if err != nil || res.StatusCode != want {
			t.Fatalf("got %v, %v, want %d", res, err, want)
		}
		if want == http.StatusContinue {
			io.WriteString(nc, "body")
		} else if res.Header.Get("Upgrade") != "x" {
			t.Errorf("got fields %v", res.Header)
		}
	}
}

// TestEarlyAnswerWrapped wants a client to get the answer that comes before its body
// was read, also on a connection that cannot close one direction alone.
func TestEarlyAnswerWrapped(t *testing.T) {
	t.Cleanup(func() { noLeftovers(t) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})}
	go s.Serve(wrapped{l})
	t.Cleanup(func() { s.Close() })
	for range 10 {
		nc := call(t, l.Addr().String())
		io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 393216\r\n\r\n")
		for range 12 { // of a client that looks for an answer once it has sent all
			if _, err := nc.Write(make([]byte, 32<<10)); err != nil {
				t.Fatalf("sending the body: %v", err)
			}
			time.Sleep(time.Millisecond)
		}
		res, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Fatalf("got %v, %v; want 413", res, err)
		}
		nc.Close()
	}
}

// wrapped is a listener whose connections are no more than a net.Conn.
type wrapped struct{ net.Listener }

func (l wrapped) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	return struct{ net.Conn }{nc}, err
}

// TestRefusedWithoutDeadlines refuses a client that stays, on a connection that knows no
// deadlines, as those that ssh forwards: it is closed all the same.
func TestRefusedWithoutDeadlines(t *testing.T) {
	t.Cleanup(func() { noLeftovers(t) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	s := &serve.Server{Handler: http.NotFoundHandler(), ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			close(ended)
		}
	}}
	go s.Serve(timeless{l})
	t.Cleanup(func() { s.Close() })
	nc := call(t, l.Addr().String())
	io.WriteString(nc, "GET\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil || res.StatusCode != http.StatusBadRequest {
		t.Fatalf("got %v, %v; want 400", res, err)
	}
	select {
	case <-ended:
	case <-time.After(long):
		t.Error("the connection was not closed")
	}
	nc.Close()
}

// piped accepts one end of a pipe.
type piped struct {
	net.Listener
	ends chan net.Conn
}

func (l piped) Accept() (net.Conn, error) {
	nc, ok := <-l.ends
	if !ok {
		return nil, net.ErrClosed
	}
	return nc, nil
}

// TestRefusalCutShort refuses a request by TLS whose client does not take the refusal. Of a
// record that was cut short nothing may follow the part that was sent: a client that reads
// on would take it for the rest of the record ("bad record MAC").
func TestRefusalCutShort(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := piped{Listener: tcp, ends: make(chan net.Conn, 1)}
	here, there := net.Pipe()
	ended := make(chan struct{})
	s := &serve.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate()}, SessionTicketsDisabled: true},
		Limits:    serve.Limits{StallTimeout: 100 * time.Millisecond}, ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(ended)
			}
		},
	}
	go s.ServeTLS(l, "", "")
	defer s.Close()
	l.ends <- there
	c := tls.Client(here, &tls.Config{InsecureSkipVerify: true})
	if _, err := io.WriteString(c, "no request\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(here, make([]byte, 10)); err != nil { // a part of the record
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(3 * time.Second): // Close of crypto/tls waits for 5 s
		t.Error("the server tries to send more after a record that was cut short")
	}
	close(l.ends)
	if rest, err := io.ReadAll(here); len(rest) > 0 || err != nil {
		t.Errorf("after the part came %d bytes, %v", len(rest), err)
	}
}

// timeless is a listener whose connections know no deadlines.
type timeless struct{ net.Listener }

func (l timeless) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return timelessConn{nc.(*net.TCPConn)}, nil
}

type timelessConn struct{ *net.TCPConn }

func (timelessConn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (timelessConn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (timelessConn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }
