package chain_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/chain"
)

// claims lists what w can be asserted to be.
func claims(w http.ResponseWriter) string {
	var all []string
	add := func(name string, ok bool) {
		if ok {
			all = append(all, name)
		}
	}
	_, ok := w.(http.Flusher)
	add("flush", ok)
	_, ok = w.(interface{ FlushError() error })
	add("flusherror", ok)
	_, ok = w.(http.Hijacker)
	add("hijack", ok)
	_, ok = w.(http.Pusher)
	add("push", ok)
	_, ok = w.(interface{ CloseNotify() <-chan bool })
	add("notify", ok)
	return strings.Join(all, " ")
}

// Writers with any set of the optional interfaces. Each answers by what was
// called.
type (
	plainWriter struct{ http.ResponseWriter }
	canFlush    struct{ called *string }
	canHijack   struct{ called *string }
	canPush     struct{ called *string }
	canNotify   struct{ called *string }
	unwraps     struct {
		plainWriter
		inner http.ResponseWriter
	}
)

func (c canFlush) Flush() { *c.called += " flush" }
func (c canHijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	*c.called += " hijack"
	return nil, nil, nil
}
func (c canPush) Push(string, *http.PushOptions) error { *c.called += " push"; return nil }
func (c canNotify) CloseNotify() <-chan bool           { *c.called += " notify"; return nil }
func (u unwraps) Unwrap() http.ResponseWriter          { return u.inner }

