package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/router"
)

// benched are the requests of the engine study, each with what is answered.
var benched = []struct{ name, request, path string }{
	{"get", "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n", "/small"},
	{"json", "GET /json HTTP/1.1\r\nHost: localhost\r\n\r\n", "/json"},
	{"64k", "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", "/large"},
	{"post", "POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1024\r\n\r\n" + strings.Repeat("x", 1024), "/post"},
	{"browser", "GET /small HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\n" +
		"Accept: text/html,application/xhtml+xml\r\nAccept-Language: en-GB,en;q=0.9\r\nAccept-Encoding: gzip, deflate, br\r\n" +
		"Connection: keep-alive\r\nCookie: session=0123456789abcdef\r\nReferer: http://localhost/\r\nCache-Control: max-age=0\r\n" +
		"Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n\r\n", "/small"},
}

func benchHandler() http.Handler {
	bodies := map[string][]byte{
		"/small": []byte("pong\n"), "/json": bytes.Repeat([]byte("x"), 1024), "/large": bytes.Repeat([]byte("x"), 64<<10),
	}
	kind := []string{"text/plain"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = kind
		if r.Method == http.MethodPost {
			var b [1024]byte
			n, err := io.ReadFull(r.Body, b[:])
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			w.Write(b[:n])
			return
		}
		w.Write(bodies[r.URL.Path])
	})
}

// BenchmarkServer answers one request after another on one connection, and 16 in
// one piece. Ratios between servers, with the client's own part in both, come
// from running them in turn: go test -bench Server -count 10.
func BenchmarkServer(b *testing.B) {
	for _, req := range benched {
		for _, depth := range []int{1, 16} {
			for _, srv := range []struct {
				name string
				new  func(h http.Handler) (func(net.Listener) error, func(context.Context) error)
			}{
				{"nethttp", func(h http.Handler) (func(net.Listener) error, func(context.Context) error) {
					s := &http.Server{Handler: h}
					return s.Serve, s.Shutdown
				}},
				{"serve", func(h http.Handler) (func(net.Listener) error, func(context.Context) error) {
					s := &serve.Server{Handler: h}
					return s.Serve, s.Shutdown
				}},
				{"reuse", func(h http.Handler) (func(net.Listener) error, func(context.Context) error) {
					s := &serve.Server{Handler: h, Reuse: true}
					return s.Serve, s.Shutdown
				}},
			} {
				b.Run(fmt.Sprintf("request=%s/pipelined=%d/server=%s", req.name, depth, srv.name), func(b *testing.B) {
					run, stop := srv.new(benchHandler())
					benchServer(b, run, stop, strings.Repeat(req.request, depth), depth)
				})
			}
		}
	}
}

// benchServer sends batch and reads as many bytes as the first answer to it had.
func benchServer(b *testing.B, run func(net.Listener) error, stop func(context.Context) error, batch string, depth int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { run(l); close(ended) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		c.Close()
		stop(context.Background())
		<-ended
	}()
	out := []byte(batch)
	size := answerSize(b, c, out, depth)
	in := make([]byte, size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/request")
}

// BenchmarkWithoutKernel answers the same requests from memory, so that nothing but serve's own
// work and its memory's is measured.
func BenchmarkWithoutKernel(b *testing.B) {
	for _, req := range benched {
		for _, depth := range []int{1, 16} {
			for _, reuse := range []bool{false, true} {
				b.Run(fmt.Sprintf("request=%s/pipelined=%d/reuse=%t", req.name, depth, reuse), func(b *testing.B) {
					here, there := net.Pipe() // for what else a connection has
					defer there.Close()
					c := &remembered{Conn: here, b: b, batch: strings.Repeat(req.request, depth), ended: make(chan struct{})}
					s := &serve.Server{Handler: benchHandler(), Reuse: reuse}
					defer s.Close()
					accept := make(acceptOnce, 1)
					accept <- c
					close(accept)
					b.ReportAllocs()
					s.Serve(accept)
					<-c.ended
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/request")
				})
			}
		}
	}
}

// remembered is a connection whose client sends one batch again and again, and takes all answers.
type remembered struct {
	net.Conn
	b     *testing.B
	batch string
	at    int
	close sync.Once
	ended chan struct{}
}

func (c *remembered) Read(p []byte) (int, error) {
	if c.at == 0 && !c.b.Loop() {
		return 0, io.EOF
	}
	n := copy(p, c.batch[c.at:])
	c.at = (c.at + n) % len(c.batch)
	return n, nil
}

func (c *remembered) Write(p []byte) (int, error) { return len(p), nil }

func (c *remembered) Close() error {
	c.close.Do(func() { close(c.ended) })
	return c.Conn.Close()
}

// acceptOnce is a listener that ends after what is in it.
type acceptOnce chan net.Conn

func (l acceptOnce) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l acceptOnce) Close() error   { return nil }
func (l acceptOnce) Addr() net.Addr { return &net.TCPAddr{} }

