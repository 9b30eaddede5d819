package exectrace_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/trace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/exectrace"
)

// slowly is for how long a slow request waits, and bound what is called slow.
const (
	slowly = 60 * time.Millisecond
	bound  = 30 * time.Millisecond
	quick  = 16 // requests that are not slow
	slow   = 4  // requests to /slow
)

// waiters are the handlers of one program that wait in every way there is. Each
// waits on /slow only.
type waiters struct {
	lock  sync.Mutex
	begun chan bool // a request waits from now on
	given chan bool
	from  *os.File // a pipe whose reader blocks in the kernel
	to    *os.File
	up    *httptest.Server
}

func newWaiters(t *testing.T) *waiters {
	w := &waiters{begun: make(chan bool, 1), given: make(chan bool)}
	w.up = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(slowly) }))
	t.Cleanup(w.up.Close)
	var err error
	if w.from, w.to, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	w.from.Fd() // no longer the poller's
	t.Cleanup(func() { w.from.Close(); w.to.Close() })
	return w
}

func (w *waiters) Doze(http.ResponseWriter, *http.Request) { time.Sleep(slowly) }

func (w *waiters) Receive(http.ResponseWriter, *http.Request) {
	w.begun <- true
	<-w.given
}

func (w *waiters) Lock(http.ResponseWriter, *http.Request) {
	w.begun <- true
	w.lock.Lock()
	defer w.lock.Unlock()
}

func (w *waiters) Call(rw http.ResponseWriter, _ *http.Request) {
	res, err := w.up.Client().Get(w.up.URL)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	res.Body.Close()
}

func (w *waiters) Dial(rw http.ResponseWriter, r *http.Request) {
	c, err := new(net.Dialer).DialContext(r.Context(), "tcp", w.up.Listener.Addr().String())
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	defer c.Close()
	fmt.Fprintf(c, "GET / HTTP/1.0\r\n\r\n")
	io.Copy(io.Discard, c)
}

func (w *waiters) Read(http.ResponseWriter, *http.Request) {
	w.begun <- true
	var b [1]byte
	w.from.Read(b[:])
}

// Spin gives way once: otherwise it would be seen only if it were preempted, which
// may not happen while others have the processors.
func (w *waiters) Spin(http.ResponseWriter, *http.Request) {
	begin := time.Now()
	for time.Since(begin) < slowly/2 {
	}
	runtime.Gosched()
	for time.Since(begin) < slowly {
	}
}

// Upload waits for a body that the client does not finish sending.
func (w *waiters) Upload(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }

// Download answers with more than sockets hold.
func (w *waiters) Download(rw http.ResponseWriter, _ *http.Request) { rw.Write(make([]byte, 16<<20)) }

// Fan waits for goroutines of its own, the slowest of which sleeps.
func (w *waiters) Fan(http.ResponseWriter, *http.Request) {
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { time.Sleep(time.Duration(i) * slowly / 3) })
	}
	all.Wait()
}

// only has a middleware wait on /slow before the handler answers.
func only(wait http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			wait(w, r)
		}
		io.WriteString(w, "done")
	})
}

// start starts a server of a kind and returns its URL and a client for it.
func start(t *testing.T, kind string, h http.Handler) (string, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	if kind == "HTTP/2" {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.URL, s.Client()
}

// recorded traces what happens while f runs.
func recorded(t *testing.T, f func()) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Start(&b); err != nil {
		t.Fatal(err)
	}
	f()
	trace.Stop()
	return &b
}

