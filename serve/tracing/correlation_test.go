package tracing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/servetest"
	"github.com/tarehq/tare/serve/tracing"
)

// observed is a service with spans, log lines and metrics.
type observed struct {
	handler http.Handler
	metrics *metrics.Metrics
	spans   *tracetest.SpanRecorder
	log     *accesslog.Log
	lines   bytes.Buffer // read it after the log is closed
}

type middleware = func(http.Handler) http.Handler

// observe puts spans, log and metrics before app, in a chain in the order of the letters t, l
// and m, or nested in that order.
func observe(service, order string, chained bool, o tracing.Options, app http.Handler) *observed {
	s := &observed{}
	mw, spans := traced(o)
	s.spans = spans
	s.metrics = must(metrics.New(metrics.Options{Service: service, Trace: tracing.ID}))
	s.log = must(accesslog.New(accesslog.Options{To: &s.lines, Trace: tracing.ID}))
	parts := map[rune]middleware{'t': mw, 'l': s.log.Middleware, 'm': s.metrics.Middleware}
	var all []middleware
	for _, letter := range order {
		all = append(all, parts[letter])
	}
	if chained {
		s.handler = chain.Must(chain.New(all...).Then(app))
		return s
	}
	s.handler = app
	for i := range all {
		s.handler = all[len(all)-1-i](s.handler)
	}
	return s
}

// line is what the tests read of a log's line.
type line struct {
	Trace    string  `json:"trace_id"`
	Target   string  `json:"target"`
	Duration float64 `json:"duration_ms"`
}

// closeLog returns the lines by their traces.
func (s *observed) closeLog(t *testing.T) map[string]line {
	t.Helper()
	if err := s.log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := map[string]line{}
	for text := range strings.Lines(s.lines.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		found[l.Trace] = l
	}
	return found
}

// paths returns the paths of the spans by their traces.
func (s *observed) paths() map[string]string {
	found := map[string]string{}
	for _, span := range s.spans.Ended() {
		set := attribute.NewSet(span.Attributes()...)
		path, _ := set.Value("url.path")
		found[span.SpanContext().TraceID().String()] = path.AsString()
	}
	return found
}

// exemplars returns the traces that the page of metrics names.
func (s *observed) exemplars() []string {
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	w := httptest.NewRecorder()
	s.metrics.ServeHTTP(w, r)
	var found []string
	for _, m := range regexp.MustCompile(`# \{trace_id="([^"]*)"\}`).FindAllStringSubmatch(w.Body.String(), -1) {
		found = append(found, m[1])
	}
	return found
}

// P3.correlation: one identifier ties the span, the log line and the exemplar of a request
// together, among requests at the same time; of requests that are not traced, none has one.
func TestCorrelation(t *testing.T) {
	const requests = 100
	for _, c := range []struct {
		order   string
		chained bool
	}{{"tlm", true}, {"lmt", true}, {"tlm", false}} {
		for _, share := range []float64{1, 0} {
			t.Run(fmt.Sprintf("order=%s,chain=%t,share=%g", c.order, c.chained, share), func(t *testing.T) {
				mux := http.NewServeMux()
				mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.PathValue("id")) })
				s := observe("shop", c.order, c.chained, tracing.Options{Sampler: tracing.Fixed{Share: share}}, mux)
				server := servetest.NewServer(s.handler)
				var all sync.WaitGroup
				for i := range requests {
					all.Go(func() {
						res, err := server.Client().Get(fmt.Sprintf("%s/orders/%d", server.URL, i))
						if err != nil {
							t.Error(err)
							return
						}
						res.Body.Close()
					})
				}
				all.Wait()
				server.Close()
				lines, paths, exemplars := s.closeLog(t), s.paths(), s.exemplars()
				if share == 0 {
					if _, ok := lines[""]; !ok || len(lines) != 1 || len(paths) > 0 || len(exemplars) > 0 {
						t.Errorf("traced: %v of %d lines, spans %v, exemplars %v; want none", lines, requests, paths, exemplars)
					}
					return
				}
				if len(lines) != requests || len(paths) != requests || len(exemplars) == 0 {
					t.Fatalf("%d traces in lines, %d in spans, %d in exemplars; want %d, %[4]d and some", len(lines), len(paths), len(exemplars), requests)
				}
				for id, l := range lines {
					if path, ok := paths[id]; !ok || path != l.Target {
						t.Errorf("trace %s: the line is of %s, the span of %q", id, l.Target, path)
					}
				}
				for _, id := range exemplars {
					if _, ok := lines[id]; !ok {
						t.Errorf("an exemplar is of trace %s, which no line has", id)
					}
				}
			})
		}
	}
}
