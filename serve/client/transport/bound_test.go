package transport_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/client/transport"
)

// await has a condition come true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what)
}

// ask sends a request and returns the body of the answer.
func ask(tr *transport.Transport, r *http.Request) (string, error) {
	res, err := tr.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// counting dials, and counts what is open, at present and at most.
type counting struct{ tries, open, most atomic.Int64 }

func (c *counting) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.tries.Add(1)
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n := c.open.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	return &countedConn{Conn: nc, closed: sync.OnceFunc(func() { c.open.Add(-1) })}, nil
}

// countedConn hides its socket.
type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// TestConns has many requests go out on few connections, some of which end with their answer, and
// none be lost.
func TestConns(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body)%3 == 0 {
			w.Header().Set("Connection", "close")
		}
		fmt.Fprint(w, len(body))
	}))
	defer s.Close()
	var c counting
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){"socket": nil, "wrapped": c.dial} {
		tr := &transport.Transport{Options: transport.Options{Dial: dial, Conns: 2, QueueTimeout: time.Minute}}
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				got, err := ask(tr, must(http.NewRequest("PUT", s.URL, strings.NewReader(strings.Repeat("x", i)))))
				if err != nil || got != fmt.Sprint(i) {
					t.Errorf("%s: %d: got %q, %v", name, i, got, err)
				}
			})
		}
		all.Wait()
		tr.CloseIdleConnections()
	}
	if c.most.Load() > 2 || c.open.Load() != 0 {
		t.Errorf("%d connections were open at a time, want 2 at most; %d are open", c.most.Load(), c.open.Load())
	}
}

// TestHostsGo has hosts that nobody uses be forgotten, and one that is in use not be: else more
// connections to it were opened than may be.
func TestHostsGo(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer s.Close()
	tr := &transport.Transport{Options: transport.Options{Conns: 1, QueueTimeout: time.Millisecond}}
	defer tr.CloseIdleConnections()
	tr.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}
	held := must(tr.RoundTrip(must(http.NewRequest("GET", "http://held.test/", nil))))
	defer held.Body.Close()
	for i := range 1000 {
		if text, err := ask(tr, must(http.NewRequest("GET", fmt.Sprintf("http://pod-%d.test/", i), nil))); err != nil || text != "ok" {
			t.Fatalf("pod %d: got %q, %v", i, text, err)
		}
		tr.CloseIdleConnections()
	}
	if n := tr.Hosts(); n > 200 {
		t.Errorf("%d hosts are remembered", n)
	}
	var busy *transport.BusyError
	if _, err := ask(tr, must(http.NewRequest("GET", "http://held.test/", nil))); !errors.As(err, &busy) {
		t.Errorf("another connection to a host in use: got %v, want none", err)
	}
}

// empty answers each request with nothing.
type empty struct{}

func (empty) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
}

// TestHTTP2HostsGo has hosts that have chosen HTTP/2 be forgotten once nobody asks them, and one that
// is asked not: its next request would begin with another handshake.
func TestHTTP2HostsGo(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	dials := map[string]int{}
	tr := &transport.Transport{Options: transport.Options{TLS: &tls.Config{InsecureSkipVerify: true}, Other: empty{}}}
	tr.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials[address]++
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}
	for i := range 400 {
		for _, host := range []string{fmt.Sprintf("pod-%d.test", i), "stays.test"} {
			res, err := tr.RoundTrip(must(http.NewRequest("GET", "https://"+host+"/", nil)))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
		}
	}
	if n := tr.Hosts(); n > 200 {
		t.Errorf("%d hosts are remembered", n)
	}
	if n := dials["stays.test:443"]; n != 1 {
		t.Errorf("the host that stays was dialled %d times, want once", n)
	}
}

// TestBusy has a request that finds the queue full, or waits for too long, or whose caller has
// gone, say so; and the next one go out once there is a place.
func TestBusy(t *testing.T) {
	going := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stalls" {
			<-going
		}
		fmt.Fprint(w, "ok")
	}))
	defer s.Close()
	tr := &transport.Transport{Options: transport.Options{Conns: 1, Queue: 1, QueueTimeout: time.Second}}
	defer tr.CloseIdleConnections()
	first := make(chan error, 1)
	began := make(chan struct{})
	tr.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		close(began)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	go func() {
		_, err := ask(tr, must(http.NewRequest("GET", s.URL+"/stalls", nil)))
		first <- err
	}()
	<-began
	second := make(chan error, 1)
	go func() {
		for {
			_, err := ask(tr, must(http.NewRequest("GET", s.URL, nil)))
			if err == nil || !strings.Contains(err.Error(), "enough requests wait") { // one of those below does
				second <- err
				return
			}
		}
	}()
	var busy *transport.BusyError
	await(t, "the queue is never full", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := ask(tr, must(http.NewRequestWithContext(ctx, "GET", s.URL, nil)))
		if !errors.As(err, &busy) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		return busy != nil
	})
	if want := "transport: no connection to " + s.Listener.Addr().String() + " is free, of 1 at most: enough requests wait for one already"; busy.Error() != want {
		t.Errorf("got %q, want %q", busy, want)
	}
	if err := <-second; !errors.As(err, &busy) || !strings.Contains(err.Error(), "none became free in time") {
		t.Errorf("who waited for too long: got %v", err)
	}
	close(going)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if got, err := ask(tr, must(http.NewRequest("GET", s.URL, nil))); got != "ok" || err != nil {
		t.Errorf("once there is a place: got %q, %v", got, err)
	}
}

