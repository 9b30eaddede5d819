//go:build linux

package serve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// stopper is what the restarts are tried on.
type stopper interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// secured serves by TLS.
type secured struct{ *serve.Server }

func (s secured) Serve(l net.Listener) error { return s.ServeTLS(l, "", "") }

// tally is what became of the requests of one or more restarts.
type tally struct {
	answered   int
	unread     int // without an answer, and no handler saw it
	lost       int // without an answer, though a handler saw it
	handled    int
	unfinished int // of them on connections that had worked before
}

// TestRestarts stops servers under 64 clients that ask without pause. Each
// request that was written must be answered, unless no handler ever saw it.
// TARE_RESTARTS is the number of restarts, 20 if it is not set.
func TestRestarts(t *testing.T) {
	restarts := number(t, "TARE_RESTARTS", 20)
	private := loopbackTLS()
	for _, tc := range []struct {
		name   string
		tls    *tls.Config
		make   func(http.Handler) stopper
		ours   bool
		burned bool // other processes keep the processors busy
		hasty  bool // requests on a connection in use may cross with its end, unread
	}{
		{"safe", nil, func(h http.Handler) stopper { return &serve.Server{Handler: h, Limits: patient} }, true, false, false},
		{"safe, beside a burner", nil, func(h http.Handler) stopper { return &serve.Server{Handler: h, Limits: patient} }, true, true, false},
		{"reuse", nil, func(h http.Handler) stopper { return &serve.Server{Handler: h, Limits: patient, Reuse: true} }, true, false, false},
		{"TLS", private, func(h http.Handler) stopper {
			return secured{&serve.Server{Handler: h, Limits: patient, TLSConfig: private}}
		}, true, false, false},
		{"TLS, in haste", private, func(h http.Handler) stopper {
			return secured{&serve.Server{Handler: h, TLSConfig: private, Limits: serve.Limits{ShutdownGrace: time.Millisecond}}}
		}, true, false, true},
		{"http.Server", nil, func(h http.Handler) stopper { return &http.Server{Handler: h} }, false, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			atOnce := 4 // a server waits most of the time that it takes to stop
			if tc.burned {
				burn(t)
				atOnce = 1
			}
			sum := restartAll(t, restarts, atOnce, tc.tls, tc.make)
			t.Logf("%d restarts: %d requests answered, %d handled and not answered, %d not read (%d of them on connections in use)",
				restarts, sum.answered, sum.lost, sum.unread, sum.unfinished)
			if sum.answered < restarts*64 {
				t.Errorf("only %d requests were answered: the clients were not at work", sum.answered)
			}
			if tc.ours && sum.lost > 0 {
				t.Errorf("%d requests were handled and not answered", sum.lost)
			}
			if !tc.hasty && sum.unread > 0 {
				t.Errorf("%d requests were not read, %d of them on connections in use", sum.unread, sum.unfinished)
			}
			if tc.ours && sum.handled != sum.answered {
				t.Errorf("%d requests were handled, %d answered", sum.handled, sum.answered)
			}
		})
	}
	noLeftovers(t)
}

// patient waits for the next request of a client that other processes keep from the
// processor, however long: each asks until it is told to close.
var patient = serve.Limits{ShutdownGrace: long}

// burn keeps all processors busy until the test ends.
func burn(t *testing.T) {
	for range 2 * runtime.NumCPU() {
		burner := exec.Command("sh", "-c", "while :; do :; done")
		if err := burner.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { burner.Process.Kill(); burner.Wait() })
	}
}

// listenPlainly listens without MPTCP, whose sockets the kernel may complete connections
// for until they close.
func listenPlainly(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func number(t *testing.T, env string, def int) int {
	text := os.Getenv(env)
	if text == "" {
		return def
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", env, err)
	}
	return n
}

// restartAll restarts servers, so many of them at once, and adds up what became of all
// requests.
func restartAll(t *testing.T, restarts, atOnce int, private *tls.Config, make func(http.Handler) stopper) (sum tally) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for first := range atOnce {
		all.Go(func() {
			for i := first; i < restarts; i += atOnce {
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					one := restart(t, 64, private, make)
					mu.Lock()
					defer mu.Unlock()
					sum.answered += one.answered
					sum.unread += one.unread
					sum.lost += one.lost
					sum.handled += one.handled
					sum.unfinished += one.unfinished
				})
			}
		})
	}
	all.Wait()
	return sum
}

