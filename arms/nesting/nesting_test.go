package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func newService(access io.Writer) *service {
	return &service{
		token:   "tare",
		user:    &user{ID: 1, Name: "Ada"},
		metrics: newMetrics(),
		access:  slog.New(slog.NewJSONHandler(access, nil)),
		errors:  slog.New(slog.DiscardHandler),
	}
}

func wrap(t testing.TB, s *service, layers string, h http.HandlerFunc) http.Handler {
	t.Helper()
	wrapped, err := s.wrap(layers, h)
	if err != nil {
		t.Fatal(err)
	}
	return wrapped
}

func request(authorization string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/users", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

// counted returns the metrics that do not depend on time.
func counted(m *metrics) string {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, nil)
	var counts strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, "_count{") {
			counts.WriteString(line)
		}
	}
	return counts.String()
}

// outcome is all that can be observed of a request.
func outcome(t *testing.T, layers, authorization string, h http.HandlerFunc) string {
	t.Helper()
	s := newService(io.Discard)
	w := httptest.NewRecorder()
	var seen, panicked any
	func() {
		defer func() { panicked = recover() }()
		wrap(t, s, layers, func(w http.ResponseWriter, r *http.Request) {
			seen = r.Context().Value(userKey{})
			h(w, r)
		}).ServeHTTP(w, request(authorization))
	}()
	return fmt.Sprintf("status %d, header %v, body %q, user %v, panic %v, metrics %q", w.Code, w.Header(), w.Body, seen, panicked, counted(s.metrics))
}

func TestMergedDoesWhatThreeDo(t *testing.T) {
	const count = `http_request_duration_seconds_count{method="GET",status="%d"} 1`
	tests := []struct {
		name, authorization string
		handler             http.HandlerFunc
		want                []string
	}{
		{"list", "Bearer tare", listUsers(), []string{"status 200", "Ada", fmt.Sprintf(count, 200)}},
		{"no token", "", listUsers(), []string{"status 401", "user <nil>", `metrics ""`}},
		{"wrong token", "Bearer tara", listUsers(), []string{"status 401", "user <nil>"}},
		{"other scheme", "Basic tare", listUsers(), []string{"status 401", "user <nil>"}},
		{"status", "Bearer tare", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, []string{"status 204", fmt.Sprintf(count, 204)}},
		{"nothing written", "Bearer tare", func(http.ResponseWriter, *http.Request) {}, []string{"status 200", fmt.Sprintf(count, 200)}},
		{"panic", "Bearer tare", func(http.ResponseWriter, *http.Request) { panic("no") }, []string{"status 500", "internal server error", "panic <nil>", fmt.Sprintf(count, 500)}},
		{"late panic", "Bearer tare", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202); panic("no") }, []string{"status 202", "panic <nil>", fmt.Sprintf(count, 202)}},
		{"abort", "Bearer tare", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"panic net/http: abort Handler", `metrics ""`}},
	}
	for _, tt := range tests {
		three := outcome(t, "three", tt.authorization, tt.handler)
		merged := outcome(t, "merged", tt.authorization, tt.handler)
		if three != merged {
			t.Errorf("%s: three and merged differ:\n%s\n%s", tt.name, three, merged)
		}
		for _, want := range tt.want {
			if !strings.Contains(strings.ReplaceAll(three, `\`, ""), want) {
				t.Errorf("%s: got %s, want %s in it", tt.name, three, want)
			}
		}
	}
}

// What can be told from outside is the same where three are flattened: the answer and
// the metrics. No handler is called, and so none sees the user.
func TestFlattenedAnswersAsThreeDo(t *testing.T) {
	for _, authorization := range []string{"Bearer tare", "", "Bearer tara", "Basic tare"} {
		three := strings.Replace(outcome(t, "three", authorization, listUsers()), "user &{1 Ada}", "user <nil>", 1)
		if flat := outcome(t, "flattened", authorization, listUsers()); flat != three {
			t.Errorf("authorization %q: three and flattened differ:\n%s\n%s", authorization, three, flat)
		}
	}
}

// A request costs flattened what it costs the handler alone: no copy, no wrapper.
func TestFlattenedAllocatesNothing(t *testing.T) {
	w := &discard{header: http.Header{}}
	allocs := func(layers string) float64 {
		h, r := wrap(t, newService(io.Discard), layers, listUsers()), request("Bearer tare")
		return testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) })
	}
	if none, flat, three := allocs("none"), allocs("flattened"), allocs("three"); flat != none || three <= none {
		t.Errorf("allocations: none %v, flattened %v, three %v; want flattened as none and three more", none, flat, three)
	}
}

func TestEveryNumberOfLayersAnswersTheSame(t *testing.T) {
	tests := []struct {
		layers          string
		guarded, counts bool
	}{
		{"none", false, false},
		{"one", true, false},
		{"two", true, false},
		{"three", true, true},
		{"five", true, true},
		{"flattened", true, true},
		{"merged", true, true},
	}
	for _, tt := range tests {
		s := newService(io.Discard)
		srv := httptest.NewServer(wrap(t, s, tt.layers, listUsers()))
		for authorization, want := range map[string]bool{"Bearer tare": true, "": !tt.guarded} {
			r, err := http.NewRequest(http.MethodGet, srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", authorization)
			res, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			ok := res.StatusCode == http.StatusOK && string(body) == users && res.Header.Get("Content-Length") == fmt.Sprint(len(users))
			if ok != want || !ok && res.StatusCode != http.StatusUnauthorized {
				t.Errorf("layers %s, authorization %q: got %s, %v and %q", tt.layers, authorization, res.Status, res.Header, body)
			}
		}
		srv.Close()
		if got := counted(s.metrics) != ""; got != tt.counts {
			t.Errorf("layers %s: got metrics %q", tt.layers, counted(s.metrics))
		}
	}
	if _, err := newService(io.Discard).wrap("four", nil); err == nil || !strings.Contains(err.Error(), names) {
		t.Errorf("four layers: got %v, want an error that says %q", err, names)
	}
}

func TestFiveLogAndName(t *testing.T) {
	var log bytes.Buffer
	h := wrap(t, newService(&log), "five", listUsers())
	for _, given := range []string{"", "mine"} {
		log.Reset()
		w, r := httptest.NewRecorder(), request("Bearer tare")
		if given != "" {
			r.Header.Set("X-Request-Id", given)
		}
		h.ServeHTTP(w, r)
		id := w.Header().Get("X-Request-Id")
		if given == "" && len(id) != 32 || given != "" && id != given {
			t.Errorf("X-Request-Id %q: got %q", given, id)
		}
		want := fmt.Sprintf(`"id":%q,"method":"GET","path":"/api/v1/users","status":200,"bytes":%d`, id, len(users))
		if !strings.Contains(log.String(), want) {
			t.Errorf("log: got %q, want %s in it", log.String(), want)
		}
	}
}

func TestWriterReachesTheConnection(t *testing.T) {
	w := httptest.NewRecorder()
	wrap(t, newService(io.Discard), "five", func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flushing through the layers: %v", err)
		}
	}).ServeHTTP(w, request("Bearer tare"))
	if !w.Flushed {
		t.Error("flushing through the layers: did not arrive")
	}
}

func BenchmarkLayers(b *testing.B) {
	for _, layers := range []string{"none", "one", "two", "three", "five", "flattened", "merged"} {
		b.Run("layers="+layers, func(b *testing.B) {
			h, r := wrap(b, newService(io.Discard), layers, listUsers()), request("Bearer tare")
			w := &discard{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}

// discard is a response writer that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