// answerSize returns how many bytes the answers to a batch have.
func answerSize(b *testing.B, c net.Conn, out []byte, depth int) int {
	b.Helper()
	if _, err := c.Write(out); err != nil {
		b.Fatal(err)
	}
	var got bytes.Buffer
	chunk := make([]byte, 256<<10)
	for bytes.Count(got.Bytes(), []byte("HTTP/1.1 200 OK")) < depth || !complete(got.Bytes(), depth) {
		n, err := c.Read(chunk)
		if err != nil {
			b.Fatal(err)
		}
		got.Write(chunk[:n])
	}
	return got.Len()
}

// complete reports whether the answers, all alike, have arrived.
func complete(got []byte, depth int) bool {
	head := bytes.Index(got, []byte("\r\n\r\n"))
	if head < 0 {
		return false
	}
	if bytes.Contains(got[:head], []byte("Transfer-Encoding: chunked")) {
		return bytes.Count(got, []byte("\r\n0\r\n\r\n")) == depth
	}
	var length int
	if i := bytes.Index(got, []byte("Content-Length: ")); i >= 0 {
		fmt.Sscanf(string(got[i:]), "Content-Length: %d", &length)
	}
	return len(got) == depth*(head+4+length)
}

// BenchmarkBody posts a body to handlers that read it in several ways. size=4096 and its head
// are more than the first read takes.
func BenchmarkBody(b *testing.B) {
	ways := map[string]func(r *http.Request) error{
		"readall": func(r *http.Request) error { _, err := io.ReadAll(r.Body); return err },
		"sized": func(r *http.Request) error {
			_, err := io.ReadFull(r.Body, make([]byte, r.ContentLength))
			return err
		},
		"hash": func(r *http.Request) error { _, err := io.Copy(crc32.NewIEEE(), r.Body); return err },
	}
	for _, by := range []string{"readall", "sized", "hash"} {
		for _, size := range []int{1 << 10, 4 << 10, 64 << 10} {
			post := fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := ways[by](r); err != nil {
					w.WriteHeader(http.StatusBadRequest)
				}
				io.WriteString(w, "ok")
			})
			b.Run(fmt.Sprintf("by=%s/size=%d/server=nethttp", by, size), func(b *testing.B) {
				s := &http.Server{Handler: h}
				benchServer(b, s.Serve, s.Shutdown, post, 1)
			})
			b.Run(fmt.Sprintf("by=%s/size=%d/server=serve", by, size), func(b *testing.B) {
				s := &serve.Server{Handler: h}
				benchServer(b, s.Serve, s.Shutdown, post, 1)
			})
		}
	}
}

// BenchmarkRouted asks for a route with a parameter, behind serve/router alone and
// with a chain of one layer that keeps a value, and whose handler looks it up.
func BenchmarkRouted(b *testing.B) {
	const get = "GET /users/ann/posts/7 HTTP/1.1\r\nHost: localhost\r\n\r\n"
	key := chain.NewKey[*http.Cookie]("user")
	user := &http.Cookie{Name: "ann"}
	layer := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, key.With(r, user)) })
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.PathValue("post")) })
	layered := chain.Must(chain.New(layer).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, _ := key.Value(r); u != user {
			b.Error("the value is not there")
		}
		answer(w, r)
	})))
	for name, h := range map[string]http.Handler{"router": answer, "chain": layered} {
		for _, depth := range []int{1, 16} {
			b.Run(fmt.Sprintf("by=%s/pipelined=%d", name, depth), func(b *testing.B) {
				rt := new(router.Router)
				rt.Handle("GET /users/{user}/posts/{post}", h)
				s := &serve.Server{Handler: rt}
				benchServer(b, s.Serve, s.Shutdown, strings.Repeat(get, depth), depth)
			})
		}
	}
}