// restart serves so many clients, at most 64, for a moment, by TLS if there is a config, and
// shuts down.
func restart(t *testing.T, atOnce int, private *tls.Config, make func(http.Handler) stopper) tally {
	t.Helper()
	l := listenPlainly(t)
	var seen sync.Map
	var handled atomic.Int32
	s := make(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handled.Add(1)
		id := strings.Clone(r.URL.Path)
		seen.Store(id, true)
		io.WriteString(w, id)
	}))
	served := goServe(s, l)
	var clients sync.WaitGroup
	var room [64]patron
	results := room[:atOnce]
	for i := range results {
		results[i] = patron{dial: dialer(l.Addr(), private), name: strconv.Itoa(i)}
		clients.Go(results[i].ask)
	}
	comes(t, "the clients to be at work", func() bool { return int(handled.Load()) >= 2*atOnce })
	time.Sleep(time.Duration(rand.IntN(8)) * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	clients.Wait()
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("Serve returned %v", err)
	}
	var sum tally
	for i := range results {
		results[i].count(&sum, &seen)
	}
	seen.Range(func(any, any) bool { sum.handled++; return true })
	return sum
}

func goServe(s stopper, l net.Listener) <-chan error {
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return served
}

// patron asks one request after the other, on a new connection when the server
// closes one, until nobody listens any more.
type patron struct {
	dial     func() (net.Conn, error)
	name     string
	answered int
	missing  []missed
	asked    int
}

// missed is a request that was written, but not answered.
type missed struct {
	id     string
	before string // that was answered on its connection before; "": none
}

// dialer connects to addr, by TLS if there is a config.
func dialer(addr net.Addr, config *tls.Config) func() (net.Conn, error) {
	if config == nil {
		return func() (net.Conn, error) { return net.Dial("tcp", addr.String()) }
	}
	client := &tls.Config{InsecureSkipVerify: true}
	return func() (net.Conn, error) { return tls.Dial("tcp", addr.String(), client) }
}

func (p *patron) ask() {
	for {
		nc, err := p.dial()
		if err != nil {
			return
		}
		nc.SetDeadline(time.Now().Add(long))
		p.converse(nc)
		nc.Close()
	}
}

// converse uses one connection until it ends.
func (p *patron) converse(nc net.Conn) {
	br := bufio.NewReader(nc)
	for before := ""; ; {
		p.asked++
		id := "/" + p.name + "-" + strconv.Itoa(p.asked)
		_, err := io.WriteString(nc, "GET "+id+" HTTP/1.1\r\nHost: a\r\n\r\n")
		request := missed{id, before}
		if err != nil {
			p.missing = append(p.missing, request)
			return
		}
		res, err := http.ReadResponse(br, nil)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(res.Body)
		}
		if err != nil || string(body) != id {
			p.missing = append(p.missing, request)
			return
		}
		p.answered++
		before = id
		if res.Close {
			return
		}
	}
}

func (p *patron) count(sum *tally, seen *sync.Map) {
	sum.answered += p.answered
	for _, m := range p.missing {
		if _, ok := seen.Load(m.id); ok {
			sum.lost++
			continue
		}
		sum.unread++
		if m.before != "" {
			sum.unfinished++
		}
	}
}

