package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/proxy"
)

// unencrypted are the protocols of who speaks HTTP/2 without TLS alone.
func unencrypted() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// upstreamH2C serves h by HTTP/2 without TLS, and returns its address.
func upstreamH2C(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = unencrypted()
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// frontH2C serves a proxy by HTTP/2 without TLS, on package serve, and returns its URL and
// a client.
func frontH2C(t *testing.T, o proxy.Options, po proxy.PoolOptions, addresses ...string) (string, *http.Client) {
	t.Helper()
	for _, a := range addresses {
		po.Servers = append(po.Servers, proxy.Server{Address: a})
	}
	pool := must(proxy.NewPool(po))
	t.Cleanup(pool.Close)
	o.Pool = pool
	s := &serve.Server{}
	s.Handler, s.Protocols = must(proxy.New(o)), unencrypted()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	transport := &http.Transport{Protocols: unencrypted()}
	t.Cleanup(transport.CloseIdleConnections)
	return "http://" + l.Addr().String(), &http.Client{Transport: transport}
}

// echoes is a gRPC service by its wire: it answers each piece with itself in capitals as it
// comes, and says in its trailers how it went. Its header goes first, before anything has
// come.
func echoes(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" || r.Header.Get("Content-Type") != "application/grpc" {
		http.Error(w, "no gRPC: "+r.Proto+" "+r.Header.Get("Te"), http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	if r.URL.Path == "/stock.Stock/Unknown" { // an answer of trailers alone
		w.Header().Set("Grpc-Status", "12")
		return
	}
	w.Header().Set("X-Metadata", "yes")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	buf := make([]byte, 64)
	for {
		n, err := r.Body.Read(buf)
		_, _ = w.Write([]byte(strings.ToUpper(string(buf[:n]))))
		_ = http.NewResponseController(w).Flush()
		if err != nil {
			break
		}
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	w.Header().Set(http.TrailerPrefix+"Grpc-Message", r.Trailer.Get("X-Client-Sum"))
}

func grpcRequest(ctx context.Context, url string, body io.Reader) *http.Request {
	r := must(http.NewRequestWithContext(ctx, "POST", url, body))
	r.Header.Set("Te", "trailers")
	r.Header.Set("Content-Type", "application/grpc")
	return r
}

// TestGRPC has a call that streams both ways pass, by HTTP/2 without TLS on both sides: its
// header before anything was sent, each piece before the next one, and trailers both ways.
func TestGRPC(t *testing.T) {
	url, client := frontH2C(t, proxy.Options{}, proxy.PoolOptions{Scheme: proxy.UnencryptedHTTP2}, upstreamH2C(t, echoes))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, in := io.Pipe()
	r := grpcRequest(ctx, url+"/stock.Stock/Watch", out)
	r.Trailer = http.Header{"X-Client-Sum": nil}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("X-Metadata") != "yes" || res.ProtoMajor != 2 {
		t.Fatalf("got %d by %s with %v", res.StatusCode, res.Proto, res.Header)
	}
	for i, piece := range []string{"one", "two", "three"} {
		if _, err := io.WriteString(in, piece); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != strings.ToUpper(piece) {
			t.Fatalf("piece %d: got %q, %v", i, got, err)
		}
	}
	r.Trailer.Set("X-Client-Sum", "42")
	in.Close()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("the end: got %q, %v", rest, err)
	}
	if res.Trailer.Get("Grpc-Status") != "0" || res.Trailer.Get("Grpc-Message") != "42" {
		t.Errorf("got the trailers %v", res.Trailer)
	}
}

// TestGRPCStatus has an answer of trailers alone pass, and a call that cannot be made be
// answered by a status.
func TestGRPCStatus(t *testing.T) {
	url, client := frontH2C(t, proxy.Options{}, proxy.PoolOptions{Scheme: proxy.UnencryptedHTTP2}, upstreamH2C(t, echoes))
	res := must(client.Do(grpcRequest(t.Context(), url+"/stock.Stock/Unknown", strings.NewReader("x"))))
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("Grpc-Status") != "12" {
		t.Errorf("got %d with %v", res.StatusCode, res.Header)
	}
	url, client = frontH2C(t, proxy.Options{}, proxy.PoolOptions{Scheme: proxy.UnencryptedHTTP2}, closedPort())
	res = must(client.Do(grpcRequest(t.Context(), url, strings.NewReader("x"))))
	res.Body.Close()
	if res.StatusCode != http.StatusBadGateway {
		t.Errorf("nobody listens: got %d", res.StatusCode)
	}
}

// TestGRPCGone ends the upstream's call when its client goes, and has the client see that
// an upstream broke off.
func TestGRPCGone(t *testing.T) {
	gone := make(chan struct{})
	up := upstreamH2C(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
		close(gone)
	})
	url, client := frontH2C(t, proxy.Options{}, proxy.PoolOptions{Scheme: proxy.UnencryptedHTTP2}, up)
	res := must(client.Do(grpcRequest(t.Context(), url+"/broken", http.NoBody)))
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("a broken answer ends as a whole one does")
	}
	res.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	res = must(client.Do(grpcRequest(ctx, url, http.NoBody)))
	cancel()
	res.Body.Close()
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the upstream did not see that the client has gone")
	}
}

