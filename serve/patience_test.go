//go:build linux

package serve_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestSmallBodies sends small bodies on one connection, each a moment after its
// head: together they are slower than MinRate, but none of them is slow.
func TestSmallBodies(t *testing.T) {
	f := fortify(t, &serve.Server{Limits: serve.Limits{StallTimeout: time.Second}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "ok")
	})})
	nc := f.dial()
	br := bufio.NewReader(nc)
	for i := range 15 {
		io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
		time.Sleep(100 * time.Millisecond)
		io.WriteString(nc, "hi")
		if err := hearOK(br); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
}

// TestHeldBack has pipelined requests answered by handlers of which some take as long as
// the sweep: it sends the answers before theirs while theirs begin, and go on.
func TestHeldBack(t *testing.T) {
	for name, reuse := range map[string]bool{"safe": false, "reuse": true} {
		t.Run(name, func(t *testing.T) { heldBack(t, reuse) })
	}
}

func heldBack(t *testing.T, reuse bool) {
	const requests = 300
	part := func(n int) string { // of answer n; where that begins at once, more than is held back of a body
		if n%5 == 0 {
			return strings.Repeat("/"+strconv.Itoa(n), 4*n)
		}
		return strings.Repeat("/"+strconv.Itoa(n), n)
	}
	f := fortify(t, &serve.Server{Reuse: reuse, Limits: serve.Limits{ShutdownGrace: 8 * time.Millisecond}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Path[1:])
		time.Sleep(time.Duration(n%5) * time.Millisecond)
		if n%7 == 0 {
			w.WriteHeader(http.StatusEarlyHints)
		}
		if n%11 == 0 {
			w.WriteHeader(http.StatusOK)
			time.Sleep(time.Duration(n%6) * time.Millisecond)
			http.NewResponseController(w).Flush()
		}
		for range 1 + n%3 {
			io.WriteString(w, part(n))
			time.Sleep(time.Duration(n%4) * time.Millisecond)
		}
	})})
	nc := f.dial()
	var all strings.Builder
	for n := range requests {
		fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", n)
	}
	go io.WriteString(nc, all.String())
	br := bufio.NewReader(nc)
	for n := range requests {
		var body []byte
		res, err := http.ReadResponse(br, nil)
		for err == nil && res.StatusCode == http.StatusEarlyHints {
			res, err = http.ReadResponse(br, nil)
		}
		if err == nil {
			body, err = io.ReadAll(res.Body)
		}
		if want := strings.Repeat(part(n), 1+n%3); err != nil || string(body) != want {
			t.Fatalf("answer %d: %.40q and error %v, want %.40q", n, body, err, want)
		}
	}
}

// TestLateBehind has the handler of a pipelined request take longer than WriteTimeout:
// the answer before its own is sent, its own is not, though a request waits behind it.
func TestLateBehind(t *testing.T) {
	const limit = 600 * time.Millisecond
	f := fortify(t, &serve.Server{WriteTimeout: limit, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			time.Sleep(2 * limit)
		}
		io.WriteString(w, "ok")
		if r.URL.Path == "/begun" {
			time.Sleep(2 * limit)
		}
	})})
	for _, late := range []string{"/late", "/begun"} {
		nc := f.dial()
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET "+late+" HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
		br := bufio.NewReader(nc)
		if err := hearOK(br); err != nil {
			t.Errorf("the answer before %s: %v", late, err)
		}
		if err := hearOK(br); err == nil {
			t.Errorf("the answer to %s was sent, want none", late)
		}
	}
}

