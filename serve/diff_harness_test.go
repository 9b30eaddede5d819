package serve_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// patience bounds every wait of these tests. Nothing is measured with it: a
// wait that reaches it is a failure.
const patience = 30 * time.Second

// server is what http.Server and serve.Server have in common.
type server interface {
	Serve(net.Listener) error
	ServeTLS(l net.Listener, certFile, keyFile string) error
	Shutdown(context.Context) error
	Close() error
	RegisterOnShutdown(func())
	SetKeepAlivesEnabled(bool)
}

// side is one of the servers under comparison.
type side struct {
	name   string
	reuses bool
	make   func(*http.Server) server
}

// carriage is how the client's bytes reach the server.
type carriage string

const (
	whole     carriage = "whole"
	bytewise  carriage = "bytewise"
	encrypted carriage = "encrypted"
	veiled    carriage = "veiled" // the listener's connections are not known to be TCP
)

// exchange is one conversation that both sides must hold alike.
type exchange struct {
	name    string
	handler act                          // nil: see
	config  func(*http.Server, *journal) // nil: the zero server
	before  func(server)                 // nil: nothing; called when the server is ready
	again   func(outcome) bool           // nil: never; whether http.Server came too late for its outcome to tell anything
	send    string
	methods string        // methods of the requests in send, to frame their answers; "": the first word of send
	talk    func(*client) // nil: send, read the answers, end
	by      []carriage    // nil: all of them
	keeps   bool          // the handler keeps the request, which Reuse forbids
	logs    int           // entries that the log must get; they may come after the last byte
	row     string        // row of testdata/differences.md that signs a difference
	lenient serve.Lenient // serve's switches; with row: those that undo the difference
	want    string        // with row: what serve's outcome must hold
	wantNot string        // with row: what serve's outcome must not hold
}

// act is a handler that may note what it sees. Both sides run the same one.
type act func(j *journal, w http.ResponseWriter, r *http.Request)

// mount is the act of a handler that notes nothing.
func mount(h http.Handler) act {
	return func(_ *journal, w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }
}

// outcome is what one conversation left behind.
type outcome struct {
	wire string // bytes from the server, Date masked
	seen string // what the handler noted
	log  string // first line of each entry of ErrorLog
}

func (o outcome) diff(p outcome) []string {
	var all []string
	for _, f := range []struct{ what, a, b string }{
		{"wire", o.wire, p.wire}, {"handler", o.seen, p.seen}, {"log", o.log, p.log},
	} {
		if f.a != f.b {
			all = append(all, fmt.Sprintf("%s differs\n--- want\n%s\n--- got\n%s", f.what, visible(f.a), visible(f.b)))
		}
	}
	return all
}

// visible shows line ends and bytes outside ASCII, a line at a time.
func visible(s string) string {
	if len(s) > 2000 {
		s = s[:500] + fmt.Sprintf("…(%d bytes left out)…", len(s)-1000) + s[len(s)-500:]
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		fmt.Fprintf(&b, "\t%q\n", line)
	}
	return b.String()
}

// agree holds every exchange with http.Server and with each mode of serve.
func agree(t *testing.T, table []exchange) {
	t.Helper()
	for _, x := range table {
		t.Run(x.name, x.agrees)
	}
}

// agreeAtOnce is agree for exchanges that share nothing. Most of the time http.Server waits
// before it closes, so that many are held at once; those with settings, which may be times,
// are held one after the other.
func agreeAtOnce(t *testing.T, table []exchange) {
	t.Helper()
	var all sync.WaitGroup
	var alone []exchange
	slots := make(chan struct{}, 8)
	for i, x := range table {
		if x.config != nil {
			alone = append(alone, x)
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			t.Run(fmt.Sprintf("%d %s", i, x.name), x.agrees) // names may be there twice
		})
	}
	all.Wait()
	agree(t, alone)
}

// agrees holds the exchange with http.Server and with each mode of serve.
func (x exchange) agrees(t *testing.T) {
	for _, by := range x.carriages() {
		want := x.hold(t, control(), by)
		for x.again != nil && x.again(want) {
			want = x.hold(t, control(), by)
		}
		for _, s := range sides() {
			if x.keeps && s.reuses {
				continue
			}
			if x.row == "" {
				s = s.loosened(x.lenient)
			}
			x.judge(t, s.name+"/"+string(by), want, x.hold(t, s, by))
		}
	}
}

func (x exchange) carriages() []carriage {
	if x.by != nil {
		return x.by
	}
	return []carriage{whole, bytewise, encrypted, veiled}
}

