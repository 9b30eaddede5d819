package serve_test

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// folder holds the files that the handlers of this file serve.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{
		"index.html": "<html>index", "a.txt": "0123456789", "big.bin": strings.Repeat("0123456789abcdef", 16<<10), "empty": "", "sub/b.json": `{"a":1}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestDiffReadFrom compares io.Copy from a file, which may go by sendfile.
func TestDiffReadFrom(t *testing.T) {
	big := filepath.Join(folder(t), "big.bin")
	const size = 256 << 10
	send := func(before act, limit int64) act {
		return func(j *journal, w http.ResponseWriter, r *http.Request) {
			f, err := os.Open(big)
			if err != nil {
				j.note("%v", err)
				return
			}
			defer f.Close()
			before(j, w, r)
			var src io.Reader = f
			if limit > 0 {
				src = io.LimitReader(f, limit)
			}
			n, err := io.Copy(w, src)
			at, _ := f.Seek(0, io.SeekCurrent)
			j.note("copied %d %s, file at %d", n, class(err), at)
		}
	}
	reader := func(pairs ...string) act {
		return with(func(j *journal, w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(w, io.MultiReader(strings.NewReader("abc"), bytes.NewReader(make([]byte, 5000))))
			j.note("copied %d %s", n, class(err))
		}, pairs...)
	}
	agreeAtOnce(t, everyWay(map[string]act{
		"declared":             with(send(writes(), 0), "Content-Length", itoa(size), "Content-Type", "a/b"),
		"undeclared":           send(writes(), 0),
		"undeclared with type": with(send(writes(), 0), "Content-Type", "a/b"),
		"sniffed and declared": with(send(writes(), 0), "Content-Length", itoa(size)),
		"limited":              with(send(writes(), 100), "Content-Length", "100"),
		"limited undeclared":   send(writes(), 100),
		"limited large":        with(send(writes(), 100<<10), "Content-Length", itoa(100<<10)),
		"after a write":        with(send(writes("before"), 100<<10), "Content-Length", itoa(100<<10+6)),
		"after a flush":        with(send(flushed("before"), 100<<10), "Content-Length", itoa(100<<10+6)),
		"after the head":       with(send(status(201, writes()), 0), "Content-Length", itoa(size)),
		"less than declared":   with(send(writes(), 1000), "Content-Length", itoa(size)),
		"204":                  status(204, send(writes(), 0)),
		"304":                  status(304, send(writes(), 0)),
		"identity":             with(send(writes(), 0), "Transfer-Encoding", "identity"),
		"another reader":       reader(),
		"reader declared":      reader("Content-Length", "5003"),
	}))
}

// TestDiffSourceFails compares what becomes of an answer that is copied from something
// with a descriptor, which fails, and that the handler then ends by itself.
func TestDiffSourceFails(t *testing.T) {
	const rest, soon = "the rest", 100 * time.Millisecond // a busy machine reads within it what there is
	dir := t.TempDir()
	copies := func(n int, open func() (io.ReadCloser, error)) act {
		return with(func(j *journal, w http.ResponseWriter, r *http.Request) {
			flushed("")(j, w, r)
			src, err := open()
			if err != nil {
				j.note("%v", err)
				return
			}
			defer src.Close()
			n, err := io.Copy(w, src)
			j.note("copied %d %s", n, class(err))
			m, err := io.WriteString(w, rest)
			j.note("wrote %d %s, context %v", m, class(err), r.Context().Err())
		}, "Content-Length", itoa(n+len(rest)))
	}
	agreeAtOnce(t, []exchange{
		{name: "folder", send: request("/"), handler: copies(0, func() (io.ReadCloser, error) { return os.Open(dir) })},
		{name: "pipe without an end", send: request("/"), handler: copies(600, func() (io.ReadCloser, error) {
			from, to, err := os.Pipe()
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { to.Close() })
			to.Write(make([]byte, 600))
			return from, from.SetReadDeadline(time.Now().Add(soon))
		})},
		{name: "connection that stops", send: request("/"), handler: copies(600, func() (io.ReadCloser, error) {
			l := listener(t)
			defer l.Close()
			from, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return nil, err
			}
			to, err := l.Accept()
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { to.Close() })
			to.Write(make([]byte, 600))
			return from, from.SetReadDeadline(time.Now().Add(soon))
		})},
	})
}

// TestDiffFileReachesKernel wants io.Copy from a file, whole or limited, to
// reach the connection's ReadFrom with something that has a descriptor: that is
// what sendfile takes.
func TestDiffFileReachesKernel(t *testing.T) {
	path := filepath.Join(folder(t), "big.bin")
	everySide(t, func(t *testing.T, s side) {
		for _, limit := range []int64{0, 100 << 10} {
			j, taken := &journal{}, make(chan bool, 8)
			hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				f, err := os.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				size := int64(256 << 10)
				var src io.Reader = f
				if limit > 0 {
					size, src = limit, io.LimitReader(f, limit)
				}
				w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
				io.Copy(w, src)
			}), ErrorLog: log.New(&j.log, "", 0)}
			l := takingListener{listener(t), taken}
			run := &running{server: s.make(hs), addr: l.Addr().String(), by: whole, ended: make(chan error, 1)}
			go func() { run.ended <- run.Serve(l) }()
			c := run.dial(t)
			c.send(request("/", "Connection: close"))
			c.drain()
			run.stop(t)
			close(taken)
			if !<-taken {
				t.Errorf("limit %d: the connection was not given a descriptor to copy from", limit)
			}
		}
	})
}

// takingListener tells of what its connections are to copy from.
type takingListener struct {
	net.Listener
	taken chan<- bool
}

func (l takingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &takingConn{c.(*net.TCPConn), l.taken}, nil
}

type takingConn struct {
	*net.TCPConn
	taken chan<- bool
}

func (c *takingConn) ReadFrom(src io.Reader) (int64, error) {
	bare := src
	if l, ok := src.(*io.LimitedReader); ok {
		bare = l.R
	}
	_, ok := bare.(syscall.Conn)
	select {
	case c.taken <- ok:
	default: // a file may be taken in many pieces
	}
	return c.TCPConn.ReadFrom(src)
}

// TestDiffFiles compares FileServer, ServeContent and ServeFile.
func TestDiffFiles(t *testing.T) {
	dir := folder(t)
	files := mount(http.FileServer(http.Dir(dir)))
	var table []exchange
	for _, path := range []string{"/", "/index.html", "/a.txt", "/sub", "/sub/", "/sub/b.json", "/empty", "/none", "/../a.txt", "/a.txt/", "/big.bin"} {
		table = append(table,
			exchange{name: "GET " + path, handler: files, send: request(path)},
			exchange{name: "HEAD " + path, handler: files, send: "HEAD " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"},
			exchange{name: "1.0 " + path, handler: files, send: "GET " + path + " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"})
	}
	for _, line := range []string{
		"Range: bytes=2-5", "Range: bytes=-3", "Range: bytes=8-", "Range: bytes=20-", "Range: bytes=x", "Range: bytes=0-0",
		"If-Modified-Since: " + time.Unix(1e9, 0).UTC().Format(http.TimeFormat), "If-None-Match: *", "If-Range: \"x\"\r\nRange: bytes=1-2",
		"If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
	} {
		table = append(table, exchange{name: line, handler: files, send: request("/a.txt", line)})
	}
	content := func(j *journal, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "x.css", time.Unix(1e9, 0), strings.NewReader("body{}"))
	}
	agreeAtOnce(t, append(table,
		exchange{name: "large range", handler: files, send: request("/big.bin", "Range: bytes=1000-200000")},
		exchange{name: "ServeContent", handler: content, send: request("/")},
		exchange{name: "ServeContent not modified", handler: content, send: request("/", `If-None-Match: "v1"`)},
		exchange{name: "ServeFileFS", send: request("/"), handler: func(_ *journal, w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, os.DirFS(dir), "sub/b.json")
		}},
	))
}

// TestDiffStandardHandlers runs what the standard library offers to wrap and
// to answer with.
func TestDiffStandardHandlers(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Pattern+" "+r.PathValue("id")+" "+r.PathValue("rest"))
	})
	mux.Handle("/strip/", http.StripPrefix("/strip", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })))
	mux.Handle("/moved", http.RedirectHandler("/elsewhere?a=b", http.StatusFound))
	mux.Handle("/tree/", http.NotFoundHandler())
	mux.HandleFunc("b.example/host", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "by host") })
	inTime := http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X", "1")
		w.WriteHeader(201)
		io.WriteString(w, "in time")
	}), time.Hour, "")
	late := http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.Write([]byte("late"))
	}), 10*time.Millisecond, "too late")
	limited := http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		io.WriteString(w, class(err))
	}), 5)
	csrf := http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	get := func(name string, h http.Handler, path string, lines ...string) exchange {
		return exchange{name: name + " " + path, handler: mount(h), send: request(path, lines...)}
	}
	table := []exchange{
		get("mux", mux, "/items/7/a/b"), get("mux", mux, "/items//x"), get("mux", mux, "/none"), get("mux", mux, "/strip/x/y"),
		get("mux", mux, "/moved"), get("mux", mux, "/tree"), get("mux", mux, "/tree/../moved"), get("mux", mux, "/items/a%2Fb/c"),
		{name: "mux by host", handler: mount(mux), send: "GET /host HTTP/1.1\r\nHost: b.example:80\r\n\r\n"},
		{name: "mux 405", handler: mount(mux), send: "POST /items/7/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"},
		{name: "mux options", handler: mount(mux), send: "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
		{name: "mux connect", handler: mount(mux), send: "CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n", lenient: serve.Lenient{Connect: true}},
		get("timeout", inTime, "/"), get("timeout", late, "/"),
		{name: "max bytes in", handler: mount(limited), send: post("hello")},
		{name: "cross origin", handler: mount(csrf), send: post("x", "Sec-Fetch-Site: cross-site")},
		{name: "error", send: request("/"), handler: func(_ *journal, w http.ResponseWriter, r *http.Request) {
			http.Error(w, "why", http.StatusUnprocessableEntity)
		}},
		{name: "error undoes", send: request("/"), handler: with(func(_ *journal, w http.ResponseWriter, r *http.Request) { http.Error(w, "why", 500) }, "Content-Length", "99", "Content-Encoding", "gzip")},
		{name: "not found", send: request("/"), handler: func(_ *journal, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }},
		{name: "redirect", send: request("/a/b"), handler: func(_ *journal, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "../c", http.StatusMovedPermanently)
		}},
		{name: "redirect post", send: post("x"), handler: func(_ *journal, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://b/", http.StatusSeeOther)
		}},
		{name: "cookie", send: request("/"), handler: func(_ *journal, w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b", Path: "/"})
		}},
		{name: "options star disabled", send: "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", config: func(hs *http.Server, _ *journal) { hs.DisableGeneralOptionsHandler = true }},
		{name: "options star with body", send: "OPTIONS * HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"},
		{name: "AllowQuerySemicolons", send: request("/?a=1;b=2"), handler: mount(http.AllowQuerySemicolons(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.FormValue("b")) })))},
		{name: "query with semicolon", send: request("/?a=1;b=2"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) { j.note("%q", r.FormValue("b")) }},
	}
	agree(t, table)
}

// TestDiffReverseProxy puts httputil.ReverseProxy on each side before the same
// upstream.
func TestDiffReverseProxy(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/hints":
			w.Header().Set("Link", "</a.css>")
			w.WriteHeader(103)
		case "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			defer w.Header().Set("X-Sum", "9")
		case "/abort":
			flushed("a")(&journal{}, w, r)
			panic(http.ErrAbortHandler)
		case "/upgrade":
			conn, rw, _ := http.NewResponseController(w).Hijack()
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, _ := rw.ReadString('\n')
			io.WriteString(conn, "echo "+line)
			return
		}
		io.WriteString(w, "upstream "+r.Method+" "+r.URL.String()+" "+string(body))
	}))
	defer up.Close()
	to, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorLog:     log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { w.WriteHeader(http.StatusBadGateway) },
	}
	var table []exchange
	for _, path := range []string{"/", "/hints", "/trailer"} {
		table = append(table, exchange{name: "GET " + path, handler: mount(proxy), send: request(path)})
	}
	agree(t, append(table,
		exchange{name: "post", handler: mount(proxy), send: post("hello")},
		exchange{name: "chunked", handler: mount(proxy), send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		exchange{name: "head", handler: mount(proxy), send: "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"},
		exchange{name: "upstream aborts", handler: mount(proxy), send: request("/abort")},
		exchange{name: "upgrade", handler: mount(proxy), talk: func(c *client) {
			c.send(request("/upgrade", "Connection: Upgrade", "Upgrade: echo"))
			c.until("\r\n\r\n")
			c.send("hello\n")
			c.until("echo hello\n")
			c.finish()
		}},
	))
}
