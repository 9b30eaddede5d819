package proxy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/servetest"
)

// TestBomb has a body that unpacks to much more pass untouched, both ways.
func TestBomb(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 4 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	z.Close()
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if !bytes.Equal(body, bomb.Bytes()) || err != nil || r.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("the upstream got %d bytes, %v, want %d", len(body), err, bomb.Len())
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	r := must(http.NewRequest("POST", url, bytes.NewReader(bomb.Bytes())))
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("Accept-Encoding", "gzip")
	if res, body := ask(t, r); body != bomb.String() || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("the client got %d bytes, want %d", len(body), bomb.Len())
	}
}

// TestInjection has a value that would be two fields not be sent, whoever set it.
func TestInjection(t *testing.T) {
	var asked atomic.Int64
	up := upstream(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	_, h := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	for name, set := range map[string]func(*http.Request){
		"a value": func(r *http.Request) { r.Header["X-A"] = []string{"a\r\nX-B: b"} },
		"a name":  func(r *http.Request) { r.Header["X-A: b\r\nX-B"] = []string{"c"} },
		"a host":  func(r *http.Request) { r.Host = "a\r\nX-B: b" },
		"a path":  func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX-B:" },
		"a query": func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1\r\nX-B: b" },
		"a blank": func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1" },
	} {
		r := httptest.NewRequest("GET", "/", nil)
		set(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusBadGateway || asked.Load() > 0 {
			t.Errorf("%s: got %d, and the upstream was asked %d times", name, w.Code, asked.Load())
		}
	}
}

// TestSplitAnswer has values of an answer that would be two lines, as only a transport of one's own
// may have them, be no fields of the client's answer, and no second answer.
func TestSplitAnswer(t *testing.T) {
	const second = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for name, header := range map[string]http.Header{
		"a value":           {"X-A": {"a\r\nX-Injected: 1"}},
		"a name":            {"X-A: a\r\nX-Injected": {"1"}},
		"a second answer":   {"X-A": {"a\r\nContent-Length: 0\r\n\r\n" + second}},
		"a bare line break": {"X-A": {"a\nX-Injected: 1"}},
	} {
		answers := transportFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: header, ContentLength: 2, Body: io.NopCloser(strings.NewReader("ok"))}, nil
		})
		pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: "127.0.0.1:1"}}}))
		defer pool.Close()
		h := must(proxy.New(proxy.Options{Pool: pool, Transport: answers}))
		own, standard := servetest.NewServer(h), httptest.NewServer(h)
		defer own.Close()
		defer standard.Close()
		for _, url := range []string{own.URL, standard.URL} {
			res, body := raw(t, url, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if res.Header["X-Injected"] != nil || strings.Contains(body, "evil") {
				t.Errorf("%s: got %v and %q", name, res.Header, body)
			}
		}
	}
}

// TestTargets has a target in absolute form mean the host that it names, to the upstream as here,
// and one that is no path be refused.
func TestTargets(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, " ", r.RequestURI, " ", r.Header.Get("X-Forwarded-Host"))
	})
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: up}}}))
	defer pool.Close()
	h := must(proxy.New(proxy.Options{Pool: pool}))
	own, standard := servetest.NewServer(h), httptest.NewServer(h)
	defer own.Close()
	defer standard.Close()
	for _, c := range []struct{ line, host, want string }{ // empty: it is refused
		{"GET http://a.example/x?y HTTP/1.1", "a.example", "a.example /x?y a.example"},
		{"GET http://a.example HTTP/1.1", "a.example", "a.example / a.example"},
		{"GET http:admin HTTP/1.1", "a.example", ""},
		{"GET http:admin?/x HTTP/1.1", "a.example", ""},
	} {
		for _, url := range []string{own.URL, standard.URL} {
			res, got := raw(t, url, c.line+"\r\nHost: "+c.host+"\r\nConnection: close\r\n\r\n")
			if res.StatusCode == http.StatusOK && got != c.want || res.StatusCode != http.StatusOK && c.want != "" || c.want == "" && res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: got %s %q, want %q", c.line, res.Status, got, c.want)
			}
		}
	}
	// Host names another one: whoever takes the request means the target's.
	const differs = "GET http://a.example/x HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n"
	if res, _ := raw(t, own.URL, differs); res.StatusCode != http.StatusBadRequest {
		t.Errorf("on serve: got %s, want it refused", res.Status)
	}
	if _, got := raw(t, standard.URL, differs); got != "a.example /x a.example" {
		t.Errorf("on net/http: got %q", got)
	}
}

// TestSlowReaders has a side that reads nothing hold the other up, and no more than buffers
// of a fixed size fill; once it goes, the other one sees that.
func TestSlowReaders(t *testing.T) {
	const most = 48 << 20 // what the kernel's buffers may take, of two connections
	var sent atomic.Int64
	write := func(to io.Writer) {
		piece := make([]byte, 1<<20)
		for {
			n, err := to.Write(piece)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	ended := make(chan struct{})
	stop := make(chan struct{})
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			<-stop
			return
		}
		write(w)
		close(ended)
	})
	defer close(stop)
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	steady := func(what string) {
		t.Helper()
		for last := int64(-1); ; last = sent.Load() {
			time.Sleep(200 * time.Millisecond)
			if now := sent.Load(); now > most {
				t.Fatalf("%s: %d bytes went on to nobody", what, now)
			} else if now == last && now > 0 {
				return
			}
		}
	}
	c := must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	steady("an answer that is not read")
	c.Close()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the upstream did not see that its reader has gone")
	}
	sent.Store(0)
	c = must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))
	defer c.Close()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", int64(1)<<40)
	go write(c)
	steady("a request that is not read")
}

// TestNoDescriptors has requests be answered while no connection can be opened, and
// upstreams be asked again once it can.
func TestNoDescriptors(t *testing.T) {
	var out atomic.Bool
	transport := proxy.NewTransport(0)
	up := upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") })
	o := proxy.Options{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
		if out.Load() {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EMFILE}
		}
		return transport.RoundTrip(r)
	})}
	url, _ := front(t, o, proxy.PoolOptions{}, up)
	for _, c := range []struct {
		out  bool
		want int
	}{{true, 502}, {false, 200}} {
		out.Store(c.out)
		for range 10 {
			if res, _ := get(t, url); res.StatusCode != c.want {
				t.Errorf("without descriptors %t: got %d, want %d", c.out, res.StatusCode, c.want)
			}
		}
	}
}

// TestEndlessHead has a request whose header does not end be refused, and no upstream asked.
func TestEndlessHead(t *testing.T) {
	var asked atomic.Int64
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, upstream(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	c := must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	var sent atomic.Int64
	go func() {
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX: ")
		for err == nil {
			var n int
			n, err = c.Write(bytes.Repeat([]byte("x"), 64<<10))
			sent.Add(int64(n))
		}
	}()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil && res.StatusCode != http.StatusRequestHeaderFieldsTooLarge || sent.Load() > 32<<20 || asked.Load() > 0 {
		t.Errorf("got %v, %v after %d bytes; the upstream was asked %d times", res, err, sent.Load(), asked.Load())
	}
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Error("nothing ends it")
	}
}