// ask sends a request and reads the whole answer. around is called before, and what
// it returns once the request is under way.
func ask(t *testing.T, c *http.Client, url string, around func() func()) {
	t.Helper()
	after := func() {}
	if around != nil {
		after = around()
	}
	done := make(chan error, 1)
	go func() {
		res, err := c.Get(url)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		done <- err
	}()
	after()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// adds checks that what is said of requests adds up.
func adds(t *testing.T, r *exectrace.Requests) {
	t.Helper()
	for name, g := range map[string]exectrace.Group{"slow": r.Slow, "fast": r.Fast} {
		var sum time.Duration
		for _, p := range g.Parts {
			sum += p.Time
			if p.Time <= 0 || p.Requests < 1 || p.Requests > g.Count || p.Times < p.Requests {
				t.Errorf("%s requests, %d: a part is %+v", name, g.Count, p)
			}
		}
		handled := 0
		for _, h := range g.Handlers {
			handled += h.Requests
		}
		if sum != g.Time || handled != g.Count {
			t.Errorf("%s requests took %s, their parts %s; there are %d, by handler %d", name, g.Time, sum, g.Count, handled)
		}
	}
	for _, q := range r.Slowest {
		at := time.Duration(0)
		for _, s := range q.Segments {
			if s.Begin != at || s.Duration <= 0 {
				t.Errorf("a segment begins at %s and takes %s, want one that begins at %s", s.Begin, s.Duration, at)
			}
			at += s.Duration
		}
		if at != q.Duration {
			t.Errorf("a request of %s has segments for %s", q.Duration, at)
		}
	}
	if whole := r.Slow.Count + r.Fast.Count - r.Slow.Cut; whole != r.Count {
		t.Errorf("%d slow and fast requests seen whole, want %d", whole, r.Count)
	}
}

// TestCauses has servers answer requests some of which wait, each time for another
// cause, and wants that cause back, and who is charged with it.
func TestCauses(t *testing.T) {
	w := newWaiters(t)
	hold := func() func() { // what the request wants, until it has waited
		w.lock.Lock()
		return func() {
			<-w.begun
			time.Sleep(slowly)
			w.lock.Unlock()
		}
	}
	give := func() func() {
		return func() {
			<-w.begun
			time.Sleep(slowly)
			w.given <- true
		}
	}
	write := func() func() {
		return func() {
			<-w.begun
			time.Sleep(slowly)
			w.to.Write([]byte{0})
		}
	}
	for _, tc := range []struct {
		name   string
		wait   http.HandlerFunc
		around func() func()
		state  exectrace.State
		owner  string
		by     string // who ended the wait
	}{
		{"sleep", w.Doze, nil, exectrace.Sleeping, "exectrace.only", ""},
		{"channel", w.Receive, give, exectrace.Channel, "exectrace.only", "exectrace_test.TestCauses.func2"},
		{"lock", w.Lock, hold, exectrace.Locked, "exectrace.only", "exectrace_test.TestCauses.func1"},
		{"call", w.Call, nil, exectrace.Calling, "net/http client", ""},
		{"raw call", w.Dial, nil, exectrace.Calling, "exectrace.only", ""},
		{"system call", w.Read, write, exectrace.Kernel, "exectrace.only", ""},
		{"running", w.Spin, nil, exectrace.Running, "exectrace.only", ""},
		{"goroutines", w.Fan, nil, exectrace.Sleeping, "exectrace.only", ""},
	} {
		for _, kind := range []string{"net/http", "HTTP/2"} {
			t.Run(tc.name+"/"+kind, func(t *testing.T) {
				url, c := start(t, kind, only(tc.wait))
				b := recorded(t, func() {
					for i := range quick + slow {
						if i%(quick/slow+1) == 0 {
							ask(t, c, url+"/slow", tc.around)
							continue
						}
						ask(t, c, url+"/", nil)
					}
				})
				r, err := exectrace.ReadRequests(b, exectrace.Options{SlowerThan: bound})
				if err != nil {
					t.Fatal(err)
				}
				adds(t, r)
				calls := 0
				if strings.Contains(tc.name, "call") && tc.wait != nil && tc.around == nil {
					calls = slow // the upstream's requests are in the trace as well
				}
				// The last answer may be there before its server is done with it.
				if all := r.Count + r.Cut; all != quick+slow+calls || r.Cut > 2 || len(r.Warnings) > 0 {
					t.Errorf("%d requests, %d cut, warnings %v; want %d, and none", r.Count, r.Cut, r.Warnings, quick+slow+calls)
				}
				if r.Slow.Count < slow+calls {
					t.Fatalf("%d slow requests, want at least %d", r.Slow.Count, slow+calls)
				}
				check(t, r, tc.state, tc.owner, tc.by)
			})
		}
	}
}

// check wants the slow requests to have spent their time on one cause.
func check(t *testing.T, r *exectrace.Requests, state exectrace.State, owner, by string) {
	t.Helper()
	var found, somebody time.Duration
	for _, p := range r.Slow.Parts {
		if p.State == state && p.Owner.Name == owner && strings.Contains(p.By, by) {
			found += p.Time
		}
		if p.State == state {
			somebody += p.Time
		}
	}
	if state == exectrace.Running && found > 0 { // nobody samples here: stacks are few
		found = somebody
	}
	if found < slow*bound {
		t.Errorf("%s of %s (ended by %q) took %s of the slow requests, want at least %s; there are %s",
			state, owner, by, found, slow*bound, list(r.Slow.Parts))
	}
	var fast time.Duration
	for _, p := range r.Fast.Parts {
		if p.State == state && p.Owner.Name == owner && p.State != exectrace.Running {
			fast += p.Time
		}
	}
	if fast > found/10 {
		t.Errorf("%s of %s took %s of the fast requests, want next to nothing", state, owner, fast)
	}
}

func list(parts []exectrace.Part) string {
	var b strings.Builder
	for _, p := range parts[:min(len(parts), 8)] {
		fmt.Fprintf(&b, "\n\t%s %s %s in %s by %s, %d times in %d", p.Time, p.State, p.Owner.Name, p.At, p.By, p.Times, p.Requests)
	}
	return b.String()
}

// TestClient has clients keep the server waiting: for a request's body, and for the
// answer to be read.
func TestClient(t *testing.T) {
	w := newWaiters(t)
	for _, tc := range []struct {
		name  string
		h     http.HandlerFunc
		keep  func(*testing.T, *http.Client, string)
		owner string
	}{
		{name: "body", h: w.Upload, keep: sendSlowly, owner: "net/http: read body"},
		{name: "answer", h: w.Download, keep: readSlowly, owner: "net/http: write answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url, c := start(t, "net/http", tc.h)
			r, err := exectrace.ReadRequests(recorded(t, func() { tc.keep(t, c, url) }), exectrace.Options{SlowerThan: bound})
			if err != nil {
				t.Fatal(err)
			}
			adds(t, r)
			waited := time.Duration(0)
			for _, p := range r.Slow.Parts {
				if p.State == exectrace.Client && p.Owner.Name == tc.owner {
					waited += p.Time
				}
			}
			if r.Slow.Count != 1 || waited < bound {
				t.Errorf("slow requests: %d, %s; want one that waits for its client in %s", r.Slow.Count, list(r.Slow.Parts), tc.owner)
			}
		})
	}
}