// TestMixed has HTTP/1.1 come in and HTTP/2 go out, and the other way round; retries and
// checks work as elsewhere.
func TestMixed(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "%d %s", r.ProtoMajor, body)
		w.Header().Set("X-Sum", "7")
	}
	url, handler := front(t, proxy.Options{}, proxy.PoolOptions{Scheme: proxy.UnencryptedHTTP2, Balance: proxy.RoundRobin, Check: proxy.Check{Path: "/", Interval: 10 * time.Millisecond}},
		upstreamH2C(t, h), closedPort())
	for range 4 {
		res, body := ask(t, must(http.NewRequest("PUT", url, strings.NewReader("an order"))))
		if res.StatusCode != 200 || body != "2 an order" || res.ProtoMajor != 1 || res.Trailer.Get("X-Sum") != "7" {
			t.Errorf("HTTP/1.1 to HTTP/2: got %d %q by %s, trailers %v", res.StatusCode, body, res.Proto, res.Trailer)
		}
	}
	if handler.Tunnels() != 0 {
		t.Error("there is a tunnel")
	}
	res, body := raw(t, url, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if res.StatusCode != 200 || body != "2 " {
		t.Errorf("an upgrade to HTTP/2's upstream: got %d %q, want it to be passed on as any request", res.StatusCode, body)
	}
	url2, client := frontH2C(t, proxy.Options{}, proxy.PoolOptions{}, upstream(t, h))
	in := must(client.Post(url2, "text/plain", strings.NewReader("an order")))
	text, err := io.ReadAll(in.Body)
	in.Body.Close()
	if string(text) != "1 an order" || err != nil || in.Trailer.Get("X-Sum") != "7" {
		t.Errorf("HTTP/2 to HTTP/1.1: got %q, %v, trailers %v", text, err, in.Trailer)
	}
}

// TestGRPCSecure has a call pass with TLS on both sides.
func TestGRPCSecure(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(echoes))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	transport := proxy.NewTransport(0)
	transport.TLS = &tls.Config{InsecureSkipVerify: true}
	transport.Other.(*http.Transport).TLSClientConfig = transport.TLS.Clone()
	pool := must(proxy.NewPool(proxy.PoolOptions{Scheme: "https", Servers: []proxy.Server{{Address: s.Listener.Addr().String()}}}))
	defer pool.Close()
	edge := httptest.NewUnstartedServer(must(proxy.New(proxy.Options{Pool: pool, Transport: transport})))
	edge.EnableHTTP2 = true
	edge.StartTLS()
	defer edge.Close()
	res := must(edge.Client().Do(grpcRequest(t.Context(), edge.URL, strings.NewReader("one"))))
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if string(body) != "ONE" || err != nil || res.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("got %q, %v, trailers %v", body, err, res.Trailer)
	}
}

// TestSecure has requests pass to an upstream by TLS and HTTP/1.1, with bodies, informational
// answers, trailers and a WebSocket, and connections be used again.
func TestSecure(t *testing.T) {
	var conns atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_, _ = io.Copy(c, rw)
			return
		}
		w.Header().Set("Link", "</style>")
		w.WriteHeader(http.StatusEarlyHints)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "%d %t", len(body), r.TLS != nil)
		w.Header().Set("X-Sum", "7")
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.StartTLS()
	defer s.Close()
	transport := proxy.NewTransport(0)
	transport.TLS = &tls.Config{InsecureSkipVerify: true}
	defer transport.CloseIdleConnections()
	url, _ := front(t, proxy.Options{Transport: transport}, proxy.PoolOptions{Scheme: "https"}, s.Listener.Addr().String())
	for _, size := range []int{0, 100, 100_000} {
		hints := 0
		trace := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil }}
		r := must(http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "POST", url, strings.NewReader(strings.Repeat("x", size))))
		res := must(http.DefaultClient.Do(r))
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if want := fmt.Sprintf("%d true", size); string(text) != want || err != nil || res.Trailer.Get("X-Sum") != "7" || hints != 1 {
			t.Errorf("got %q, %v, trailers %v and %d hints, want %q", text, err, res.Trailer, hints, want)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for requests one after the other", n)
	}
	c := must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade got %v, %v", res, err)
	}
	fmt.Fprint(c, "hello\n")
	if got, err := in.ReadString('\n'); got != "hello\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestConnect has CONNECT be refused on a connection as well, and nothing be tunnelled.
func TestConnect(t *testing.T) {
	up := upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("a CONNECT was passed on") })
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, up)
	c := must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", up, up)
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "CONNECT"})
	if err != nil || res.StatusCode != http.StatusNotImplemented {
		t.Errorf("got %+v, %v, want 501", res, err)
	}
}
