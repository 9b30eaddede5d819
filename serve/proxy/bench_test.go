package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/proxy"
)

// canned is a connection to an upstream that answers each request at once, without a system
// call.
type canned struct {
	net.Conn
	answer string
	left   string
}

func (c *canned) Write(p []byte) (int, error) {
	c.left = c.answer
	return len(p), nil
}

func (c *canned) Read(p []byte) (int, error) {
	if c.left == "" {
		return 0, io.EOF
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *canned) Close() error { return nil }

// sink is a client that takes what comes.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

// untold is a context of which nobody needs to be told that it ends.
type untold struct{ context.Context }

func (untold) AfterFunc(func()) (stop func() bool) { return func() bool { return true } }

// cannedProxy is a proxy before an upstream that is canned, and a request to it.
func cannedProxy() (http.Handler, *http.Request) {
	answer := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\nDate: Fri, 27 Nov 2026 09:45:00 GMT\r\nEtag: \"abc\"\r\n\r\n" + strings.Repeat("x", 1024)
	tr := proxy.NewTransport(0)
	tr.Dial = func(context.Context, string, string) (net.Conn, error) { return &canned{answer: answer}, nil }
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: "upstream:80"}}}))
	r := httptest.NewRequest("GET", "/object", nil).WithContext(untold{context.Background()})
	r.Header = http.Header{"User-Agent": {"bench"}, "Accept": {"*/*"}}
	return must(proxy.New(proxy.Options{Pool: pool, Transport: tr})), r
}

// BenchmarkHandler passes a request on, and nothing else: without servers, sockets and waiting.
func BenchmarkHandler(b *testing.B) {
	h, r := cannedProxy()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(&sink{header: make(http.Header, 4)}, r)
	}
}

// TestRetriedFields has an answer have no fields of one before it, whoever gives it.
func TestRetriedFields(t *testing.T) {
	bad := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Bad", "1")
		w.Header().Set("Link", "</hint>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	good := upstream(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Good", "1") })
	gone := must(net.Listen("tcp", "127.0.0.1:0"))
	gone.Close()
	fallback := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, c := range []struct {
		name      string
		o         proxy.Options
		addresses []string
		status    int
		good      string
	}{
		{"another upstream answers", proxy.Options{}, []string{bad, good}, http.StatusOK, "1"},
		{"another one is gone", proxy.Options{}, []string{bad, gone.Addr().String()}, 0, ""},
		{"the fallback answers", proxy.Options{Fallback: fallback}, []string{bad}, http.StatusTeapot, ""},
	} {
		url, _ := front(t, c.o, proxy.PoolOptions{Balance: proxy.RoundRobin}, c.addresses...)
		for range 4 {
			res, _ := get(t, url)
			switch {
			case c.status == 0 && (res.StatusCode == http.StatusBadGateway) == (res.Header.Get("X-Bad") == ""):
			case c.status == res.StatusCode && res.Header.Get("X-Bad") == "" && res.Header.Get("X-Good") == c.good && res.Header.Get("Link") == "":
			default:
				t.Errorf("%s: got %s with %v", c.name, res.Status, res.Header)
			}
		}
	}
}

// TestFieldsOfNews has the fields of an informational answer not be those of the answer.
func TestFieldsOfNews(t *testing.T) {
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</hint>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("X-Own", "1")
	}))
	res, _ := get(t, url)
	if res.StatusCode != http.StatusOK || res.Header.Get("Link") != "" || res.Header.Get("X-Own") != "1" {
		t.Errorf("got %s with %v", res.Status, res.Header)
	}
}