// TestShutdownWhile shuts down while a connection is in each of its states, and
// goes on with the connection's business: what the client sends in time is
// answered.
func TestShutdownWhile(t *testing.T) {
	const little, ample = 50 * time.Millisecond, long // to wait for a request
	for _, tc := range []struct {
		name  string
		grace time.Duration
		// before brings the connection into its state, after ends it while the
		// server is shutting down.
		before, after func(t *testing.T, nc net.Conn)
	}{
		{"it has not spoken", little, func(*testing.T, net.Conn) {}, closed},
		{"it has not spoken, and speaks", ample, func(*testing.T, net.Conn) {}, lastAnswer("/")},
		{"in a head", ample, begun("GET / HTTP/1.1\r\nHo"), func(t *testing.T, nc net.Conn) {
			io.WriteString(nc, "st: a\r\n\r\n")
			farewell(t, nc)
		}},
		{"in a body", ample, begun("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\no"), func(t *testing.T, nc net.Conn) {
			io.WriteString(nc, "k")
			farewell(t, nc)
		}},
		{"idle", little, answeredOnce, closed},
		{"idle, and asks", ample, answeredOnce, lastAnswer("/")},
		{"parked", little, parkedOnce, closed},
		{"parked, and asks", ample, parkedOnce, lastAnswer("/")},
		{"active", ample, begun("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"), farewell},
		{"pipelining", ample, begun("GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), farewell},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, config := range map[string]*tls.Config{"tcp": nil, "tls": loopbackTLS()} {
				t.Run(name, func(t *testing.T) {
					shutdownWhile(t, &serve.Server{TLSConfig: config, Limits: serve.Limits{ShutdownGrace: tc.grace}}, tc.before, tc.after)
				})
			}
		})
	}
}

func shutdownWhile(t *testing.T, s *serve.Server, before, after func(*testing.T, net.Conn)) {
	holds, _, release := holding(t)
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			holds.ServeHTTP(w, r)
			return
		}
		stateHandler(w, r)
	})
	f := fortify(t, s)
	nc := f.dial()
	if c, ok := nc.(*tls.Conn); ok {
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
	}
	before(t, nc)
	time.Sleep(20 * time.Millisecond) // most often what was sent has arrived
	done := beginShutdown(f)
	release()
	after(t, nc)
	nc.Close()
	returns(t, done)
	f.quiet()
}

// beginShutdown returns when keep-alives have ended. done tells when all has.
func beginShutdown(f *fort) (done <-chan error) {
	ending, ended := make(chan struct{}), make(chan error, 1)
	f.RegisterOnShutdown(sync.OnceFunc(func() { close(ending) }))
	go func() { ended <- f.Shutdown(context.Background()) }()
	<-ending
	return ended
}

// stateHandler answers "ok", to /echo with the body.
func stateHandler(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/echo" {
		io.Copy(w, r.Body)
		return
	}
	io.WriteString(w, "ok")
}

func begun(text string) func(*testing.T, net.Conn) {
	return func(t *testing.T, nc net.Conn) {
		if _, err := io.WriteString(nc, text); err != nil {
			t.Fatal(err)
		}
	}
}

func answeredOnce(t *testing.T, nc net.Conn) {
	say(t, nc, "/")
	told(t, nc)
}

func parkedOnce(t *testing.T, nc net.Conn) {
	answeredOnce(t, nc)
	comes(t, "the connection to be parked", func() bool { return connGoroutines() == 0 })
}

// farewell reads the connection's last answer.
func farewell(t *testing.T, nc net.Conn) {
	t.Helper()
	br := bufio.NewReader(nc)
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Errorf("the last answer: %v", err)
		return
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "ok" || !res.Close {
		t.Errorf("the last answer is %q, error %v, closing %v, want ok and closing", body, err, res.Close)
	}
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("after the last answer: %v, want the connection's end", err)
	}
}

// returns wants a Shutdown that has begun to end well.
func returns(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Shutdown returned %v", err)
		}
	case <-time.After(long):
		t.Error("Shutdown did not return")
	}
}

func lastAnswer(path string) func(*testing.T, net.Conn) {
	return func(t *testing.T, nc net.Conn) {
		say(t, nc, path)
		farewell(t, nc)
	}
}

