package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/tunnel"
	"github.com/tarehq/tare/serve/servetest"
)

func Example() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "seven in stock for ", r.Header.Get("X-Forwarded-For"))
	}))
	defer upstream.Close()
	pool, err := proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: upstream.Listener.Addr().String()}}})
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	h, err := proxy.New(proxy.Options{Pool: pool})
	if err != nil {
		panic(err)
	}
	s := servetest.NewServer(h)
	defer s.Close()
	res, err := http.Get(s.URL + "/stock")
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	fmt.Println(string(text))
	// Output: seven in stock for 127.0.0.1
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// upstream serves h on a port of its own, and returns its address.
func upstream(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// front serves a proxy before these upstreams, and returns its URL.
func front(t *testing.T, o proxy.Options, po proxy.PoolOptions, addresses ...string) (string, *proxy.Handler) {
	t.Helper()
	for _, a := range addresses {
		po.Servers = append(po.Servers, proxy.Server{Address: a})
	}
	pool := must(proxy.NewPool(po))
	t.Cleanup(pool.Close)
	o.Pool = pool
	h := must(proxy.New(o))
	s := servetest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, h
}

// ask sends a request and returns status and body.
func ask(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: reading the answer: %v", r.Method, r.URL, err)
	}
	return res, string(text)
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	return ask(t, must(http.NewRequest("GET", url, nil)))
}

// TestFields is the table of what becomes of a request's fields.
func TestFields(t *testing.T) {
	var got http.Header
	var host string
	up := upstream(t, func(_ http.ResponseWriter, r *http.Request) { got, host = r.Header.Clone(), r.Host })
	trusting := proxy.Options{Name: "edge-1", Forwarded: true, Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, c := range []struct {
		name    string
		o       proxy.Options
		send    []string
		want    map[string]string // empty: not there
		forHost string
	}{
		{"plain", proxy.Options{Name: "edge-1"}, nil, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "http",
			"Via": "1.1 edge-1", "Forwarded": "", "Accept-Encoding": "", "User-Agent": ""}, "shop.example"},
		{"of one hop", proxy.Options{Name: "edge-1"}, []string{"Connection: close, X-Secret, keep-alive", "X-Secret: 1", "Keep-Alive: timeout=5",
			"Proxy-Authorization: Basic eA==", "TE: trailers, deflate", "Upgrade: h2c", "HTTP2-Settings: AAA", "Accept: text/plain", "Accept-Encoding: br"}, map[string]string{
			"Connection": "TE", "X-Secret": "", "Keep-Alive": "", "Proxy-Authorization": "", "Te": "trailers", "Upgrade": "", "Http2-Settings": "",
			"Accept": "text/plain", "Accept-Encoding": "br"}, "shop.example"},
		{"a stranger's word", proxy.Options{Name: "edge-1"}, []string{"X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example",
			"X-Forwarded-Port: 1", "X-Real-IP: 6.6.6.6", "Forwarded: for=6.6.6.6", "Via: 1.0 other"}, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "shop.example",
			"X-Forwarded-Port": "", "X-Real-Ip": "", "Forwarded": "", "Via": "1.0 other|1.1 edge-1"}, "shop.example"},
		{"a stranger's word to who takes underscores for dashes", trusting, []string{"X_Forwarded_For: 6.6.6.6", "X-Forwarded_Proto: https", "X_Real_IP: 6.6.6.6", "X_Other: 1"}, map[string]string{
			"X_forwarded_for": "", "X-Forwarded_proto": "", "X_real_ip": "", "X_other": "1"}, "shop.example"},
		{"a trusted proxy's word", trusting, []string{"X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.example", "Forwarded: for=6.6.6.6"}, map[string]string{
			"X-Forwarded-For": "6.6.6.6, 127.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "a.example",
			"Forwarded": `for=6.6.6.6|for=127.0.0.1;host="shop.example";proto=http`}, "shop.example"},
		{"another host", proxy.Options{Name: "edge-1", Host: "inner.example"}, nil, map[string]string{"X-Forwarded-Host": "shop.example"}, "inner.example"},
	} {
		url, _ := front(t, c.o, proxy.PoolOptions{}, up)
		got = nil
		raw(t, url, "GET / HTTP/1.1\r\nHost: shop.example\r\n"+lines(c.send)+"\r\n")
		if host != c.forHost {
			t.Errorf("%s: the upstream was asked for %q, want %q", c.name, host, c.forHost)
		}
		for name, want := range c.want {
			if text := strings.Join(got[name], "|"); text != want {
				t.Errorf("%s: %s is %q, want %q", c.name, name, text, want)
			}
		}
	}
}

