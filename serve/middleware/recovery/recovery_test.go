package recovery_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/recovery"
	"github.com/tarehq/tare/serve/middleware/requestid"
)

func Example() {
	h := chain.Must(chain.New(recovery.New(recovery.Options{Log: slog.New(slog.DiscardHandler)})).
		Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no database") })))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 500 Internal Server Error
}

// TestPanic asks a server over a connection: only there an aborted answer shows.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	wrap := recovery.New(recovery.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		status  int // 0: the connection is cut
		logged  string
	}{
		"none": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }, 200, ""},
		"before": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", "x")
			w.Header().Set("X-Request-Id", "7")
			panic("lost")
		}, 500, "lost"},
		"after": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic("cut")
		}, 0, "cut"},
		"abort":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, ""},
		"nil pointer": {func(_ http.ResponseWriter, r *http.Request) { _ = r.TLS.Version }, 500, "recovery_test.go"}, // the stack names the place
	} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			s := httptest.NewUnstartedServer(wrap(c.handler))
			s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			s.Start()
			defer s.Close()
			status := 0
			resp, err := http.Get(s.URL)
			if err == nil {
				if _, err = io.ReadAll(resp.Body); err == nil {
					status = resp.StatusCode
				}
				resp.Body.Close()
				if resp.StatusCode == 500 && resp.Header.Get("Etag") != "" {
					t.Error("the 500 has the ETag of the answer that did not come")
				}
				if name == "before" && resp.Header.Get("X-Request-Id") != "7" {
					t.Error("the 500 lacks the request's identifier")
				}
			}
			s.Close()
			if status != c.status {
				t.Errorf("status %d, want %d (%v)", status, c.status, err)
			}
			if (log.Len() > 0) != (c.logged != "") || !strings.Contains(log.String(), c.logged) {
				t.Errorf("logged %q, want %q in it", &log, c.logged)
			}
		})
	}
}

// TestIdentifier has the record name the request as its access log does.
func TestIdentifier(t *testing.T) {
	var log bytes.Buffer
	h := chain.Must(chain.New(
		recovery.New(recovery.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}),
		requestid.New(requestid.Options{}),
	).Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("lost") })))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Request-Id", "id-7")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if !strings.Contains(log.String(), " id=id-7") {
		t.Errorf("the record has no id=id-7: %s", &log)
	}
}

// TestLogPanics has the handler of the log panic, too: the client gets the answer.
func TestLogPanics(t *testing.T) {
	h := recovery.New(recovery.Options{Log: slog.New(broken{slog.DiscardHandler})})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("lost") }))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d, want 500", w.Code)
	}
}

// broken is a handler of logs that panics.
type broken struct{ slog.Handler }

func (broken) Enabled(context.Context, slog.Level) bool { return true }

func (broken) Handle(context.Context, slog.Record) error { panic("the log is broken") }

func TestOrder(t *testing.T) {
	other := func(h http.Handler) http.Handler { return h }
	wrap := recovery.New(recovery.Options{})
	if _, err := chain.New(other, wrap).Then(http.NotFoundHandler()); err == nil {
		t.Error("a layer before recovery is accepted")
	}
	if _, err := chain.New(wrap, other, wrap).Then(http.NotFoundHandler()); err == nil {
		t.Error("recovery twice is accepted")
	}
	if _, err := chain.New(wrap, other).Then(http.NotFoundHandler()); err != nil {
		t.Error(err)
	}
}

// BenchmarkRequest is a request whose handler does not panic.
func BenchmarkRequest(b *testing.B) {
	h := recovery.New(recovery.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, _ := chain.Record(httptest.NewRecorder())
	r := httptest.NewRequest("GET", "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
