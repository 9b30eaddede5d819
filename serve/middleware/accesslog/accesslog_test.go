package accesslog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/middleware/recovery"
	"github.com/tarehq/tare/serve/middleware/requestid"
)

func Example() {
	log, err := accesslog.New(accesslog.Options{To: os.Stdout, Format: func(b []byte, l *accesslog.Line) []byte {
		return fmt.Appendf(b, "%s %s %d\n", l.Method, l.Target, l.Status)
	}})
	if err != nil {
		panic(err)
	}
	h := log.Middleware(http.NotFoundHandler())
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/orders?token=secret", nil))
	log.Close(context.Background())
	// Output: GET /orders 404
}

// logged returns what one request through h has logged.
func logged(t *testing.T, o accesslog.Options, r *http.Request, h http.Handler) string {
	t.Helper()
	var to bytes.Buffer
	o.To = &to
	log := open(t, o)
	chained := chain.Must(chain.New(recovery.New(recovery.Options{Log: slog.New(slog.DiscardHandler)}), requestid.New(requestid.Options{}), log.Middleware).Then(h))
	chained.ServeHTTP(httptest.NewRecorder(), r)
	if err := log.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return to.String()
}

func open(t testing.TB, o accesslog.Options) *accesslog.Log {
	t.Helper()
	log, err := accesslog.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestLine(t *testing.T) {
	request := func() *http.Request {
		r := httptest.NewRequest("GET", "/a%20b?q=1", nil)
		r.Header.Set("X-Request-Id", "id-7")
		r.Header.Set("User-Agent", `curl "8"`+"\x1b[31m\n\xff")
		r.Header.Set("Referer", "http://example.com/?token=1")
		return r
	}
	teapot := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Pattern = "GET /{name}"
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short")
	})
	traced := func(r *http.Request) string { return "trace of " + r.Pattern }
	got := logged(t, accesslog.Options{User: func(*http.Request) string { return "ann o" }, Trace: traced}, request(), teapot)
	want := regexp.MustCompile(`^{"time":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[-+]\d\d:\d\d)","id":"id-7","trace_id":"trace of GET /{name}","client":"192.0.2.1","user":"ann o","method":"GET",` +
		`"host":"example.com","target":"/a%20b","route":"GET /{name}","proto":"HTTP/1.1","status":418,"bytes":5,"duration_ms":\d+\.\d{3},` +
		`"referer":"http://example.com/","agent":"curl \\"8\\"\\u001b\[31m\\u000a\\ufffd"}` + "\n$")
	if !want.MatchString(got) {
		t.Errorf("JSON: %s", got)
	}
	got = logged(t, accesslog.Options{Format: accesslog.Combined, Query: true, User: func(*http.Request) string { return "ann o" }}, request(), teapot)
	want = regexp.MustCompile(`^192.0.2.1 - ann_o \[\d\d/[A-Z][a-z]{2}/20\d\d:\d\d:\d\d:\d\d [-+]\d{4}\] "GET /a%20b\?q=1 HTTP/1.1" 418 5 "http://example.com/\?token=1" "curl \\"8\\"\\x1b\[31m\\x0a\\xff"` + "\n$")
	if !want.MatchString(got) {
		t.Errorf("combined: %s", got)
	}
	if got := logged(t, accesslog.Options{}, request(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") })); !strings.Contains(got, `"status":500`) || !strings.Contains(got, `"panicked":true`) {
		t.Errorf("of a panic: %s", got)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if got := logged(t, accesslog.Options{}, request().WithContext(gone), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") })); !strings.Contains(got, `"status":499`) {
		t.Errorf("of a client that has left: %s", got)
	}
	if got := logged(t, accesslog.Options{}, request().WithContext(gone), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})); !strings.Contains(got, `"status":499`) {
		t.Errorf("of a client that has left, as the handler noticed: %s", got)
	}
	if got := logged(t, accesslog.Options{}, request(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})); !strings.Contains(got, `"status":200,"bytes":0`) {
		t.Errorf("of nothing written: %s", got)
	}
	head := request()
	head.Method = "HEAD"
	if got := logged(t, accesslog.Options{}, head, teapot); !strings.Contains(got, `"status":418,"bytes":0`) {
		t.Errorf("of HEAD, to which no body is sent: %s", got)
	}
	keep := func(_ *http.Request, l *accesslog.Line) bool { return l.Status >= 500 }
	if got := logged(t, accesslog.Options{Keep: keep}, request(), teapot); got != "" {
		t.Errorf("not kept, and logged: %s", got)
	}
}