// TestNoHost has nothing said of the host of a request that names none, as HTTP/1.0 may.
func TestNoHost(t *testing.T) {
	var got http.Header
	url, _ := front(t, proxy.Options{Forwarded: true}, proxy.PoolOptions{}, upstream(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() }))
	raw(t, url, "GET / HTTP/1.0\r\n\r\n")
	if host, ok := got["X-Forwarded-Host"]; ok {
		t.Errorf("X-Forwarded-Host is %q, want none", host)
	}
	if text := got.Get("Forwarded"); text != "for=127.0.0.1;proto=http" {
		t.Errorf("Forwarded is %q", text)
	}
}

func lines(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	return strings.Join(fields, "\r\n") + "\r\n"
}

// raw sends bytes and returns the first answer.
func raw(t *testing.T, url, text string) (*http.Response, string) {
	t.Helper()
	c := must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res, string(body)
}

// TestAnswerFields has fields of one hop stay here, and others come through as they are.
func TestAnswerFields(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Set-Cookie"] = []string{"a=1", "b=2"}
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "1")
		h.Set("Keep-Alive", "timeout=5")
		h.Set("Content-Encoding", "gzip")
		h.Set("X-Stays", "yes")
		h["Content-Type"] = nil // else net/http guesses
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "not gzip at all")
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	r := must(http.NewRequest("GET", url, nil))
	r.Header.Set("Accept-Encoding", "gzip") // else the client unpacks it
	res, body := ask(t, r)
	if res.StatusCode != http.StatusTeapot || body != "not gzip at all" || res.ContentLength != 15 {
		t.Errorf("got %d, %q of length %d", res.StatusCode, body, res.ContentLength)
	}
	if got := res.Header["Set-Cookie"]; len(got) != 2 || res.Header.Get("X-Stays") != "yes" || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("lost a field: %v", res.Header)
	}
	for _, name := range []string{"X-Hop", "Keep-Alive", "Content-Type"} {
		if res.Header[name] != nil {
			t.Errorf("%s came through, or was made up", name)
		}
	}
}

// TestRefused has CONNECT refused, and a request that comes back answered.
func TestRefused(t *testing.T) {
	var asked atomic.Int64
	up := upstream(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	url, h := front(t, proxy.Options{Name: "edge-1"}, proxy.PoolOptions{}, up)
	r := must(http.NewRequest("GET", url, nil))
	r.Header.Set("Via", "1.1 a (x), 1.1 edge-1")
	if res, _ := ask(t, r); res.StatusCode != http.StatusLoopDetected {
		t.Errorf("a loop was answered %d", res.StatusCode)
	}
	r = httptest.NewRequest("CONNECT", "db.example:5432", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusNotImplemented || asked.Load() != 0 {
		t.Errorf("CONNECT was answered %d, and %d requests passed on", w.Code, asked.Load())
	}
}

// TestMaxForwards has OPTIONS and TRACE go no further than they may, and other methods not be
// counted (RFC 9110, section 7.6.2).
func TestMaxForwards(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "left ", r.Header.Get("Max-Forwards")) })
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	for _, c := range []struct {
		method, most string
		status       int
		want         string
	}{
		{"OPTIONS", "2", 200, "left 1"}, {"OPTIONS", "1", 200, "left 0"}, {"OPTIONS", "0", 204, ""}, {"OPTIONS", "", 200, "left "},
		{"OPTIONS", "many", 200, "left many"}, {"TRACE", "1", 200, "left 0"}, {"TRACE", "0", 501, "Not Implemented\n"}, {"GET", "0", 200, "left 0"},
	} {
		r := must(http.NewRequest(c.method, url, nil))
		if c.most != "" {
			r.Header.Set("Max-Forwards", c.most)
		}
		if res, got := ask(t, r); res.StatusCode != c.status || got != c.want {
			t.Errorf("%s, %q: got %d %q, want %d %q", c.method, c.most, res.StatusCode, got, c.status, c.want)
		}
	}
}