// TestShutdownInHandshake shuts down amid a handshake that stands still, which ends,
// and one that goes on after a while, which is answered.
func TestShutdownInHandshake(t *testing.T) {
	f := fortify(t, &serve.Server{Handler: http.HandlerFunc(stateHandler), TLSConfig: loopbackTLS(), Limits: serve.Limits{ShutdownGrace: 2 * time.Second}})
	still := call(t, f.addr)
	io.WriteString(still, "\x16\x03\x01\x02\x00\x01") // the beginning of a hello
	var began, goOn [2]chan struct{}
	for i := range began {
		began[i], goOn[i] = make(chan struct{}), make(chan struct{})
	}
	nc := tls.Client(&halting{Conn: call(t, f.addr), began: began[:], goOn: goOn[:]}, &tls.Config{InsecureSkipVerify: true})
	shaken := make(chan error, 1)
	go func() { shaken <- nc.Handshake() }()
	<-began[0]
	time.Sleep(20 * time.Millisecond)
	done := beginShutdown(f)
	time.Sleep(1100 * time.Millisecond) // less than the grace
	close(goOn[0])
	<-began[1]
	time.Sleep(1100 * time.Millisecond) // less than the grace, again
	close(goOn[1])
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	lastAnswer("/")(t, nc)
	nc.Close()
	returns(t, done)
}

// TestMuted has no keep-alives, on a server that goes on: a new connection has the time
// that it always has, in the handshake and before its first request, however long ago
// they ended.
func TestMuted(t *testing.T) {
	const grace = 50 * time.Millisecond
	t.Cleanup(func() { noLeftovers(t) })
	for name, config := range map[string]*tls.Config{"tcp": nil, "tls": loopbackTLS()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := raise(t, &serve.Server{Handler: http.HandlerFunc(stateHandler), TLSConfig: config,
				ReadHeaderTimeout: 2 * time.Second, Limits: serve.Limits{ShutdownGrace: grace}})
			f.SetKeepAlivesEnabled(false)
			for _, wait := range []time.Duration{0, 2500 * time.Millisecond} {
				time.Sleep(wait)
				nc := call(t, f.addr)
				time.Sleep(8 * grace)
				if config != nil {
					began, goOn := make(chan struct{}), make(chan struct{})
					go func() {
						<-began
						time.Sleep(8 * grace)
						close(goOn)
					}()
					nc = tls.Client(&halting{Conn: nc, began: []chan struct{}{began}, goOn: []chan struct{}{goOn}}, &tls.Config{InsecureSkipVerify: true})
				}
				lastAnswer("/")(t, nc)
				nc.Close()
			}
			f.quiet()
		})
	}
}

// TestGraceAnew ends keep-alives twice: an idle connection has a last while each time.
func TestGraceAnew(t *testing.T) {
	f := fortify(t, &serve.Server{Handler: http.HandlerFunc(stateHandler), Limits: serve.Limits{ShutdownGrace: 2 * time.Second}})
	nc := f.dial()
	answeredOnce(t, nc)
	f.SetKeepAlivesEnabled(false)
	time.Sleep(700 * time.Millisecond) // more than two ticks
	f.SetKeepAlivesEnabled(true)
	time.Sleep(2500 * time.Millisecond)
	done := beginShutdown(f)
	time.Sleep(700 * time.Millisecond)
	lastAnswer("/")(t, nc)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestGraceReread has Shutdown go by the grace that is set when it begins, longer or shorter
// than the one with which the server began.
func TestGraceReread(t *testing.T) {
	for _, tc := range []struct {
		name        string
		first, then time.Duration
		after       func(*testing.T, net.Conn)
	}{
		{"longer", 20 * time.Millisecond, long, func(t *testing.T, nc net.Conn) {
			time.Sleep(700 * time.Millisecond) // many ticks of the clock
			lastAnswer("/")(t, nc)
		}},
		{"shorter", 2 * long, 20 * time.Millisecond, closed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fortify(t, &serve.Server{Handler: http.HandlerFunc(stateHandler), Limits: serve.Limits{ShutdownGrace: tc.first}})
			nc := f.dial()
			answeredOnce(t, nc)
			f.Limits.ShutdownGrace = tc.then
			done := beginShutdown(f)
			tc.after(t, nc)
			nc.Close()
			returns(t, done)
		})
	}
}