func sendSlowly(t *testing.T, c *http.Client, url string) {
	r, body := io.Pipe()
	go func() {
		io.WriteString(body, "begins")
		time.Sleep(2 * slowly)
		io.WriteString(body, "ends")
		body.Close()
	}()
	res, err := c.Post(url, "text/plain", r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}

func readSlowly(t *testing.T, c *http.Client, url string) {
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	time.Sleep(2 * slowly)
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
}

// TestHandedOn has the handler run on a goroutine of its own, as
// http.TimeoutHandler does: what that one waits for is what the request waits for.
func TestHandedOn(t *testing.T) {
	w := newWaiters(t)
	h := http.TimeoutHandler(only(w.Doze), time.Minute, "too late")
	url, c := start(t, "net/http", h)
	b := recorded(t, func() {
		for range slow {
			ask(t, c, url+"/slow", nil)
		}
		for range quick {
			ask(t, c, url+"/", nil)
		}
	})
	r, err := exectrace.ReadRequests(b, exectrace.Options{SlowerThan: bound})
	if err != nil {
		t.Fatal(err)
	}
	adds(t, r)
	check(t, r, exectrace.Sleeping, "exectrace.only", "")
	elsewhere := false
	for _, q := range r.Slowest { // on a busy machine others may be among them
		for _, s := range q.Segments {
			elsewhere = elsewhere || s.State == exectrace.Sleeping && s.Elsewhere
		}
	}
	if !elsewhere {
		t.Errorf("no sleep on another goroutine in %+v", r.Slowest)
	}
}

// TestCollector has requests allocate so much that they must help the collector.
func TestCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	live := make([]*[64]byte, 1<<18) // 16 MiB for the collector to mark
	for i := range live {
		live[i] = new([64]byte)
	}
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		for i := range 1 << 16 {
			live[i] = new([64]byte)
		}
	})
	url, c := start(t, "net/http", h)
	for range 5 { // how far the collector gets on its own is its own business
		b := recorded(t, func() {
			for range slow {
				ask(t, c, url, nil)
			}
		})
		r, err := exectrace.ReadRequests(b, exectrace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		adds(t, r)
		var helped time.Duration
		for _, p := range append(r.Slow.Parts, r.Fast.Parts...) {
			if p.State == exectrace.Collecting && p.Owner.Name == "exectrace.TestCollector" {
				helped += p.Time
			}
		}
		if during := r.Slow.Collector + r.Fast.Collector; helped > 0 && during > 0 {
			return
		}
	}
	t.Error("no request ever helped the collector")
}