func TestWritersClaimWhatIsThere(t *testing.T) {
	var called string
	p, f, h := plainWriter{httptest.NewRecorder()}, canFlush{&called}, canHijack{&called}
	u, n := canPush{&called}, canNotify{&called}
	full := struct {
		plainWriter
		canFlush
		canHijack
		canNotify
	}{p, f, h, n}
	tests := []struct {
		name string
		w    http.ResponseWriter
		want string // and what is called when all that is claimed is
	}{
		{"nothing", p, ""},
		{"flush", struct {
			plainWriter
			canFlush
		}{p, f}, "flush"},
		{"hijack", struct {
			plainWriter
			canHijack
		}{p, h}, "hijack"},
		{"push", struct {
			plainWriter
			canPush
		}{p, u}, "push"},
		{"flush and hijack", struct {
			plainWriter
			canFlush
			canHijack
		}{p, f, h}, "flush hijack"},
		{"flush and push", struct {
			plainWriter
			canFlush
			canPush
		}{p, f, u}, "flush push"},
		{"flush and notify", struct {
			plainWriter
			canFlush
			canNotify
		}{p, f, n}, "flush notify"},
		{"flush, push and notify", struct {
			plainWriter
			canFlush
			canPush
			canNotify
		}{p, f, u, n}, "flush push notify"},
		{"flush, hijack and notify", full, "flush hijack notify"},
		{"by unwrapping", unwraps{p, unwraps{p, full}}, "flush hijack notify"},
		{"by unwrapping to nothing", unwraps{p, p}, ""},
		// Sets that no server has show their largest known part.
		{"hijack and push", struct {
			plainWriter
			canHijack
			canPush
		}{p, h, u}, "hijack"},
		{"notify", struct {
			plainWriter
			canNotify
		}{p, n}, ""},
	}
	for _, tt := range tests {
		called = ""
		w, rec := chain.Record(tt.w)
		want := strings.Replace(tt.want, "flush", "flush flusherror", 1)
		if got := claims(w); got != want {
			t.Errorf("%s: the writer claims %q, want %q", tt.name, got, want)
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		if wrote := strings.Contains(tt.want, "flush"); rec.Written() != wrote {
			t.Errorf("%s: written: got %t after Flush", tt.name, rec.Written())
		}
		if h, ok := w.(http.Hijacker); ok {
			if _, _, err := h.Hijack(); err != nil || !rec.Hijacked() || !rec.Written() {
				t.Errorf("%s: hijacked: got %t, %v", tt.name, rec.Hijacked(), err)
			}
		}
		if p, ok := w.(http.Pusher); ok {
			if err := p.Push("/x", nil); err != nil {
				t.Errorf("%s: pushing: %v", tt.name, err)
			}
		}
		if n, ok := w.(interface{ CloseNotify() <-chan bool }); ok {
			n.CloseNotify()
		}
		if got := strings.TrimSpace(called); got != tt.want {
			t.Errorf("%s: got called %q, want %q", tt.name, got, tt.want)
		}
		if again, same := chain.Record(w); again != w || same != rec {
			t.Errorf("%s: recorded twice", tt.name)
		}
		if _, same := chain.Record(unwraps{p, w}); same != rec {
			t.Errorf("%s: recorded twice behind another writer", tt.name)
		}
	}
}

// observed is what the recorder of a chain saw of one answer.
type observed struct {
	Status   int
	Bytes    int64
	Written  bool
	Hijacked bool
	Timed    bool
	Panic    any
}

// watch is a chain around h that reports what its recorder saw.
func watch(h http.HandlerFunc, saw chan<- observed) http.Handler {
	layer := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w, rec := chain.Record(w)
			rec.Clock(time.Now)
			defer func() {
				v := recover()
				saw <- observed{rec.Status(), rec.Bytes(), rec.Written(), rec.Hijacked(), !rec.First().IsZero(), v}
				if v != nil {
					panic(http.ErrAbortHandler)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
	return chain.Must(chain.New(layer, pass).Then(h))
}

// answers are handlers and what must be seen of them, whatever the server.
var answers = []struct {
	name    string
	handler http.HandlerFunc
	want    observed
}{
	{"nothing", func(http.ResponseWriter, *http.Request) {}, observed{}},
	{"write", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pong) }, observed{Status: 200, Bytes: 4, Written: true, Timed: true}},
	{"write nothing", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) }, observed{Status: 200, Written: true, Timed: true}},
	{"status and string", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "tea")
		_, _ = w.Write(pong)
	}, observed{Status: 418, Bytes: 7, Written: true, Timed: true}},
	{"status twice", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot)
	}, observed{Status: 202, Written: true, Timed: true}},
	{"early hints", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
	}, observed{Status: 201, Written: true, Timed: true}},
	{"early hints only", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }, observed{}},
	{"no body allowed", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		if _, err := w.Write(pong); !errors.Is(err, http.ErrBodyNotAllowed) {
			panic(err)
		}
	}, observed{Status: 204, Written: true, Timed: true}},
	{"read from", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 100_000))}); err != nil {
			panic(err)
		}
	}, observed{Status: 200, Bytes: 100_000, Written: true, Timed: true}},
	{"status alone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }, observed{Status: 200, Written: true, Timed: true}},
	{"read from nothing", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.Copy(w, struct{ io.Reader }{strings.NewReader("")}); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusNotFound)
	}, observed{Status: 404, Written: true, Timed: true}},
	{"flush", func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(err)
		}
	}, observed{Status: 200, Written: true, Timed: true}},
	{"deadlines", func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		later := time.Now().Add(time.Minute)
		if err := errors.Join(c.SetReadDeadline(later), c.SetWriteDeadline(later)); err != nil {
			panic(err)
		}
	}, observed{}},
	{"panic", func(http.ResponseWriter, *http.Request) { panic("no") }, observed{Panic: "no"}},
	{"late panic", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pong); panic("no") },
		observed{Status: 200, Bytes: 4, Written: true, Timed: true, Panic: "no"}},
	{"invalid status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(1) }, observed{Panic: "invalid WriteHeader code 1"}},
}

// sees has the answers given by a server that start makes, and compares.
func sees(t *testing.T, start func(http.Handler) (*http.Client, string)) {
	t.Helper()
	for _, tt := range answers {
		saw := make(chan observed, 1)
		client, url := start(watch(tt.handler, saw))
		res, err := client.Get(url)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body) // a panic cuts it off
			res.Body.Close()
		}
		got := <-saw
		if got.Panic != nil {
			got.Panic = fmt.Sprint(got.Panic)
		}
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
		if status := max(tt.want.Status, 200); err == nil && tt.want.Panic == nil && res.StatusCode != status {
			t.Errorf("%s: the client got %d, want %d", tt.name, res.StatusCode, status)
		}
	}
}