// TestShutdownBeforeHTTP2 shuts down while a connection may yet turn out to speak
// HTTP/2, and then does. Its request is answered or, as by http.Server, refused by a
// GOAWAY that says so, upon which the client asks elsewhere: never begun and left.
func TestShutdownBeforeHTTP2(t *testing.T) {
	for name, config := range map[string]*tls.Config{"prior knowledge": nil, "tls": loopbackTLS()} {
		t.Run(name, func(t *testing.T) {
			p := protocols("1", "2", "h2c")
			var begun atomic.Int64
			h := func(w http.ResponseWriter, r *http.Request) { begun.Add(1); stateHandler(w, r) }
			f := fortify(t, &serve.Server{Handler: http.HandlerFunc(h), TLSConfig: config, Protocols: p, Limits: serve.Limits{ShutdownGrace: time.Second}})
			var done <-chan error
			late := func(ctx context.Context, _, _ string) (net.Conn, error) {
				nc, err := net.Dial("tcp", f.addr)
				if err != nil {
					return nil, err // it asks once more, and nobody listens
				}
				began, goOn := make(chan struct{}), make(chan struct{})
				go func() {
					<-began
					time.Sleep(100 * time.Millisecond) // most often it has arrived
					done = beginShutdown(f)
					time.Sleep(200 * time.Millisecond)
					close(goOn)
				}()
				nc = &halting{Conn: nc, began: []chan struct{}{began}, goOn: []chan struct{}{goOn}}
				if config == nil {
					return nc, nil
				}
				tc := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
				return tc, tc.HandshakeContext(ctx)
			}
			asks := protocols("2")
			scheme := "https://"
			if config == nil {
				asks, scheme = protocols("h2c"), "http://"
			}
			tr := &http.Transport{Protocols: asks, DialContext: late, DialTLSContext: late}
			res, err := (&http.Client{Transport: tr}).Get(scheme + f.addr)
			if errors.Is(err, syscall.ECONNREFUSED) && begun.Load() == 0 {
				if err := <-done; err != nil {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); err != nil || string(body) != "ok" || res.ProtoMajor != 2 {
				t.Errorf("got %q by %s, %v, want ok by HTTP/2", body, res.Proto, err)
			}
			res.Body.Close()
			tr.CloseIdleConnections()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// halting halts within each of its first writes, after some bytes.
type halting struct {
	net.Conn
	began, goOn []chan struct{}
}

func (h *halting) Write(p []byte) (int, error) {
	if len(h.began) == 0 {
		return h.Conn.Write(p)
	}
	const some = 6
	n, err := h.Conn.Write(p[:some])
	if err != nil {
		return n, err
	}
	close(h.began[0])
	<-h.goOn[0]
	h.began, h.goOn = h.began[1:], h.goOn[1:]
	n, err = h.Conn.Write(p[some:])
	return some + n, err
}

func TestShutdownWithHijacked(t *testing.T) {
	taken := make(chan net.Conn, 1)
	f := fortify(t, &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		taken <- nc
	})})
	told := make(chan struct{})
	f.RegisterOnShutdown(func() { close(told) })
	nc := f.dial()
	say(t, nc, "/")
	own := <-taken
	defer own.Close()
	if err := f.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	<-told
	if _, err := io.WriteString(own, "still here"); err != nil {
		t.Error(err)
	}
	got := make([]byte, 10)
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != "still here" {
		t.Errorf("the hijacked connection brought %q, %v", got, err)
	}
}

// TestShutdownTakesBacklog shuts down when the first of many connections is
// accepted: the others, which the kernel has, must be answered too.
func TestShutdownTakesBacklog(t *testing.T) {
	const slow = 10 * time.Millisecond // on a busy machine it takes as long
	config := loopbackTLS()
	for name, b := range map[string]backlog{
		"tcp": {conns: 50, each: slow},
		"tls": {conns: 50, each: slow, serve: func(s *serve.Server, l net.Listener) error {
			s.TLSConfig = config
			return s.ServeTLS(l, "", "")
		}, secret: true},
		"wrapped": {conns: 50, each: slow, serve: func(s *serve.Server, l net.Listener) error {
			return s.Serve(struct{ net.Listener }{l})
		}},
		"wrapped, with deadlines": {conns: 50, each: slow, serve: func(s *serve.Server, l net.Listener) error {
			return s.Serve(struct {
				net.Listener
				deadlines
			}{l, l.(deadlines)})
		}},
		"tls.NewListener": {conns: 50, each: slow, serve: func(s *serve.Server, l net.Listener) error {
			return s.Serve(tls.NewListener(l, config))
		}, secret: true},
	} {
		t.Run(name, b.shutdown)
	}
}

// deadlines is what a listener shows that hides its socket, but not them.
type deadlines interface{ SetDeadline(time.Time) error }

// backlog is what the kernel has of connections when a server is shut down.
type backlog struct {
	conns  int
	each   time.Duration                           // that it takes to accept one
	serve  func(*serve.Server, net.Listener) error // nil: Serve
	secret bool                                    // clients speak TLS
}

func (b backlog) shutdown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &serve.Server{Handler: http.HandlerFunc(stateHandler)}
	s.Limits = patient // fifty handshakes take their time
	done := make(chan error, 1)
	var once sync.Once
	s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		once.Do(func() { go func() { done <- s.Shutdown(context.Background()) }() })
		time.Sleep(b.each)
		return ctx
	}
	var answers sync.WaitGroup
	for i := range b.conns {
		nc := call(t, l.Addr().String())
		answers.Go(func() {
			defer nc.Close()
			if b.secret {
				nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
			}
			io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if err := hearOK(bufio.NewReader(nc)); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	served := make(chan error, 1)
	go func() {
		if b.serve != nil {
			served <- b.serve(s, l)
			return
		}
		served <- s.Serve(l)
	}()
	answers.Wait()
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("Serve: %v", err)
	}
}

// scarce is a listener of a process that has a descriptor for one connection, and then none
// until there are enough.
type scarce struct {
	*net.TCPListener
	taken, enough atomic.Bool
}

func (l *scarce) Accept() (net.Conn, error) {
	if l.taken.Load() && !l.enough.Load() {
		return nil, syscall.EMFILE
	}
	nc, err := l.TCPListener.Accept()
	l.taken.Store(l.taken.Load() || err == nil)
	return nc, err
}

// TestShutdownOutOfDescriptors shuts down while there are no descriptors for the connections
// that the kernel has: they are answered once there are.
func TestShutdownOutOfDescriptors(t *testing.T) {
	l := &scarce{TCPListener: listenPlainly(t).(*net.TCPListener)}
	s := &serve.Server{Handler: http.HandlerFunc(stateHandler), Limits: patient, ErrorLog: log.New(io.Discard, "", 0)}
	served := goServe(s, l)
	call(t, l.Addr().String()).Close()
	comes(t, "the first connection", l.taken.Load)
	var answers sync.WaitGroup
	for i := range 20 {
		nc := call(t, l.Addr().String())
		answers.Go(func() {
			io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if err := hearOK(bufio.NewReader(nc)); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
			nc.Close()
		})
	}
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	time.AfterFunc(300*time.Millisecond, func() { l.enough.Store(true) }) // three pauses of who accepts
	answers.Wait()
	returns(t, done)
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("Serve: %v", err)
	}
}

// stoppable looks at stop now and then, and takes a time-out of Accept for nothing else.
type stoppable struct {
	*net.TCPListener
	stop chan struct{} // never closed here: it is the server that is to end it
}

func (l stoppable) Accept() (net.Conn, error) {
	for {
		l.SetDeadline(time.Now().Add(50 * time.Millisecond))
		nc, err := l.TCPListener.Accept()
		select {
		case <-l.stop:
			return nil, net.ErrClosed
		default:
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		return nc, err
	}
}

// TestShutdownDeafListener ends a server whose listener goes on when Accept's time is up.
func TestShutdownDeafListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // whatever becomes of Shutdown
	s := &serve.Server{Handler: http.HandlerFunc(stateHandler)}
	served := goServe(s, stoppable{l.(*net.TCPListener), make(chan struct{})})
	nc := call(t, l.Addr().String())
	defer nc.Close()
	io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := hearOK(bufio.NewReader(nc)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	case <-time.After(long):
		t.Fatal("Shutdown goes on")
	}
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("Serve: %v, want %v", err, http.ErrServerClosed)
	}
}