func (x exchange) judge(t *testing.T, who string, want, got outcome) {
	t.Helper()
	found := want.diff(got)
	if x.row == "" {
		for _, d := range found {
			t.Errorf("%s: sent %.300q: %s", who, x.send, d)
		}
		return
	}
	if len(found) == 0 {
		t.Errorf("%s: sent %.300q: no difference, yet row %q of the table signs one", who, x.send, x.row)
	}
	all := got.wire + got.seen + got.log
	if !strings.Contains(all, x.want) || x.wantNot != "" && strings.Contains(all, x.wantNot) {
		t.Errorf("%s: sent %.300q: got\n%s\twant it to hold %q and not %q (row %q)",
			who, x.send, visible(all), x.want, x.wantNot, x.row)
	}
}

// hold starts a fresh server, talks to it over one connection and stops it.
func (x exchange) hold(t *testing.T, s side, by carriage) outcome {
	t.Helper()
	j := &journal{}
	handler := x.handler
	if handler == nil {
		handler = see
	}
	run := start(t, s, by, j, func(hs *http.Server) {
		hs.Handler = j.watch(handler)
		if x.config != nil {
			x.config(hs, j)
		}
	})
	if x.before != nil {
		x.before(run)
	}
	c := run.dial(t)
	if x.talk != nil {
		x.talk(c)
	} else {
		c.send(x.send)
		for _, m := range x.methodList() {
			c.answer(m)
		}
		c.end()
	}
	j.settle(t)
	if x.logs > 0 {
		eventually(t, "the log", func() bool { return strings.Count(j.log.String(), "\n") >= x.logs })
	}
	c.Close()
	run.stop(t)
	mask := strings.NewReplacer(c.LocalAddr().String(), "CLIENT", c.RemoteAddr().String(), "SERVER")
	return outcome{
		wire: mask.Replace(maskDate(string(c.raw))),
		seen: mask.Replace(j.text()),
		log:  mask.Replace(j.log.String()),
	}
}

func (x exchange) methodList() []string {
	if x.methods != "" {
		return strings.Fields(x.methods)
	}
	first, _, _ := strings.Cut(strings.TrimLeft(x.send, "\r\n"), " ")
	return []string{first}
}

func maskDate(wire string) string {
	return regexp.MustCompile(`(?m)^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r$`).ReplaceAllString(wire, "Date: MASKED\r")
}

// running is a server that serves until stop.
type running struct {
	server
	addr  string
	by    carriage
	ended chan error // what Serve returned
}

// start serves on a loopback port. What configure leaves unset of ErrorLog
// and, for TLS, the certificate is filled in.
func start(t *testing.T, s side, by carriage, j *journal, configure func(*http.Server)) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hs := &http.Server{ErrorLog: log.New(&j.log, "", 0)}
	if by == encrypted {
		hs.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate()}}
	}
	if by == veiled {
		l = veil{l}
	}
	configure(hs)
	run := &running{server: s.make(hs), addr: l.Addr().String(), by: by, ended: make(chan error, 1)}
	go func() {
		if by == encrypted {
			run.ended <- run.ServeTLS(l, "", "")
		} else {
			run.ended <- run.Serve(l)
		}
	}()
	t.Cleanup(func() { run.Close() })
	return run
}

// veil hides what a listener's connections are, as many a listener does.
type veil struct{ net.Listener }

func (v veil) Accept() (net.Conn, error) {
	c, err := v.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{c}, nil
}

// stop closes the server and waits for Serve to return.
func (run *running) stop(t *testing.T) {
	t.Helper()
	run.Close()
	run.wait(t)
}

func (run *running) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-run.ended:
		if err != http.ErrServerClosed {
			t.Errorf("Serve returned %v, want %v", err, http.ErrServerClosed)
		}
	case <-time.After(patience):
		t.Fatal("Serve did not return after Close or Shutdown")
	}
}

// certificate is a loopback certificate that the standard library's test
// server carries.
var certificate = sync.OnceValue(func() tls.Certificate {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return s.TLS.Certificates[0]
})

// firstLines keeps the first line of each entry: what follows is a stack,
// which no two servers share.
type firstLines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (f *firstLines) Write(p []byte) (int, error) {
	first, _, _ := strings.Cut(string(p), "\n")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.b.WriteString(first + "\n")
	return len(p), nil
}

func (f *firstLines) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.b.String()
}

var _ io.Writer = (*firstLines)(nil)