// speaksHTTP2 serves h by HTTP/2, with TLS or without, and returns its URL and a transport to it.
func speaksHTTP2(t *testing.T, secure bool, h http.HandlerFunc) (string, *transport.Transport) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	t.Cleanup(s.Close)
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
		other := s.Client().Transport.(*http.Transport)
		return s.URL, &transport.Transport{Options: transport.Options{Other: other, TLS: other.TLSClientConfig.Clone()}}
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	s.Config.Protocols = protocols
	s.Start()
	return s.URL, &transport.Transport{Options: transport.Options{Other: &http.Transport{Protocols: protocols}, UnencryptedHTTP2: true}}
}

// TestStreams has no more requests be under way to a host that speaks HTTP/2 than may be, and
// none be lost.
func TestStreams(t *testing.T) {
	for _, secure := range []bool{false, true} {
		slots := make(chan struct{}, 2)
		url, tr := speaksHTTP2(t, secure, func(w http.ResponseWriter, r *http.Request) {
			select {
			case slots <- struct{}{}:
			default:
				t.Error("more than two requests at a time")
				return
			}
			defer func() { <-slots }()
			time.Sleep(time.Millisecond)
			if r.Method != http.MethodHead {
				fmt.Fprint(w, r.Proto)
			}
		})
		tr.Conns, tr.QueueTimeout = cap(slots), time.Minute
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				method, want := "GET", "HTTP/2.0"
				if i%3 == 0 {
					method, want = "HEAD", ""
				}
				if got, err := ask(tr, must(http.NewRequest(method, url, nil))); got != want || err != nil {
					t.Errorf("TLS %t: got %q, %v, want %q", secure, got, err, want)
				}
			})
		}
		all.Wait()
		tr.CloseIdleConnections()
	}
}

// TestBusyStream has a stream be taken until its answer is closed, or its caller goes, and the
// next request say so meanwhile.
func TestBusyStream(t *testing.T) {
	for _, secure := range []bool{false, true} {
		url, tr := speaksHTTP2(t, secure, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			if r.URL.Path != "/" {
				<-r.Context().Done()
			}
		})
		tr.Conns, tr.Queue = 1, -1
		ends := map[string]func(*http.Response, context.CancelFunc){
			"closed": func(res *http.Response, _ context.CancelFunc) { res.Body.Close() },
			"canceled": func(res *http.Response, cancel context.CancelFunc) {
				cancel()
				_, _ = io.ReadAll(res.Body)
			},
		}
		for name, end := range ends {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			res, err := tr.RoundTrip(must(http.NewRequestWithContext(ctx, "GET", url+"/goes-on", nil)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = ask(tr, must(http.NewRequest("GET", url, nil)))
			address := strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://")
			if busy, is := errors.AsType[*transport.BusyError](err); !is || busy.Error() != "transport: no stream to "+address+" is free, of 1 at most: enough requests wait for one already" {
				t.Errorf("TLS %t, %s: while it is open: got %v", secure, name, err)
			}
			end(res, cancel)
			if _, err := ask(tr, must(http.NewRequest("GET", url, nil))); err != nil {
				t.Errorf("TLS %t, %s: once it is over: %v", secure, name, err)
			}
		}
		tr.CloseIdleConnections()
	}
}

// TestSwitchedCounts has a connection that speaks another protocol be one of those that may be
// open, until it is closed.
func TestSwitchedCounts(t *testing.T) {
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if r.Header.Get("Upgrade") == "" {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				continue
			}
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_, _ = io.Copy(c, in)
			return
		}
	})
	tr := &transport.Transport{Options: transport.Options{Conns: 1, Queue: -1}}
	defer tr.CloseIdleConnections()
	r := must(http.NewRequest("GET", url, nil))
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "x")
	res, err := tr.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", res, err)
	}
	var busy *transport.BusyError
	if _, err := ask(tr, must(http.NewRequest("GET", url, nil))); !errors.As(err, &busy) {
		t.Errorf("while it is open: got %v", err)
	}
	res.Body.Close()
	if got, err := ask(tr, must(http.NewRequest("GET", url, nil))); got != "ok" || err != nil {
		t.Errorf("once it is closed: got %q, %v", got, err)
	}
}

