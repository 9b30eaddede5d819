package servetest_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/servetest"
)

// long is how long a test waits for what must come.
const long = 20 * time.Second

// started is what a test does with a server of httptest or servetest.
type started interface {
	Close()
	CloseClientConnections()
	Certificate() *x509.Certificate
	Client() *http.Client
}

// asked is how a server is to be started.
type asked struct {
	scheme string // http or https
	http2  bool
	tls    *tls.Config // nil: nothing is set
	quiet  bool        // what goes wrong is not logged
}

// under is a server that is tried.
type under struct {
	started
	url  string
	addr string
	tls  *tls.Config
}

// startStandard and startOurs are the same but for the package of the server.
func startStandard(a asked, h http.Handler) under {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2, s.TLS = a.http2, a.tls
	if a.quiet {
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
	}
	if a.scheme == "https" {
		s.StartTLS()
	} else {
		s.Start()
	}
	return under{s, s.URL, s.Listener.Addr().String(), s.TLS}
}

func startOurs(a asked, h http.Handler) under {
	s := servetest.NewUnstartedServer(h)
	s.EnableHTTP2, s.TLS = a.http2, a.tls
	if a.quiet {
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
	}
	if a.scheme == "https" {
		s.StartTLS()
	} else {
		if a.http2 {
			s.Config.Protocols = unencrypted()
		}
		s.Start()
		if a.http2 {
			s.Client().Transport.(*http.Transport).Protocols = unencrypted()
		}
	}
	return under{s, s.URL, s.Listener.Addr().String(), s.TLS}
}

func unencrypted() *http.Protocols {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &p
}

// body is a test that is moved over: it starts a server and notes what it sees.
type body func(t *testing.T, start func(http.Handler) under) []string

// TestAlike runs the same bodies on httptest and servetest.
func TestAlike(t *testing.T) {
	plain := asked{scheme: "http", quiet: true}
	private := asked{scheme: "https", quiet: true}
	http2 := asked{scheme: "https", http2: true, quiet: true}
	own := asked{scheme: "https", tls: &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}}
	for _, tc := range []struct {
		name string
		run  body
		ways []asked
	}{
		{"Close while a handler runs", closeWhileHandling, []asked{plain, private, http2}},
		{"the answer of a handler that runs at Close", answerWhileClosing, []asked{plain, private}}, // by HTTP/2 httptest cuts it off
		{"Close while a handler streams", closeWhileStreaming, []asked{plain, private}},
		{"Close beside quiet connections", closeQuiet, []asked{plain, private, http2}},
		{"Close beside a hijacked connection", closeHijacked, []asked{plain}},
		{"Close after a panic", closePanicked, []asked{plain, private, http2}},
		{"Close, and Close again", closeTwice, []asked{plain, private, http2}},
		{"CloseClientConnections while a handler waits", cutWaiting, []asked{plain, private, http2}},
		{"CloseClientConnections of quiet ones", cutQuiet, []asked{plain, private, http2}},
		{"Certificate", certificate, []asked{plain, private, http2, own}},
		{"Client", client, []asked{plain, private, http2}},
		{"a client with a Dial of the test's", dialled, []asked{plain, private, http2}},
		{"EnableHTTP2", protocols, []asked{plain, private, http2}},
	} {
		for _, a := range tc.ways {
			t.Run(fmt.Sprintf("%s/%s, HTTP2=%v, own=%v", tc.name, a.scheme, a.http2, a.tls != nil), func(t *testing.T) {
				want := tc.run(t, func(h http.Handler) under { return startStandard(a, h) })
				got := tc.run(t, func(h http.Handler) under { return startOurs(a, h) })
				if !reflect.DeepEqual(got, want) {
					t.Errorf("got  %q\nwant %q", got, want)
				}
				t.Logf("%q", want)
			})
		}
	}
}

// get says what came of a request.
func get(c *http.Client, url string) string {
	res, err := c.Get(url)
	if err != nil {
		return "no answer"
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return "a part of an answer"
	}
	return fmt.Sprintf("%s %d %s", res.Proto, res.StatusCode, text)
}

// ending waits until addr takes no connections: somebody closes the server.
func ending(addr string) bool {
	for begun := time.Now(); time.Since(begun) < long; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return true
		}
		c.Close()
	}
	return false
}