// TestLoop has two proxies that pass requests on to each other find that out.
func TestLoop(t *testing.T) {
	la, lb := must(net.Listen("tcp", "127.0.0.1:0")), must(net.Listen("tcp", "127.0.0.1:0"))
	for _, p := range []struct {
		l  net.Listener
		to string
	}{{la, lb.Addr().String()}, {lb, la.Addr().String()}} {
		pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: p.to}}}))
		s := &serve.Server{Handler: must(proxy.New(proxy.Options{Pool: pool}))}
		go func() { _ = s.Serve(p.l) }()
		t.Cleanup(func() { s.Close(); pool.Close() })
	}
	if res, _ := get(t, "http://"+la.Addr().String()); res.StatusCode != http.StatusLoopDetected {
		t.Errorf("got %d", res.StatusCode)
	}
}

// TestPaths has a path come as the client has written it.
func TestPaths(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) })
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	for _, target := range []string{"/", "/a%2Fb", "/a//b", "//x/y", "/%7Euser?q=a;b&c=%zz", "/a?", "/%c3%a4", "/a/../b", "/a%20b"} {
		if _, got := raw(t, url, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); got != target {
			t.Errorf("%s came as %s", target, got)
		}
	}
}

// TestStreams has pieces of a body pass each way before the next one is sent.
func TestStreams(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		buf := make([]byte, 64)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				_, _ = w.Write([]byte(strings.ToUpper(string(buf[:n]))))
				_ = http.NewResponseController(w).Flush()
			}
			if err != nil {
				return
			}
		}
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	c := must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	in := bufio.NewReader(c)
	var res *http.Response
	for i, piece := range []string{"one", "two", "three"} {
		fmt.Fprintf(c, "%x\r\n%s\r\n", len(piece), piece)
		if i == 0 {
			res = must(http.ReadResponse(in, nil))
		}
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != strings.ToUpper(piece) {
			t.Fatalf("piece %d: got %q, %v", i, got, err)
		}
	}
	fmt.Fprint(c, "0\r\n\r\n")
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("the end: got %q, %v", rest, err)
	}
}

// TestEvents has an event come through while the answer goes on, and the upstream see it
// when the client goes.
func TestEvents(t *testing.T) {
	gone := make(chan struct{})
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res := must(http.DefaultTransport.RoundTrip(must(http.NewRequestWithContext(ctx, "GET", url, nil))))
	defer res.Body.Close()
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	if line != "data: 1\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	cancel()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the upstream did not see that the client has gone")
	}
}

// TestClientGone ends the upstream's request also before it has answered.
func TestClientGone(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	up := upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(gone)
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if res, err := http.DefaultTransport.RoundTrip(must(http.NewRequestWithContext(ctx, "GET", url, nil))); err == nil {
		res.Body.Close()
		t.Fatal("got an answer")
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the upstream did not see that the client has gone")
	}
}