// idler accepts connections and answers on them, until they are to be closed.
type idler struct {
	net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	accepted int
}

func (l *idler) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, c)
		l.accepted++
	}
	return c, err
}

// count returns how many connections there were.
func (l *idler) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted
}

// closeAll closes the connections as a server does that keeps idle ones for a while.
func (l *idler) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

func serveIdler(t *testing.T, l net.Listener) *idler {
	t.Helper()
	in := &idler{Listener: l}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })}
	go func() { _ = s.Serve(in) }()
	t.Cleanup(func() { s.Close() })
	return in
}

// TestWarm has connections be open before requests come, which use them, be opened again once
// the server has closed them, and be gone at the end, with what kept them open.
func TestWarm(t *testing.T) {
	before := runtime.NumGoroutine()
	l := serveIdler(t, must(net.Listen("tcp", "127.0.0.1:0")))
	tr := &transport.Transport{Options: transport.Options{Warm: 3}}
	stop, other := tr.KeepWarm("http", l.Addr().String()), tr.KeepWarm("http", l.Addr().String())
	await(t, "nothing is warm", func() bool { return l.count() == 3 })
	for range 5 {
		if got, err := ask(tr, must(http.NewRequest("GET", "http://"+l.Addr().String(), nil))); got != "ok" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if n := l.count(); n != 3 {
		t.Errorf("requests have opened %d connections of their own", n-3)
	}
	stop()
	stop()                       // only once: the other one wants it yet
	if runtime.GOOS == "linux" { // elsewhere nothing tells that a connection has ended
		l.closeAll()
		await(t, "what the server has closed is not opened again", func() bool { return l.count() == 6 })
	}
	other()
	tr.CloseIdleConnections()
	_ = l.Close()
	l.closeAll()
	await(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before+1 }) // the server's
}

// TestWarmRefused has a server that refuses be tried, but not without a pause, and be warm once
// it listens.
func TestWarmRefused(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	address := l.Addr().String()
	l.Close()
	var c counting
	tr := &transport.Transport{Options: transport.Options{Warm: 2, Dial: c.dial}}
	defer tr.CloseIdleConnections()
	defer tr.KeepWarm("http", address)()
	await(t, "it is not tried again", func() bool { return c.tries.Load() >= 2 })
	tries := c.tries.Load()
	time.Sleep(200 * time.Millisecond)
	if more := c.tries.Load() - tries; more > 5 {
		t.Errorf("%d attempts in a fifth of a second", more)
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("SKIPPED: the port is somebody else's by now: %v", err)
	}
	in := serveIdler(t, again)
	await(t, "it is not warm once it listens", func() bool { return in.count() == 2 })
}

// TestWarmEnds has the end come while a connection is being opened.
func TestWarmEnds(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	tr := &transport.Transport{Options: transport.Options{Warm: 1, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(began)
		<-ctx.Done()
		defer close(ended)
		return nil, ctx.Err()
	}}}
	stop := tr.KeepWarm("http", "127.0.0.1:1")
	<-began
	stop()
	tr.CloseIdleConnections()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("it goes on")
	}
}

// TestWarmSecure has TLS be begun before requests come, and hosts that choose HTTP/2 be left to
// the other transport.
func TestWarmSecure(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var conns, shaken atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		s.EnableHTTP2 = http2
		s.StartTLS()
		other := &counted{RoundTripper: s.Client().Transport}
		config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		config.VerifyConnection = func(tls.ConnectionState) error {
			shaken.Add(1)
			return nil
		}
		tr := &transport.Transport{Options: transport.Options{Warm: 2, TLS: config, Other: other}}
		stop := tr.KeepWarm("https", s.Listener.Addr().String())
		want, wantOther := int64(2), int64(0)
		if http2 {
			want, wantOther = 1, 1 // one connection finds out
		}
		await(t, "it is not warm", func() bool { return shaken.Load() == want })
		time.Sleep(100 * time.Millisecond) // the handshake ends a moment later
		if _, err := ask(tr, must(http.NewRequest("GET", s.URL, nil))); err != nil {
			t.Error(err)
		}
		if conns.Load() != want+wantOther || other.n.Load() != wantOther {
			t.Errorf("HTTP/2 %t: %d connections, %d requests by the other transport", http2, conns.Load(), other.n.Load())
		}
		stop()
		tr.CloseIdleConnections()
		s.Close()
	}
	insecure := &transport.Transport{Options: transport.Options{Warm: 1}}
	insecure.KeepWarm("https", "127.0.0.1:1")() // it is Other's: nothing is dialled
}