func TestShutdownOutOfTime(t *testing.T) {
	h, entered, release := holding(t)
	f := fortify(t, &serve.Server{Handler: h})
	nc := f.dial()
	say(t, nc, "/hold")
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if err := f.Shutdown(ctx); err != context.DeadlineExceeded {
		t.Errorf("Shutdown returned %v, want %v", err, context.DeadlineExceeded)
	}
	release()
	farewell(t, nc)
	if err := f.Shutdown(context.Background()); err != nil {
		t.Errorf("the second Shutdown: %v", err)
	}
}

func TestShutdownManyTimes(t *testing.T) {
	h, entered, release := holding(t)
	f := fortify(t, &serve.Server{Handler: h})
	nc := f.dial()
	say(t, nc, "/hold")
	<-entered
	var all [5]<-chan error
	for i := range all {
		all[i] = beginShutdown(f)
	}
	release()
	farewell(t, nc)
	for _, done := range all {
		if err := <-done; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Serve(l); err != http.ErrServerClosed {
		t.Errorf("Serve after Shutdown: %v, want %v", err, http.ErrServerClosed)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener given to it: %v, want it closed", err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close after Shutdown: %v", err)
	}
}

func TestShutdownUnused(t *testing.T) {
	var s serve.Server
	called := make(chan struct{})
	s.RegisterOnShutdown(func() { close(called) })
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	<-called
	if err := s.ListenAndServe(); err != http.ErrServerClosed {
		t.Errorf("ListenAndServe: %v, want %v", err, http.ErrServerClosed)
	}
}