// TestTrailers has them pass both ways, announced or not.
func TestTrailers(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
		w.Header().Set("X-Sum", r.Trailer.Get("X-Client-Sum"))
		if r.URL.Path == "/more" {
			w.Header().Set(http.TrailerPrefix+"X-More", "yes")
		}
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	for _, path := range []string{"/", "/more"} {
		r := must(http.NewRequest("POST", url+path, io.MultiReader(strings.NewReader("hello"))))
		r.Trailer = http.Header{"X-Client-Sum": {"42"}}
		res, body := ask(t, r)
		if body != "hello" || res.Trailer.Get("X-Sum") != "42" {
			t.Errorf("%s: got %q with %v", path, body, res.Trailer)
		}
		if want := map[string]string{"/": "", "/more": "yes"}[path]; res.Trailer.Get("X-More") != want {
			t.Errorf("%s: X-More is %q, want %q", path, res.Trailer.Get("X-More"), want)
		}
	}
}

// TestTrailersOfOneHop has trailers that mean something in a head, or are for one hop, stay here,
// both ways and by either protocol.
func TestTrailersOfOneHop(t *testing.T) {
	const unwanted = "X-Hop: 1\r\nX-Forwarded-For: 6.6.6.6\r\nVia: 1.0 evil\r\nAuthorization: x\r\nContent-Length: 9\r\n"
	got := make(chan string, 1)
	h := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		for name := range r.Trailer {
			if r.Trailer[name] == nil {
				delete(r.Trailer, name) // it was announced alone
			}
		}
		got <- fmt.Sprint(r.Trailer)
		w.Header()["Connection"] = []string{"X-Hop"}
		_, _ = io.WriteString(w, "ok")
		_ = http.NewResponseController(w).Flush()
		for _, name := range []string{"X-Sum", "X-Forwarded-For", "Via"} {
			w.Header().Set(http.TrailerPrefix+name, "7")
		}
		if r.ProtoMajor == 1 {
			w.Header().Set(http.TrailerPrefix+"X-Hop", "7")
		}
	}
	for scheme, address := range map[string]string{"http": upstream(t, h), proxy.UnencryptedHTTP2: upstreamH2C(t, h)} {
		url, _ := front(t, proxy.Options{}, proxy.PoolOptions{Scheme: scheme}, address)
		res, _ := raw(t, url, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close, X-Hop\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Hop, X-Forwarded-For, Via\r\n\r\n"+
			"2\r\nok\r\n0\r\nX-Sum: 42\r\n"+unwanted+"\r\n")
		if text := <-got; text != "map[X-Sum:[42]]" {
			t.Errorf("%s: the upstream got the trailers %s", scheme, text)
		}
		if text := fmt.Sprint(res.Trailer); text != "map[X-Sum:[7]]" {
			t.Errorf("%s: the client got the trailers %s", scheme, text)
		}
	}
}

// TestNews has informational answers pass, and their fields not stay.
func TestNews(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "page")
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(status, " ", h.Get("Link")))
		return nil
	}})
	res, body := ask(t, must(http.NewRequestWithContext(ctx, "GET", url, nil)))
	if len(hints) != 1 || hints[0] != "103 </a.css>; rel=preload" || body != "page" || res.Header.Get("Link") != "" {
		t.Errorf("got the hints %q, then %q with Link %q", hints, body, res.Header.Get("Link"))
	}
}

// TestContinue has a client that waits for 100 get it once the upstream wants the body,
// and not if that answers at once.
func TestContinue(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	for path, want := range map[string]string{"/": "HTTP/1.1 100 Continue\r\n", "/no": "HTTP/1.1 403 Forbidden\r\n"} {
		c := must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", path)
		if line, err := bufio.NewReader(c).ReadString('\n'); line != want {
			t.Errorf("%s: got %q, %v, want %q", path, line, err, want)
		}
		c.Close()
	}
}

// TestCutAnswer has a client see that an answer is not whole.
func TestCutAnswer(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(make([]byte, 50_000))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	res := must(http.Get(url))
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Errorf("got %d bytes and no error", n)
	}
}

