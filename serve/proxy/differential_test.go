package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/proxy"
)

// ledger is what a proxy has sent, as it understood it: each request with a tag of its own.
// What an upstream reads is held against it.
type ledger struct {
	proxy  http.RoundTripper
	name   string
	active atomic.Int64 // sendings, and readings by the upstream

	mu     sync.Mutex
	n      int
	sent   map[string]*entry // the last ones
	faults []string
}

// kept is how many requests are known: upstreams may read one after its client has gone.
const kept = 1000

type entry struct {
	method, target string
	body           bytes.Buffer
	read           int // how often the upstream has read it
}

// RoundTrip sends a request with a tag, and notes it.
func (l *ledger) RoundTrip(r *http.Request) (*http.Response, error) {
	l.active.Add(1)
	defer l.active.Add(-1)
	e := &entry{method: r.Method, target: r.URL.RequestURI()}
	l.mu.Lock()
	tag := strconv.Itoa(l.n)
	l.sent[tag] = e
	delete(l.sent, strconv.Itoa(l.n-kept))
	l.n++
	l.mu.Unlock()
	tagged := r.Clone(r.Context())
	tagged.Header["X-Tag"] = []string{tag}
	if r.Body != nil {
		tagged.Body = &noted{r.Body, l, e}
	}
	return l.proxy.RoundTrip(tagged)
}

// noted notes what is read of a body.
type noted struct {
	io.ReadCloser
	l *ledger
	e *entry
}

func (n *noted) Read(p []byte) (int, error) {
	k, err := n.ReadCloser.Read(p)
	n.l.mu.Lock()
	n.e.body.Write(p[:k])
	n.l.mu.Unlock()
	return k, err
}

// check holds a request that the upstream has read against what was sent.
func (l *ledger) check(tag, method, target, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.sent[tag]
	switch {
	case e == nil:
		l.faults = append(l.faults, fmt.Sprintf("%s read %s %s, which the proxy has not sent", l.name, method, target))
		return
	case e.method != method || e.target != target || e.body.String() != body:
		l.faults = append(l.faults, fmt.Sprintf("%s read %s %s with %q, but was sent %s %s with %q", l.name, method, target, body, e.method, e.target, &e.body))
	case e.read > 0:
		l.faults = append(l.faults, fmt.Sprintf("%s read %s %s twice", l.name, method, target))
	}
	e.read++
}

// ServeHTTP is an upstream.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.active.Add(1)
	defer l.active.Add(-1)
	body, err := io.ReadAll(r.Body)
	if err == nil { // else the proxy has broken off, as its client has
		tag := ""
		for _, v := range r.Header["X-Tag"] {
			tag += v
		}
		l.check(tag, r.Method, r.RequestURI, string(body))
	}
	_, _ = io.WriteString(w, "ok")
}

// take returns what was wrong since the last time, once nothing is under way.
func (l *ledger) take() []string {
	for i := 0; l.active.Load() > 0 && i < 200; i++ {
		time.Sleep(time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	faults := l.faults
	l.faults = nil
	return faults
}

// rig is a proxy between a server's engine and an upstream's.
type rig struct {
	address string
	ledger  *ledger
	rec     *recorder // nil: the upstream is another
}

// newRig starts one. The upstream named strict is the recorder.
func newRig(f *testing.F, front, upstream string) *rig {
	f.Helper()
	serveBy := func(engine string, h http.Handler) string {
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		if engine == "serve" {
			s := &serve.Server{}
			s.Handler = h
			go func() { _ = s.Serve(l) }()
			f.Cleanup(func() { s.Close() })
		} else {
			s := &http.Server{Handler: h}
			go func() { _ = s.Serve(l) }()
			f.Cleanup(func() { s.Close() })
		}
		return l.Addr().String()
	}
	r := &rig{ledger: &ledger{proxy: proxy.NewTransport(time.Second), name: front + " before " + upstream, sent: map[string]*entry{}}}
	var at string
	if upstream == "strict" {
		r.rec = &recorder{check: r.ledger.check}
		at = r.rec.serve(f)
	} else {
		at = serveBy(upstream, r.ledger)
	}
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: at}}, Panic: 1}))
	f.Cleanup(pool.Close)
	r.address = serveBy(front, must(proxy.New(proxy.Options{Pool: pool, Name: "edge-1", Transport: r.ledger})))
	return r
}

// send sends bytes, and returns what went wrong behind the proxy.
func (r *rig) send(data []byte) []string {
	c := must(net.Dial("tcp", r.address))
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = c.Write(data) // the proxy may not want all of it
	_ = c.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, c)
	faults := r.ledger.take()
	if r.rec != nil {
		r.rec.mu.Lock()
		faults = append(faults, r.rec.faults...)
		r.rec.faults, r.rec.seen = nil, nil
		r.rec.mu.Unlock()
	}
	return faults
}

// FuzzFraming sends bytes to proxies on both engines, before upstreams of both and one that
// reads as strictly as RFC 9112 allows: each reads the requests that the proxy meant to
// send, with their bodies, and no others.
func FuzzFraming(f *testing.F) {
	rigs := []*rig{newRig(f, "serve", "strict"), newRig(f, "serve", "net/http"), newRig(f, "serve", "serve"), newRig(f, "net/http", "strict")}
	for _, vector := range vectors() {
		f.Add([]byte("POST /outer HTTP/1.1\r\nHost: outer\r\n" + vector))
	}
	f.Add([]byte("GET /a?b HTTP/1.1\r\nHost: x\r\n\r\nPUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3;e=1\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\nHEAD / HTTP/1.0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 16<<10 || bytes.Contains(bytes.ToLower(data), []byte("expect")) {
			t.Skip("SKIPPED: too long, or waits for 100 Continue, a second each")
		}
		for _, r := range rigs {
			for _, fault := range r.send(data) {
				t.Errorf("%q: %s", data, fault)
			}
		}
	})
}