func TestRecorderOnHTTP1(t *testing.T) {
	sees(t, func(h http.Handler) (*http.Client, string) {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.Start()
		t.Cleanup(s.Close)
		return s.Client(), s.URL
	})
}

func TestRecorderOnHTTP2(t *testing.T) {
	sees(t, func(h http.Handler) (*http.Client, string) {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.EnableHTTP2 = true
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.Client(), s.URL
	})
}

// The writer claims what that of the server claims, on HTTP/1 and 2.
func TestClaimsOfServers(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		bare, chained := make(chan string, 1), make(chan string, 1)
		inner := chain.Must(chain.New(pass).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			chained <- fmt.Sprint(claims(w), r.ProtoMajor)
		})))
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			bare <- fmt.Sprint(claims(w), r.ProtoMajor)
			inner.ServeHTTP(w, r)
		}))
		s.EnableHTTP2 = http2
		s.StartTLS()
		get(t, s.Client(), s.URL)
		if got, want := <-chained, <-bare; got != want {
			t.Errorf("HTTP/2 %t: claims %q, want %q", http2, got, want)
		}
		s.Close()
	}
}

func TestHijackThroughTheChain(t *testing.T) {
	saw := make(chan observed, 1)
	s := httptest.NewUnstartedServer(watch(func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, err := w.Write(pong); !errors.Is(err, http.ErrHijacked) {
			t.Errorf("writing after Hijack: got %v", err)
		}
		w.WriteHeader(http.StatusInternalServerError) // the server ignores it
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: close\r\n\r\n")
		_ = rw.Flush()
	}, saw))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 101") {
		t.Errorf("got %q, %v", line, err)
	}
	if got, want := <-saw, (observed{Written: true, Hijacked: true, Timed: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A hijack that fails is none.
func TestHijackFails(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.EnableHTTP2 = true
	saw := make(chan observed, 1)
	s.Config.Handler = watch(func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Hijacker); ok {
			t.Error("the writer of HTTP/2 claims to hijack")
		}
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijacking HTTP/2: got %v", err)
		}
	}, saw)
	s.StartTLS()
	defer s.Close()
	get(t, s.Client(), s.URL)
	if got := <-saw; got.Hijacked || got.Written {
		t.Errorf("got %+v", got)
	}
}

// hijackable hands over no connection until err is nil.
type hijackable struct {
	http.ResponseWriter
	err error
}

func (w *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, w.err }

// Nor does one that fails undo one that did not.
func TestHijackFailsAgain(t *testing.T) {
	inner := &hijackable{httptest.NewRecorder(), errGone}
	w, rec := chain.Record(inner)
	for _, step := range []struct {
		err  error
		want bool
	}{{errGone, false}, {nil, true}, {http.ErrHijacked, true}} {
		inner.err = step.err
		if _, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, step.err) {
			t.Errorf("got error %v, want %v", err, step.err)
		}
		if got := rec.Hijacked(); got != step.want {
			t.Errorf("after %v: hijacked %t, want %t", step.err, got, step.want)
		}
	}
}

// 101 is an answer, unlike what else is below 200.
func TestSwitchingProtocols(t *testing.T) {
	w, rec := chain.Record(httptest.NewRecorder())
	w.WriteHeader(http.StatusSwitchingProtocols)
	if rec.Status() != http.StatusSwitchingProtocols || !rec.Written() {
		t.Errorf("got status %d, written %t", rec.Status(), rec.Written())
	}
}

// readsFrom takes what is copied to it by its own means.
type readsFrom struct {
	plainWriter
	got *bytes.Buffer
}

func (w readsFrom) ReadFrom(src io.Reader) (int64, error) { return w.got.ReadFrom(src) }