// TestBrokenRequest has a body that the client breaks off not be held against the upstream.
func TestBrokenRequest(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	url, h := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	for range 5 {
		res, _ := raw(t, url, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n")
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("got %d, want 400", res.StatusCode)
		}
	}
	if res, _ := get(t, url); res.StatusCode != 200 || h.Counts().Retries != 0 {
		t.Errorf("after broken requests: %d, %+v", res.StatusCode, h.Counts())
	}
}

// TestWebSocket changes protocols, has both sides speak, and end one after the other.
func TestWebSocket(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			w.WriteHeader(http.StatusUpgradeRequired)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: yes\r\n\r\nhello\n")
		rw.Flush()
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				fmt.Fprint(rw, "bye\n")
				rw.Flush()
				return
			}
			fmt.Fprint(rw, strings.ToUpper(line))
			rw.Flush()
		}
	})
	url, h := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	c := must(net.Dial("tcp", strings.TrimPrefix(url, "http://"))).(*net.TCPConn)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(c, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\nearly\n")
	in := bufio.NewReader(c)
	res := must(http.ReadResponse(in, nil))
	if res.StatusCode != 101 || res.Header.Get("Sec-WebSocket-Accept") != "yes" || res.Header.Get("Upgrade") != "websocket" {
		t.Fatalf("got %d with %v", res.StatusCode, res.Header)
	}
	expect := func(want string) {
		t.Helper()
		if line, err := in.ReadString('\n'); line != want {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
	}
	expect("hello\n")
	expect("EARLY\n")
	if h.Tunnels() != 1 {
		t.Errorf("%d tunnels", h.Tunnels())
	}
	fmt.Fprint(c, "late\n")
	expect("LATE\n")
	_ = c.CloseWrite()
	expect("bye\n")
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
	for range 100 {
		if h.Tunnels() == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the tunnel has not ended")
}

// TestConnectTold has CONNECT lead where it may, and nowhere else.
func TestConnectTold(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	var open atomic.Int64
	to, closed := l.Addr().String(), closedPort()
	s := &serve.Server{Handler: &tunnel.Connect{To: []string{to, closed}, Next: http.NotFoundHandler(), Open: &open}}
	s.Lenient.Connect = true
	front := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { _ = s.Serve(front) }()
	defer s.Close()
	for _, c := range []struct {
		method, target string
		want           int
	}{{"CONNECT", "127.0.0.2:80", 403}, {"CONNECT", closed, 502}, {"GET", "/", 404}, {"CONNECT", to, 200}} {
		conn := must(net.Dial("tcp", front.Addr().String())).(*net.TCPConn)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", c.method, c.target, strings.Replace(c.target, "/", "x", 1))
		if c.target != to {
			conn.CloseWrite()
		}
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, &http.Request{Method: c.method})
		if err != nil || res.StatusCode != c.want {
			t.Errorf("%s %s: got %+v, %v, want %d", c.method, c.target, res, err, c.want)
			continue
		}
		if c.want != 200 {
			continue
		}
		for range 2 {
			fmt.Fprint(conn, "hello\n")
			if line, err := in.ReadString('\n'); line != "hello\n" {
				t.Errorf("by the tunnel came %q, %v", line, err)
			}
		}
		if open.Load() != 1 {
			t.Errorf("%d tunnels are open, want 1", open.Load())
		}
		conn.CloseWrite()
		if _, err := in.ReadByte(); err != io.EOF {
			t.Errorf("the tunnel's end: %v", err)
		}
	}
	w := httptest.NewRecorder()
	(&tunnel.Connect{}).ServeHTTP(w, httptest.NewRequest("CONNECT", to, nil))
	if w.Code != http.StatusNotImplemented {
		t.Errorf("where it may lead nowhere: got %d, want 501", w.Code)
	}
}

// TestOtherUpgrades has nothing but what is allowed pass, and no switch that nobody asked
// for.
func TestOtherUpgrades(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unasked" {
			c, rw, _ := http.NewResponseController(w).Hijack()
			defer c.Close()
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
			rw.Flush()
			return
		}
		_, _ = io.WriteString(w, "upgrade:"+r.Header.Get("Upgrade"))
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	res, body := raw(t, url, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n")
	if res.StatusCode != 200 || body != "upgrade:" {
		t.Errorf("h2c: got %d, %q", res.StatusCode, body)
	}
	for _, ask := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		if res, _ := raw(t, url, "GET /unasked HTTP/1.1\r\nHost: x\r\n"+ask+"\r\n"); res.StatusCode != http.StatusBadGateway {
			t.Errorf("a switch nobody asked for, %q: got %d", ask, res.StatusCode)
		}
	}
}