// TestUnended has a request that has not ended when the trace does, and that had
// begun before the trace: a deadlock looks like that.
func TestUnended(t *testing.T) {
	w := newWaiters(t)
	w.lock.Lock()
	url, c := start(t, "net/http", only(w.Lock))
	done := make(chan bool)
	go func() {
		ask(t, c, url+"/slow", nil)
		close(done)
	}()
	<-w.begun
	time.Sleep(slowly)
	b := recorded(t, func() { time.Sleep(2 * slowly) }).Bytes()
	w.lock.Unlock()
	<-done
	for _, asked := range []time.Duration{bound, 0} {
		r, err := exectrace.ReadRequests(bytes.NewReader(b), exectrace.Options{SlowerThan: asked})
		if err != nil {
			t.Fatal(err)
		}
		adds(t, r)
		if r.Count != 0 || r.Cut != 1 || r.Slow.Cut != 1 || len(r.Slowest) != 1 || !r.Slowest[0].Unended {
			t.Fatalf("bound %s: %d requests, %d cut, %d of them slow, slowest %+v; want one that does not end", asked, r.Count, r.Cut, r.Slow.Cut, r.Slowest)
		}
		if asked == 0 && r.SlowerThan != r.Slowest[0].Duration {
			t.Errorf("without a bound: slow from %s on, want what was seen of it, %s", r.SlowerThan, r.Slowest[0].Duration)
		}
		if p := r.Slow.Parts[0]; p.State != exectrace.Locked || p.Owner.Name != "exectrace.only" {
			t.Errorf("bound %s: it waits for %s", asked, list(r.Slow.Parts))
		}
	}
}

// TestDifferencesAlike has two parts whose owners' files and folders have the same names:
// neither is lost.
func TestDifferencesAlike(t *testing.T) {
	c := exectrace.Cause{State: exectrace.Channel, Owner: exectrace.Owner{Kind: "handler", Name: "handlers.List", Where: "handlers/list.go"}, At: "database/sql.(*DB).conn"}
	parts := []exectrace.Part{{Cause: c, Time: 90 * time.Millisecond, Times: 2, Requests: 2}, {Cause: c, Time: 10 * time.Millisecond, Times: 1, Requests: 1}}
	r := &exectrace.Requests{
		Slow: exectrace.Group{Count: 2, Time: 100 * time.Millisecond, Parts: parts},
		Fast: exectrace.Group{Count: 10, Time: 100 * time.Millisecond, Parts: parts},
	}
	want := exectrace.Difference{Cause: c, Slow: 50 * time.Millisecond, Fast: 10 * time.Millisecond, Requests: 2}
	if got := r.Differences(); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestPipelined sends requests at one go: each counts.
func TestPipelined(t *testing.T) {
	w := newWaiters(t)
	url, _ := start(t, "net/http", only(w.Doze))
	b := recorded(t, func() {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		const get = "GET /slow HTTP/1.1\r\nHost: x\r\n"
		io.WriteString(c, get+"\r\n"+get+"\r\n"+get+"Connection: close\r\n\r\n")
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatal(err)
		}
	})
	r, err := exectrace.ReadRequests(b, exectrace.Options{SlowerThan: bound})
	if err != nil {
		t.Fatal(err)
	}
	adds(t, r)
	if r.Count != 3 || r.Slow.Count != 3 {
		t.Errorf("%d requests, %d slow, want 3", r.Count, r.Slow.Count)
	}
}

