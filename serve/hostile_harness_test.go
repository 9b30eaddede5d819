package serve_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// long bounds every wait of these tests. Nothing is asserted of how long
// something takes within it.
const long = 30 * time.Second

// fort is a server under attack.
type fort struct {
	*serve.Server
	t    testing.TB
	addr string
	log  record
	err  chan error // what Serve returned
}

// fortify serves s on a loopback port, by TLS if s has a TLSConfig. When the
// test ends it is closed, and what goroutines of the server are left then are
// the test's failure.
func fortify(t testing.TB, s *serve.Server) *fort {
	t.Helper()
	t.Cleanup(func() { noLeftovers(t) })
	return raise(t, s)
}

// raise is fortify for tests with several servers, which look for leftovers
// once all are closed.
func raise(t testing.TB, s *serve.Server) *fort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fort{Server: s, t: t, addr: l.Addr().String(), err: make(chan error, 1)}
	s.ErrorLog = log.New(&f.log, "", 0)
	go func() {
		if s.TLSConfig != nil {
			f.err <- s.ServeTLS(l, "", "")
		} else {
			f.err <- s.Serve(l)
		}
	}()
	t.Cleanup(f.raze)
	return f
}

func (f *fort) raze() {
	f.Close()
	select {
	case err := <-f.err:
		if err != http.ErrServerClosed {
			f.t.Errorf("Serve returned %v, want %v", err, http.ErrServerClosed)
		}
	case <-time.After(long):
		f.t.Errorf("Serve did not return after Close")
	}
}

// quiet fails the test if the server has logged anything.
func (f *fort) quiet() {
	f.t.Helper()
	if said := f.log.text(); said != "" {
		f.t.Errorf("the server logged, want nothing:\n%.2000s", said)
	}
}

// dial connects, within TLS if the server speaks it.
func (f *fort) dial() net.Conn {
	f.t.Helper()
	nc, err := f.reach()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { nc.Close() })
	return nc
}

// reach is dial for callers that close the connection themselves.
func (f *fort) reach() (net.Conn, error) {
	nc, err := net.Dial("tcp", f.addr)
	if err != nil {
		return nil, err
	}
	nc.SetDeadline(time.Now().Add(long))
	if f.TLSConfig == nil {
		return nc, nil
	}
	return tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}), nil
}

// noLeftovers waits for the goroutines of servers to end; those that do not are
// the test's failure.
func noLeftovers(t testing.TB) {
	t.Helper()
	var left []string
	for range 500 {
		if left = serverStacks(); len(left) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("goroutines of servers are left:\n%s", strings.Join(left, "\n\n"))
}

// serverStacks returns the stacks of goroutines that servers started. Those of
// the standard library's server, which gets HTTP/2, are among them.
func serverStacks() []string {
	var left []string
	for _, stack := range stacks() {
		_, by, ok := strings.Cut(stack, "\ncreated by ")
		if ok && (strings.HasPrefix(by, "github.com/tarehq/tare/serve.") || strings.HasPrefix(by, "net/http.(*Server)") ||
			strings.HasPrefix(by, "net/http.(*http2serverConn)") || strings.HasPrefix(by, "golang.org/x/net/http2")) {
			left = append(left, stack)
		}
	}
	return left
}

func stacks() []string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return strings.Split(string(buf[:n]), "\n\n")
		}
		buf = make([]byte, 2*len(buf))
	}
}

// record keeps what is logged.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// loopbackTLS is a configuration with a certificate of its own. Its key is of
// the kind that costs a handshake least.
var loopbackTLS = sync.OnceValue(func() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
})

// comes polls until ok holds.
func comes(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(long); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// each runs f for the server as it is by default and with Reuse.
func each(t *testing.T, f func(t *testing.T, reuse bool)) {
	for name, reuse := range map[string]bool{"safe": false, "reuse": true} {
		t.Run(name, func(t *testing.T) { f(t, reuse) })
	}
}