// TestOptions is the table of what cannot be.
func TestOptions(t *testing.T) {
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: "127.0.0.1:1"}}}))
	defer pool.Close()
	for want, o := range map[string]proxy.Options{
		"Options.Pool is not set": {},
		"Options.Attempts is -1":  {Pool: pool, Attempts: -1},
		"Options.Budget is 2":     {Pool: pool, Budget: 2},
		`Options.Name is "a b"`:   {Pool: pool, Name: "a b"},
		"Options.Hedge is -1":     {Pool: pool, Hedge: -1},
	} {
		if _, err := proxy.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	good := proxy.Server{Address: "a:1"}
	for want, o := range map[string]proxy.PoolOptions{
		"0 servers":                      {},
		`Scheme is "ftp"`:                {Scheme: "ftp", Servers: []proxy.Server{good}},
		`Balance is "x"`:                 {Balance: "x", Servers: []proxy.Server{good}},
		"Panic is 2":                     {Panic: 2, Servers: []proxy.Server{good}},
		"SlowStart is 1s":                {SlowStart: time.Second, Balance: proxy.ConsistentHash, Servers: []proxy.Server{good}},
		`"a" is not an address`:          {Servers: []proxy.Server{{Address: "a"}}},
		`"http://a:1" is not an address`: {Servers: []proxy.Server{{Address: "http://a:1"}}},
		"has the weight 101":             {Servers: []proxy.Server{{Address: "a:1", Weight: 101}}},
		"server a:1 is there twice":      {Servers: []proxy.Server{good, good}},
		`Check.Path is "health"`:         {Servers: []proxy.Server{good}, Check: proxy.Check{Path: "health"}},
		"Check has a negative number":    {Servers: []proxy.Server{good}, Check: proxy.Check{Path: "/", Fall: -1}},
		"a share of 2 may be out":        {Servers: []proxy.Server{good}, MostOut: 2},
	} {
		if _, err := proxy.NewPool(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestNetHTTP has the handler work on net/http's server, with HTTP/2, too.
func TestNetHTTP(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, body, r.Header.Get("Via"))
	})
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: up}}}))
	defer pool.Close()
	s := httptest.NewUnstartedServer(must(proxy.New(proxy.Options{Pool: pool, Name: "edge-1"})))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	res := must(s.Client().Post(s.URL, "text/plain", strings.NewReader("order")))
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); res.ProtoMajor != 2 || string(body) != "POST order 2.0 edge-1" {
		t.Errorf("got HTTP/%d %q, %v", res.ProtoMajor, body, err)
	}
}

// TestSize has bodies that are larger than any buffer come whole, both ways at once.
func TestSize(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	})
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			const size = 3 << 20
			res, err := http.Post(url, "application/octet-stream", io.LimitReader(pattern(i), size))
			if err != nil {
				t.Errorf("posting: %v", err)
				return
			}
			defer res.Body.Close()
			if err := same(res.Body, io.LimitReader(pattern(i), size)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// pattern is an endless body that differs by n.
type pattern int

func (p pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(p)
	}
	return len(b), nil
}

func same(a, b io.Reader) error {
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		if n != m || string(x[:n]) != string(y[:m]) || !errors.Is(errA, errB) {
			return fmt.Errorf("the bodies differ: %d and %d bytes, %v and %v", n, m, errA, errB)
		}
		if errA != nil {
			return nil
		}
	}
}