// returns reports whether f does.
func returns(f func()) bool {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(long):
		return false
	}
}

// endWhileHandling closes a server while a handler runs, and returns whether
// Close returned, whether the handler had by then, and what the client got.
func endWhileHandling(start func(http.Handler) under) (closed, done bool, answer string) {
	entered := make(chan struct{})
	var left atomic.Bool
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		ending(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		time.Sleep(100 * time.Millisecond) // Close that does not wait would return meanwhile
		left.Store(true)
		io.WriteString(w, "served")
	}))
	answered := make(chan string, 1)
	go func() { answered <- get(s.Client(), s.url) }()
	<-entered
	closed = returns(s.Close)
	return closed, left.Load(), <-answered
}

func closeWhileHandling(_ *testing.T, start func(http.Handler) under) []string {
	closed, done, _ := endWhileHandling(start)
	return []string{fmt.Sprintf("closed %v, handler done %v", closed, done)}
}

func answerWhileClosing(_ *testing.T, start func(http.Handler) under) []string {
	_, _, answer := endWhileHandling(start)
	return []string{answer}
}

// TestCloseAnswersHTTP2 does not lose the answer of a handler that runs at Close,
// as httptest does.
func TestCloseAnswersHTTP2(t *testing.T) {
	for _, a := range []asked{{scheme: "https", http2: true}, {scheme: "http", http2: true}} {
		closed, done, answer := endWhileHandling(func(h http.Handler) under { return startOurs(a, h) })
		if want := "HTTP/2.0 200 served"; !closed || !done || answer != want {
			t.Errorf("%s: closed %v, handler done %v, answer %q, want true, true, %q", a.scheme, closed, done, answer, want)
		}
	}
}

func closeWhileStreaming(t *testing.T, start func(http.Handler) under) []string {
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first ")
		http.NewResponseController(w).Flush()
		ending(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		time.Sleep(100 * time.Millisecond)
		io.WriteString(w, "second")
	}))
	res, err := s.Client().Get(s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	ok := returns(s.Close)
	text, err := io.ReadAll(res.Body)
	return []string{fmt.Sprintf("closed %v: %s, %v", ok, text, err)}
}

// closeQuiet has a connection that never spoke, and one that did.
func closeQuiet(t *testing.T, start func(http.Handler) under) []string {
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served") }))
	silent, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	first := get(s.Client(), s.url)
	ok := returns(s.Close)
	silent.SetReadDeadline(time.Now().Add(long))
	_, err = silent.Read(make([]byte, 1))
	return []string{first, fmt.Sprintf("closed %v", ok), fmt.Sprint(err), get(s.Client(), s.url)}
}

func closeHijacked(t *testing.T, start func(http.Handler) under) []string {
	taken := make(chan net.Conn, 1)
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		taken <- nc
	}))
	mine, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	mine.SetDeadline(time.Now().Add(long))
	fmt.Fprintf(mine, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	theirs := <-taken
	defer theirs.Close()
	ok := returns(s.Close)
	fmt.Fprintf(theirs, "still here\n")
	line, err := bufio.NewReader(mine).ReadString('\n')
	return []string{fmt.Sprintf("closed %v: %q, %v", ok, line, err)}
}

func closePanicked(t *testing.T, start func(http.Handler) under) []string {
	s := start(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") }))
	return []string{get(s.Client(), s.url), fmt.Sprintf("closed %v", returns(s.Close))}
}

func closeTwice(t *testing.T, start func(http.Handler) under) []string {
	s := start(http.NotFoundHandler())
	one := returns(s.Close)
	return []string{fmt.Sprintf("closed %v, closed %v", one, returns(s.Close))}
}

func cutWaiting(t *testing.T, start func(http.Handler) under) []string {
	entered := make(chan struct{}, 1)
	told := make(chan bool, 1)
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/wait" {
			io.WriteString(w, "served")
			return
		}
		entered <- struct{}{}
		select {
		case <-r.Context().Done():
			told <- true
		case <-time.After(long):
			told <- false
		}
	}))
	answer := make(chan string, 1)
	// A POST is not sent anew when its connection ends.
	go func() {
		res, err := s.Client().Post(s.url+"/wait", "", nil)
		if err == nil {
			res.Body.Close()
		}
		answer <- fmt.Sprintf("answered %v", err == nil)
	}()
	<-entered
	s.CloseClientConnections()
	seen := []string{<-answer, fmt.Sprintf("the handler was told: %v", <-told), get(s.Client(), s.url)}
	return append(seen, fmt.Sprintf("closed %v", returns(s.Close)))
}