// TestHeadBehindAnswer has a client take long for an answer while a part of its
// next request is in the server's buffer and the rest in the kernel's: that is not
// a slow head.
func TestHeadBehindAnswer(t *testing.T) {
	const requests, answer = 60, 3000
	body := bytes.Repeat([]byte("x"), answer)
	f := fortify(t, &serve.Server{ReadHeaderTimeout: 500 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(answer))
		w.Write(body)
	}), ConnState: func(nc net.Conn, s http.ConnState) {
		if s == http.StateNew {
			nc.(*net.TCPConn).SetWriteBuffer(4 << 10)
		}
	}})
	pads := []int{2050, 2100, 2150} // two heads are more than the buffer
	var slow []net.Conn
	for _, pad := range pads {
		nc := f.dial()
		nc.(*net.TCPConn).SetReadBuffer(4 << 10)
		go io.WriteString(nc, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("p", pad)+"\r\n\r\n", requests))
		slow = append(slow, nc)
	}
	time.Sleep(time.Second)
	for i, nc := range slow {
		br := bufio.NewReader(nc)
		for n := range 10 { // all were lost by the reset
			res, err := http.ReadResponse(br, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
			}
			if err != nil {
				t.Fatalf("heads with %d bytes more: answer %d: %v", pads[i], n+1, err)
			}
		}
		nc.Close()
	}
}

// TestMalformedBodyContext sends what are no chunks: the client is there yet, and
// the request's context goes on.
func TestMalformedBodyContext(t *testing.T) {
	for name, in := range map[string]string{
		"size":    "zz\r\n",
		"trailer": "0\r\na b: c\r\n\r\n",
		"long":    "0\r\n" + strings.Repeat("a: "+strings.Repeat("b", 1000)+"\r\n", 80),
	} {
		t.Run(name, func(t *testing.T) {
			f := fortify(t, &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Context().Done()
				if _, err := io.ReadAll(r.Body); err == nil {
					t.Error("the body was read without an error")
				}
				if err := r.Context().Err(); err != nil {
					t.Errorf("the context ended: %v", err)
				}
				io.WriteString(w, "ok")
			})})
			nc := f.dial()
			io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+in)
			told(t, nc)
		})
	}
}

// TestManyLines bounds what a head of very many lines costs before it is refused.
func TestManyLines(t *testing.T) {
	f := fortify(t, &serve.Server{Handler: http.NotFoundHandler()})
	head := []byte("GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a:\r\n", 15000) + "\r\n")
	res := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			nc, err := f.reach()
			if err != nil {
				b.Fatal(err)
			}
			nc.Write(head)
			if res, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil || res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				b.Fatal(res, err)
			}
			nc.Close()
		}
	})
	if per, most := res.AllocedBytesPerOp(), int64(600<<10); per > most {
		t.Errorf("%d bytes are allocated for a head of %d, want at most %d", per, len(head), most)
	}
}

// TestStallBehindHead has a client take no answers while a part of its next request is
// in the server's buffer: it is cut off, also where a head may take for ever.
func TestStallBehindHead(t *testing.T) {
	var ended atomic.Bool
	f := fortify(t, &serve.Server{ReadHeaderTimeout: -1, Limits: serve.Limits{StallTimeout: 300 * time.Millisecond}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 2000))
	}), ConnState: func(nc net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			nc.(*net.TCPConn).SetWriteBuffer(4 << 10)
		case http.StateClosed:
			ended.Store(true)
		}
	}})
	nc := f.dial()
	nc.(*net.TCPConn).SetReadBuffer(4 << 10)
	go io.WriteString(nc, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("p", 2100)+"\r\n\r\n", 1000))
	comes(t, "the connection's end", ended.Load)
}

// TestFairBehindListeners has clients read long answers slowly, yet well above the least
// rate, over connections that a listener has wrapped. The kernel holds megabytes of them
// for seconds, and takes no more meanwhile.
func TestFairBehindListeners(t *testing.T) {
	wraps := map[string]func(net.Conn) net.Conn{
		"embedded": func(nc net.Conn) net.Conn { return &struct{ net.Conn }{nc} },
		"twice":    func(nc net.Conn) net.Conn { return struct{ net.Conn }{struct{ *net.TCPConn }{nc.(*net.TCPConn)}} },
		"method":   func(nc net.Conn) net.Conn { return telling{nc, func() net.Conn { return nc }} },
		"tallied": func(nc net.Conn) net.Conn {
			t := &tallied{Conn: nc}
			go func() { t.n++ }()
			return t
		},
	}
	var all sync.WaitGroup // their clients sleep
	for name, wrap := range wraps {
		for _, secure := range []bool{false, true} {
			all.Go(func() {
				t.Run(fmt.Sprintf("%s, TLS %t", name, secure), func(t *testing.T) { readSlowly(t, wrap, secure) })
			})
		}
	}
	all.Wait()
}