// TestHijacked has a handler take its connection over: what it does with it then
// is no request.
func TestHijacked(t *testing.T) {
	var taken time.Time
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond) // by now the connection is watched
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		taken = time.Now()
		time.Sleep(2 * slowly)
		io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	})
	url, c := start(t, "net/http", h)
	begun := time.Now()
	b := recorded(t, func() { ask(t, c, url, nil) })
	r, err := exectrace.ReadRequests(b, exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	adds(t, r)
	if most := taken.Sub(begun); r.Count != 1 || len(r.Slowest) != 1 || r.Slowest[0].Duration > most {
		t.Errorf("%d requests, want one that ended when its connection was taken, within %v: %+v", r.Count, most, r.Slowest)
	}
}

// TestSlowest takes no bound: the slowest hundredth is slow.
func TestSlowest(t *testing.T) {
	w := newWaiters(t)
	url, c := start(t, "net/http", only(w.Doze))
	b := recorded(t, func() {
		ask(t, c, url+"/slow", nil)
		for range 99 {
			ask(t, c, url, nil)
		}
	})
	r, err := exectrace.ReadRequests(b, exectrace.Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	adds(t, r)
	if r.Slow.Count != 1 || r.Fast.Count < 98 || r.SlowerThan < slowly || len(r.Slowest) != 3 {
		t.Errorf("%d slow beyond %s, %d fast, %d described; want 1, 98 or 99, and 3", r.Slow.Count, r.SlowerThan, r.Fast.Count, len(r.Slowest))
	}
	if q := r.Quantiles[len(r.Quantiles)-1]; q.Q != 1 || q.Duration != r.Slowest[0].Duration {
		t.Errorf("the longest is %+v, and the slowest took %s", q, r.Slowest[0].Duration)
	}
}

// TestLog hands on what the service itself writes of a request.
func TestLog(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		trace.Log(r.Context(), "request", "GET /users/7")
	})
	url, c := start(t, "net/http", h)
	b := recorded(t, func() { ask(t, c, url, nil) })
	r, err := exectrace.ReadRequests(b, exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Slowest) != 1 || r.Slowest[0].Log != "GET /users/7" {
		t.Errorf("%+v, want one request with its log", r.Slowest)
	}
}

// TestBroken cuts a trace off in its last generation: what came before counts.
func TestBroken(t *testing.T) {
	w := newWaiters(t)
	url, c := start(t, "net/http", only(w.Doze))
	whole := recorded(t, func() {
		for until := time.Now().Add(2500 * time.Millisecond); time.Now().Before(until); { // a generation is a second
			ask(t, c, url+"/slow", nil)
		}
	}).Bytes()
	r, err := exectrace.ReadRequests(bytes.NewReader(whole[:len(whole)-10]), exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	adds(t, r)
	if r.Count == 0 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "breaks off") {
		t.Errorf("%d requests of a trace that breaks off, warnings %q; want some, and one", r.Count, r.Warnings)
	}
	if tr, err := exectrace.Read(bytes.NewReader(whole[:len(whole)-10])); err != nil || tr.Broken == nil || !strings.Contains(tr.Broken.Error(), "breaks off") {
		t.Errorf("reading waits of a trace that breaks off: %v, want that to be said", err)
	}
}

func TestReadRequestsRefuses(t *testing.T) {
	for _, in := range []string{"", "no trace", "go 1.26 trace\x00\x00\x00"} {
		if r, err := exectrace.ReadRequests(strings.NewReader(in), exectrace.Options{}); err == nil {
			t.Errorf("reading %q gave %+v, want an error", in, r)
		}
	}
}

func TestState(t *testing.T) {
	for s := exectrace.Running; s <= exectrace.Waiting; s++ {
		text, err := s.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back exectrace.State
		if err := back.UnmarshalText(text); err != nil || back != s {
			t.Errorf("%q is read as %v, %v, want %v", text, back, err, s)
		}
	}
	if err := new(exectrace.State).UnmarshalText([]byte("asleep")); err == nil {
		t.Error("a state that there is not was read")
	}
}

// ExampleReadRequests traces a server that answers one request, after a sleep.
func ExampleReadRequests() {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }))
	defer s.Close()
	var b bytes.Buffer
	trace.Start(&b)
	req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL, nil)
	if res, err := s.Client().Do(req); err == nil {
		res.Body.Close()
	}
	trace.Stop()
	r, err := exectrace.ReadRequests(&b, exectrace.Options{SlowerThan: 10 * time.Millisecond})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(r.Slow.Count, r.Slow.Parts[0].State)
	// Output: 1 sleep
}