// TestSlog has requests be records of slog, with the request's context.
func TestSlog(t *testing.T) {
	type key struct{}
	var got bytes.Buffer
	h := &contextual{slog.NewJSONHandler(&got, nil), func(ctx context.Context) bool { return ctx.Value(key{}) == "of the request" }}
	log := open(t, accesslog.Options{Slog: h, User: func(*http.Request) string { return "ann" }})
	for path, status := range map[string]int{"/a?token=1": 418, "/b": 500} {
		got.Reset()
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("User-Agent", "curl\n8")
		log.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, "short")
		})).ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), key{}, "of the request")))
		var record map[string]any
		if err := json.Unmarshal(got.Bytes(), &record); err != nil {
			t.Fatalf("%s: %v", &got, err)
		}
		level := map[int]string{418: "INFO", 500: "ERROR"}[status]
		for name, want := range map[string]any{"level": level, "msg": "request", "client": "192.0.2.1", "user": "ann", "method": "GET", "target": path[:2],
			"status": float64(status), "bytes": 5.0, "agent": "curl\n8", "ours": true, "route": nil} {
			if record[name] != want {
				t.Errorf("%s: %s is %v, want %v", path, name, record[name], want)
			}
		}
		if took, ok := record["duration"].(float64); !ok || took < 0 {
			t.Errorf("%s: took %v", path, record["duration"])
		}
	}
	if err := log.Close(t.Context()); err != nil || log.Lost() != 0 {
		t.Errorf("%v, %d lost", err, log.Lost())
	}
}

// contextual says in each record whether the context is the right one.
type contextual struct {
	slog.Handler
	right func(context.Context) bool
}

func (c *contextual) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(slog.Bool("ours", c.right(ctx)))
	return c.Handler.Handle(ctx, r)
}

// TestTimes writes the times of lines about the turn of a second, and in two zones.
func TestTimes(t *testing.T) {
	east := time.FixedZone("", 2*3600)
	for _, at := range []time.Time{
		time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), time.Date(2026, 1, 2, 3, 4, 5, 999999999, time.UTC),
		time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), time.Date(2026, 1, 2, 5, 4, 6, 120000000, east),
	} {
		line := accesslog.JSON(nil, &accesslog.Line{Time: at})
		if want := at.Format(`{"time":"2006-01-02T15:04:05.000000Z07:00"`); !bytes.HasPrefix(line, []byte(want)) {
			t.Errorf("%s, want %s", line, want)
		}
	}
}

// stuck is a writer that blocks until it is let go.
type stuck struct {
	go_ chan struct{}
	mu  sync.Mutex
	got bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.go_
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

// TestPolicies fills the buffer of a log whose writer is stuck.
func TestPolicies(t *testing.T) {
	const size, buffer = 1000, 64 << 10
	for _, policy := range []accesslog.Policy{accesslog.DropNewest, accesslog.DropOldest} {
		to := &stuck{go_: make(chan struct{})}
		n := 0
		log := open(t, accesslog.Options{To: to, Buffer: buffer, Full: policy, Every: time.Hour,
			Format: func(b []byte, _ *accesslog.Line) []byte {
				n++
				return fmt.Appendf(b, "%0*d\n", size-1, n)
			}})
		h := log.Middleware(http.NotFoundHandler())
		ask := func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) }
		for range 1000 {
			ask()
		}
		lost := log.Lost()
		if lost < 1000-2*buffer/size || lost > 1000-buffer/size {
			t.Errorf("policy %d: %d of 1000 lost", policy, lost)
		}
		close(to.go_)
		if err := log.Close(t.Context()); err != nil {
			t.Error(err)
		}
		lines := strings.Fields(to.got.String())
		if uint64(len(lines))+lost != 1000 {
			t.Errorf("policy %d: %d lines written and %d lost", policy, len(lines), lost)
		}
		last := fmt.Sprintf("%0*d", size-1, 1000)
		if has := lines[len(lines)-1] == last; has != (policy == accesslog.DropOldest) {
			t.Errorf("policy %d: the last line is there: %t", policy, has)
		}
		ask()
		if log.Lost() != lost+1 {
			t.Error("a line after Close is not counted")
		}
	}
}

// TestLongFields has a client send more than a buffer holds: its lines are there all the same,
// of the smallest buffer and with each byte escaped.
func TestLongFields(t *testing.T) {
	long := strings.Repeat("\xff", 100<<10)
	for name, format := range map[string]accesslog.Format{"JSON": accesslog.JSON, "combined": accesslog.Combined} {
		for _, sync := range []bool{false, true} {
			var to bytes.Buffer
			log := open(t, accesslog.Options{To: &to, Format: format, Buffer: 64 << 10, Sync: sync,
				User: func(*http.Request) string { return long }, Trace: func(*http.Request) string { return long }})
			r := httptest.NewRequest("GET", "/admin", nil)
			r.Method, r.Host, r.Pattern, r.Proto = long, long, long, long
			r.Header.Set("User-Agent", long)
			r.Header.Set("Referer", long)
			log.Middleware(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
			if err := log.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := to.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "/admin") || len(got) > 64<<10 || log.Lost() != 0 {
				t.Errorf("%s, sync %t: %d bytes, %d lost, want one line of /admin", name, sync, len(got), log.Lost())
			}
		}
	}
}