func TestReadFromTakesTheWritersOwn(t *testing.T) {
	var got bytes.Buffer
	w, rec := chain.Record(readsFrom{plainWriter{httptest.NewRecorder()}, &got})
	n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("through"))
	if n != 7 || err != nil || got.String() != "through" || rec.Bytes() != 7 {
		t.Errorf("got %d, %v, %q, %d bytes", n, err, &got, rec.Bytes())
	}
	plain := httptest.NewRecorder()
	w, rec = chain.Record(plain)
	n, err = w.(io.ReaderFrom).ReadFrom(strings.NewReader("copied"))
	if n != 6 || err != nil || plain.Body.String() != "copied" || rec.Bytes() != 6 || rec.Status() != 200 {
		t.Errorf("got %d, %v, %q, %d bytes", n, err, plain.Body, rec.Bytes())
	}
}

// failing fails to write anything, and to flush.
type failing struct{ http.ResponseWriter }

var errGone = errors.New("the client has gone")

func (failing) Write([]byte) (int, error) { return 0, errGone }
func (failing) FlushError() error         { return errGone }

func TestFailures(t *testing.T) {
	w, rec := chain.Record(failing{httptest.NewRecorder()})
	if _, err := w.Write(pong); !errors.Is(err, errGone) {
		t.Errorf("writing: got %v", err)
	}
	if _, err := io.WriteString(w, "x"); !errors.Is(err, errGone) {
		t.Errorf("writing a string: got %v", err)
	}
	if err := http.NewResponseController(w).Flush(); !errors.Is(err, errGone) {
		t.Errorf("flushing: got %v", err)
	}
	if rec.Written() || rec.Bytes() != 0 {
		t.Errorf("got status %d, %d bytes of what failed", rec.Status(), rec.Bytes())
	}
}

// A write that is refused for being longer than the header says has sent that.
func TestTooMuch(t *testing.T) {
	for name, write := range map[string]func(http.ResponseWriter) error{
		"Write":    func(w http.ResponseWriter) error { _, err := w.Write(pong); return err },
		"ReadFrom": func(w http.ResponseWriter) error { _, err := io.Copy(w, strings.NewReader("pong")); return err },
	} {
		saw := make(chan observed, 1)
		s := httptest.NewServer(watch(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			if err := write(w); !errors.Is(err, http.ErrContentLength) {
				t.Errorf("%s: got error %v", name, err)
			}
		}, saw))
		if res, err := s.Client().Get(s.URL); err == nil {
			res.Body.Close()
		}
		if got := <-saw; got.Status != http.StatusOK || !got.Written {
			t.Errorf("%s: got %+v", name, got)
		}
		s.Close()
	}
}

// TestBegun tells all layers one time of a request, however late they ask.
func TestBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Time
		asks := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				told = append(told, chain.Begun(w))
				time.Sleep(time.Second)
				next.ServeHTTP(w, r)
			})
		}
		h := chain.Must(chain.New(asks, asks).Then(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, rec := chain.Record(w)
			told = append(told, rec.Begun())
		})))
		first := time.Now()
		for range 2 {
			h.ServeHTTP(httptest.NewRecorder(), request(t.Context()))
		}
		second := first.Add(2 * time.Second)
		want := []time.Time{first, first, first, second, second, second}
		if !slices.EqualFunc(told, want, time.Time.Equal) {
			t.Errorf("got %v, want %v", told, want)
		}
		if got := chain.Begun(httptest.NewRecorder()); !got.Equal(time.Now()) {
			t.Errorf("without a recorder: got %v, want %v", got, time.Now())
		}
	})
}

// A panic leaves the recorder in a state that recovery can decide by.
func TestRecoveryAsksTheRecorder(t *testing.T) {
	recovery := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w, rec := chain.Record(w)
			defer func() {
				if recover() != nil && !rec.Written() {
					http.Error(w, "sorry", http.StatusInternalServerError)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
	for body, status := range map[string]int{"": 500, "begun": 200} {
		w := httptest.NewRecorder()
		chain.Must(chain.New(recovery).Then(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if body != "" {
				_, _ = io.WriteString(w, body)
			}
			panic("no")
		}))).ServeHTTP(w, request(t.Context()))
		if w.Code != status || !strings.HasPrefix(w.Body.String(), body) {
			t.Errorf("%q: got %d, %q", body, w.Code, w.Body)
		}
	}
}