// readSlowly wants one such client to be served for as long as it reads.
func readSlowly(t *testing.T, wrap func(net.Conn) net.Conn, secure bool) {
	cut := make(chan error, 1) // the kernel hands on what it has all the same: the handler alone is told
	s := &serve.Server{Limits: serve.Limits{StallTimeout: time.Second, MinRate: 1000}, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for piece := make([]byte, 1<<10); ; {
			if _, err := w.Write(piece); err != nil {
				cut <- err
				return
			}
		}
	})}
	if secure {
		s.TLSConfig = loopbackTLS()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		if secure {
			served <- s.ServeTLS(wrapping{l, wrap}, "", "")
		} else {
			served <- s.Serve(wrapping{l, wrap})
		}
	}()
	defer func() { s.Close(); <-served }()
	nc := slowly(t, l.Addr().String(), true)
	if secure {
		nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
	}
	if _, err := io.WriteString(nc, "GET /big HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	some := make([]byte, 4<<10)
	for range 100 { // 4 s and more
		if _, err := io.ReadFull(nc, some); err != nil {
			t.Fatalf("reading an answer slowly: %v", err)
		}
		select {
		case err := <-cut:
			t.Fatalf("who reads slowly is cut off: %v", err)
		case <-time.After(40 * time.Millisecond):
		}
	}
}

// wrapping is a listener whose connections are wrapped.
type wrapping struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (w wrapping) Accept() (net.Conn, error) {
	nc, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return w.wrap(nc), nil
}

// telling is a connection that tells by a method what it wraps, and no other way.
type telling struct {
	plainConn
	wrapped func() net.Conn
}

type plainConn net.Conn

func (t telling) NetConn() net.Conn { return t.wrapped() }

// tallied is a connection of which somebody else than the server keeps a tally.
type tallied struct {
	Tally
	net.Conn
}

// Tally is exported, so that by its name it might be what is wrapped.
type Tally struct{ n int }

// TestAskedForWhatIsWithin has connections that wait, and that panic, when they are
// asked for what they wrap: others do not wait with them, and the panic is no loss.
func TestAskedForWhatIsWithin(t *testing.T) {
	release := make(chan struct{})
	answers := []func() net.Conn{
		func() net.Conn { <-release; return nil },
		func() net.Conn { panic("not before the first byte") },
	}
	s := &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		n := 0
		served <- s.Serve(wrapping{l, func(nc net.Conn) net.Conn {
			n++
			return telling{nc, answers[n-1]}
		}})
	}()
	defer func() { s.Close(); <-served }()
	var waits []*bufio.Reader
	for range answers {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(long))
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		waits = append(waits, bufio.NewReader(nc))
	}
	if err := hearOK(waits[1]); err != nil {
		t.Errorf("beside a connection that waits: %v", err)
	}
	close(release)
	if err := hearOK(waits[0]); err != nil {
		t.Errorf("the one that waited: %v", err)
	}
}

// TestStallIsNotEarly has clients stall that begin at any moment of the clock that
// stalls are told by: none is ended before its time.
func TestStallIsNotEarly(t *testing.T) {
	const limit = 800 * time.Millisecond // the clock ticks each eighth of it
	f := fortify(t, &serve.Server{Limits: serve.Limits{StallTimeout: limit}, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	})})
	const n = 8
	took := make(chan time.Duration, n)
	for i := range n {
		nc := f.dial()
		go func() {
			time.Sleep(time.Duration(i) * limit / 8 / n)
			began := time.Now()
			io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
			io.Copy(io.Discard, nc)
			took <- time.Since(began)
		}()
	}
	for range n {
		if d := <-took; d < limit {
			t.Errorf("a client that stalled was ended after %v, want no less than %v", d, limit)
		}
	}
}