// TestCloseEndsContexts closes while handlers wait for their contexts.
func TestCloseEndsContexts(t *testing.T) {
	for name, config := range map[string]*tls.Config{"tcp": nil, "tls": loopbackTLS()} {
		t.Run(name, func(t *testing.T) {
			var in, out atomic.Int32
			f := fortify(t, &serve.Server{TLSConfig: config, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				in.Add(1)
				<-r.Context().Done()
				out.Add(1)
			})})
			for range 5 {
				say(t, f.dial(), "/")
			}
			comes(t, "the handlers to begin", func() bool { return in.Load() == 5 })
			f.Close()
			comes(t, "their contexts to end", func() bool { return out.Load() == 5 })
		})
	}
}

// TestCloseAtAnyMoment closes servers under clients that do all kinds of things.
func TestCloseAtAnyMoment(t *testing.T) {
	for i := range 20 {
		var config *tls.Config
		if i%4 == 3 {
			config = loopbackTLS()
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &serve.Server{Handler: http.HandlerFunc(stateHandler), Reuse: i%2 == 0, ErrorLog: log.New(io.Discard, "", 0)}
		if config != nil {
			l = tls.NewListener(l, config)
		}
		served := goServe(s, l)
		var clients sync.WaitGroup
		for range 16 {
			p := &patron{dial: dialer(l.Addr(), config), name: "x"}
			clients.Go(p.ask)
		}
		time.Sleep(time.Duration(rand.IntN(8)) * time.Millisecond)
		s.Close()
		clients.Wait()
		if err := <-served; err != http.ErrServerClosed {
			t.Errorf("Serve: %v", err)
		}
	}
	noLeftovers(t)
}