// TestWait has requests wait for a stuck writer, and loses none.
func TestWait(t *testing.T) {
	to := &stuck{go_: make(chan struct{})}
	log := open(t, accesslog.Options{To: to, Buffer: 64 << 10, Full: accesslog.Wait})
	h := log.Middleware(http.NotFoundHandler())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 200 {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	close(to.go_)
	all.Wait()
	if err := log.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(to.got.String(), "\n"); n != 4000 || log.Lost() != 0 {
		t.Errorf("%d lines of 4000, %d lost", n, log.Lost())
	}
}

// TestWriterFails has a full disk and a pipe whose reader is gone: requests go on.
func TestWriterFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("SKIPPED: no file stands for a full disk here: %v", err)
	}
	defer full.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	for name, to := range map[string]io.Writer{"full disk": full, "no reader": w} {
		for _, sync := range []bool{false, true} {
			log := open(t, accesslog.Options{To: to, Sync: sync})
			h := log.Middleware(http.NotFoundHandler())
			for range 10 {
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
				if rec.Code != 404 {
					t.Errorf("%s: answered %d", name, rec.Code)
				}
			}
			if err := log.Close(t.Context()); err == nil {
				t.Errorf("%s: Close returns no error", name)
			}
			if log.Lost() != 10 {
				t.Errorf("%s, sync %t: %d lost of 10", name, sync, log.Lost())
			}
		}
	}
}

// TestCloseIsBounded closes a log whose writer never returns.
func TestCloseIsBounded(t *testing.T) {
	to := &stuck{go_: make(chan struct{})}
	defer close(to.go_)
	log := open(t, accesslog.Options{To: to})
	log.Middleware(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []accesslog.Options{{}, {To: io.Discard, Slog: slog.DiscardHandler}, {To: io.Discard, Buffer: 1}, {To: io.Discard, Full: 3}, {To: io.Discard, Every: -1}} {
		if _, err := accesslog.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestEscapes has each byte in each place of a string.
func TestEscapes(t *testing.T) {
	raw := regexp.MustCompile(`[^ -~\x{a0}-\x{10ffff}]`)
	for c := range 256 {
		for at := range 17 {
			b := bytes.Repeat([]byte{'a'}, 17)
			b[at] = byte(c)
			text := accesslog.JSON(nil, &accesslog.Line{Target: string(b)})
			var back struct{ Target string }
			if err := json.Unmarshal(text, &back); err != nil || back.Target != strings.ToValidUTF8(string(b), "\ufffd") {
				t.Fatalf("%q became %q, %v", b, text, err)
			}
			if raw.Match(text[:len(text)-1]) {
				t.Fatalf("%q became %q", b, text)
			}
		}
	}
}

// FuzzLine writes any line: JSON is one object with what it was given, and neither
// format has more than one line nor anything that is not printable.
func FuzzLine(f *testing.F) {
	f.Add("/a", "curl", "x")
	f.Add("/\n\r\"\\", "\x1b]0;x\x07", "\u061c\u202e\u2028\xff\u0085")
	printable := regexp.MustCompile(`^[^\x00-\x1f\x7f-\x{9f}\x{61c}\x{2028}\x{2029}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]*\n$`)
	f.Fuzz(func(t *testing.T, target, agent, user string) {
		l := accesslog.Line{Target: target, Agent: agent, User: user, Client: netip.MustParseAddr("::1"), Status: 200, Took: time.Second}
		text := accesslog.JSON(nil, &l)
		var back struct {
			Target, Agent, User string
			Duration            float64 `json:"duration_ms"`
		}
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if want := strings.ToValidUTF8(target, ""); strings.ReplaceAll(back.Target, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") || back.Duration != 1000 {
			t.Errorf("%q became %q", target, back.Target)
		}
		if !printable.Match(text) {
			t.Errorf("JSON: %q", text)
		}
		if text = accesslog.Combined(nil, &l); !printable.Match(text) {
			t.Errorf("combined: %q", text)
		}
	})
}

// BenchmarkLine says what a line costs its request: on, logged to nowhere; off, without
// the middleware.
func BenchmarkLine(b *testing.B) {
	w, _ := chain.Record(httptest.NewRecorder())
	r := httptest.NewRequest("GET", "/api/v1/orders/4711?full=1", nil)
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	for _, f := range []struct {
		name   string
		format accesslog.Format
	}{{"json", accesslog.JSON}, {"combined", accesslog.Combined}} {
		log := open(b, accesslog.Options{To: io.Discard, Format: f.format})
		defer log.Close(context.Background())
		h := log.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
		b.Run(f.name+"/by=all", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				w, _ := chain.Record(httptest.NewRecorder())
				for pb.Next() {
					h.ServeHTTP(w, r)
				}
			})
		})
	}
}