func cutQuiet(t *testing.T, start func(http.Handler) under) []string {
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served") }))
	defer s.Close()
	one := get(s.Client(), s.url)
	again := reused(t, s)
	s.CloseClientConnections()
	return []string{one, fmt.Sprintf("reused %v, after the cut %v", again, reused(t, s))}
}

// reused reports whether a request went over a connection that was there. It asks
// again if there is no answer: a client may not know yet that a connection ended.
func reused(t *testing.T, s under) (yes bool) {
	t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { yes = info.Reused }}
	for begun := time.Now(); time.Since(begun) < long; {
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", s.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := s.Client().Do(req); err == nil {
			defer res.Body.Close()
			if _, err := io.Copy(io.Discard, res.Body); err == nil {
				return yes
			}
		}
	}
	t.Fatal("no request was answered")
	return false
}

func certificate(t *testing.T, start func(http.Handler) under) []string {
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served") }))
	defer s.Close()
	seen := []string{get(s.Client(), s.url)}
	cert := s.Certificate()
	if cert == nil {
		return append(seen, "no certificate")
	}
	res, err := s.Client().Get(s.url)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return append(seen, fmt.Sprintf("certificate of %v for %v %v, the one that is shown: %v, configured: %d",
		cert.Subject, cert.DNSNames, cert.IPAddresses, cert.Equal(res.TLS.PeerCertificates[0]), len(s.tls.Certificates)))
}

func client(t *testing.T, start func(http.Handler) under) []string {
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }))
	defer s.Close()
	scheme := "http://"
	if s.tls != nil {
		scheme = "https://"
	}
	var seen []string
	for _, host := range []string{"example.com", "www.example.com"} {
		seen = append(seen, get(s.Client(), scheme+host+"/"))
	}
	first, second := s.Client(), s.Client()
	return append(seen, fmt.Sprintf("the same twice: %v, the same client: %v", get(first, s.url) == get(second, s.url), first == second))
}

// dialled has the client connect by a function of the test's, which sends one name to the
// server and refuses all else.
func dialled(t *testing.T, start func(http.Handler) under) []string {
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }))
	defer s.Close()
	scheme, port := "http://", ":80"
	if s.tls != nil {
		scheme, port = "https://", ":443"
	}
	var calls atomic.Int64
	tr := s.Client().Transport.(*http.Transport)
	//lint:ignore SA1019 old tests still set it
	tr.Dial = func(network, addr string) (net.Conn, error) {
		calls.Add(1)
		if addr != "example.com"+port {
			return nil, fmt.Errorf("%s is not to be had", addr)
		}
		return net.Dial(network, s.addr)
	}
	seen := []string{get(s.Client(), scheme+"example.com/"), get(s.Client(), scheme+"www.example.com/")}
	return append(seen, fmt.Sprintf("the test's own was asked: %v", calls.Load() > 0))
}

// protocols asks by the server's client and by one that speaks HTTP/1.1 alone.
func protocols(t *testing.T, start func(http.Handler) under) []string {
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	defer s.Close()
	seen := []string{get(s.Client(), s.url)}
	if s.tls == nil {
		return seen
	}
	for _, offer := range [][]string{nil, {"http/1.1"}, {"h2"}, {"h2", "http/1.1"}} {
		nc, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: offer})
		if err != nil {
			seen = append(seen, fmt.Sprintf("%q: refused", offer))
			continue
		}
		seen = append(seen, fmt.Sprintf("%q: %q", offer, nc.ConnectionState().NegotiatedProtocol))
		nc.Close()
	}
	return append(seen, fmt.Sprintf("offered %q", s.tls.NextProtos))
}

// selfSigned makes a certificate that is not httptest's.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sketch := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"own.test"},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, sketch, sketch, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
