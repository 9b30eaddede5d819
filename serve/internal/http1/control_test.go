package http1_test

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A control is net/http's server, over connections whose bytes are all there
// from the start.
type control struct {
	conns  chan net.Conn
	closed chan struct{}
	server *http.Server

	// Of the one connection being served.
	requests []request
	broken   bool // the last one's body could not be read
}

func newControl(t testing.TB) *control {
	c := &control{conns: make(chan net.Conn), closed: make(chan struct{})}
	c.server = &http.Server{
		Handler:                      http.HandlerFunc(c.handle),
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.server.Serve(c)
	}()
	t.Cleanup(func() {
		c.server.Close()
		<-done
	})
	return c
}

// Accept, Close and Addr make a listener of it.
func (c *control) Accept() (net.Conn, error) {
	select {
	case conn := <-c.conns:
		return conn, nil
	case <-c.closed:
		return nil, net.ErrClosed
	}
}
func (c *control) Close() error   { close(c.closed); return nil }
func (c *control) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// handle notes a request, and ends the connection after those that ours takes
// for the last.
func (c *control) handle(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	seen := request{
		method: r.Method, target: r.RequestURI, proto: r.Proto, host: r.Host, url: r.URL.String(),
		length: r.ContentLength, body: string(b), fields: r.Header.Clone(),
	}
	switch {
	case r.Method == "PRI":
		seen.length = 0
	case err == nil && r.ContentLength < 0:
		seen.trailer = http.Header{}
		for name, values := range r.Trailer {
			if len(values) > 0 {
				seen.trailer[name] = values
			}
		}
	}
	c.requests = append(c.requests, seen)
	c.broken = err != nil
	if err != nil || r.Method == "CONNECT" || r.Method == "PRI" || hasToken(r.Header, "upgrade") {
		w.Header().Set("Connection", "close")
	}
}

func hasToken(h http.Header, token string) bool {
	for _, line := range h["Connection"] {
		for item := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(item, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// read returns what net/http makes of in while the client may still say more.
func (c *control) read(in []byte) outcome {
	c.requests, c.broken = nil, false
	conn := &script{in: bytes.NewReader(in), done: make(chan struct{}), poked: make(chan struct{}, 1)}
	c.conns <- conn
	<-conn.done
	out := outcome{verdict: accept, requests: c.requests, cut: c.broken}
	answers := conn.out.String()
	if conn.starved {
		answers = answers[:conn.answered]
	}
	switch {
	case c.broken && conn.starved:
		out.verdict = body
	case c.broken:
		out.verdict = reject
	case len(out.requests) == 0:
		out.verdict = incomplete
	}
	for line := range strings.SplitSeq(answers, "\r\n") {
		code, ok := strings.CutPrefix(line, "HTTP/1.1 ")
		if !ok || len(code) < 3 || code[0] < '4' {
			continue
		}
		out.status, _ = strconv.Atoi(code[:3])
		out.verdict = reject
		if out.status == http.StatusExpectationFailed {
			out.verdict = accept // it has read the request
		}
	}
	return out
}

// A script is a connection on which a client says something and then waits.
// When the server waits too, which is when it reads for more than to learn of a
// client's going, the script notes what was answered so far and
// breaks the connection: what the server makes of half a line then is no
// verdict.
type script struct {
	in       *bytes.Reader
	out      bytes.Buffer
	starved  bool
	answered int
	once     sync.Once
	done     chan struct{}
	poked    chan struct{} // by a read deadline that has passed
}

func (s *script) Read(p []byte) (int, error) {
	if s.in.Len() > 0 {
		return s.in.Read(p)
	}
	if len(p) == 1 && inBackground() {
		select {
		case <-s.poked:
			return 0, os.ErrDeadlineExceeded
		case <-s.done:
			return 0, net.ErrClosed
		}
	}
	if !s.starved {
		s.starved, s.answered = true, s.out.Len()
	}
	return 0, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
}

// inBackground reports whether its caller's caller is the read of one byte beside
// a handler. A buffer with room for one byte more is filled by such a read too.
func inBackground() bool {
	callers := make([]uintptr, 8)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	frame, _ := frames.Next()
	return frame.Function == "net/http.(*connReader).backgroundRead"
}

func (s *script) Write(p []byte) (int, error)   { return s.out.Write(p) }
func (s *script) LocalAddr() net.Addr           { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (s *script) RemoteAddr() net.Addr          { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
func (s *script) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }
func (s *script) SetReadDeadline(t time.Time) error {
	select {
	case <-s.poked:
	default:
	}
	if !t.IsZero() && t.Before(time.Now()) {
		s.poked <- struct{}{}
	}
	return nil
}
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}
