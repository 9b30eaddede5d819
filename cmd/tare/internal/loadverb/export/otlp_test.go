package export_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb/export"
	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// receiver keeps what it is sent, and answers as it is told.
type receiver struct {
	mu     sync.Mutex
	asked  []*http.Request
	bodies []string
	status int
	reply  string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.bodies = append(r.asked, req), append(r.bodies, string(body))
	w.WriteHeader(max(r.status, 200))
	io.WriteString(w, r.reply)
}

func (r *receiver) answer(status int, reply string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.reply = status, reply
}

// receive starts a receiver and an exporter that sends to it.
func receive(t *testing.T) (*receiver, *export.Exporter) {
	t.Helper()
	r := &receiver{reply: "{}"}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	e, err := export.Flags{Flag: telemetry.Flag{OTLP: s.URL}}.Open(t.Context(), &cli.Terminal{Err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return r, e
}

// points are the data points of a metric that a receiver was sent, and its form.
func points(t *testing.T, body, name string) (form map[string]any, all []map[string]any) {
	t.Helper()
	var sent struct {
		ResourceMetrics []struct {
			ScopeMetrics []struct{ Metrics []map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		t.Fatal(err)
	}
	if len(sent.ResourceMetrics) != 1 || len(sent.ResourceMetrics[0].ScopeMetrics) != 1 {
		t.Fatalf("got %s, want one resource and one scope", body)
	}
	for _, m := range sent.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		if m["name"] != name {
			continue
		}
		for _, kind := range []string{"sum", "gauge", "summary"} {
			if form, ok := m[kind].(map[string]any); ok {
				for _, p := range form["dataPoints"].([]any) {
					all = append(all, p.(map[string]any))
				}
				return form, all
			}
		}
	}
	t.Fatalf("got %s, want %s in it", body, name)
	return nil, nil
}

// nanos is a time that OTLP's JSON has as a string.
func nanos(t *testing.T, v any) time.Time {
	t.Helper()
	text, ok := v.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		t.Fatalf("got the time %v, want nanoseconds as a string", v)
	}
	return time.Unix(0, n)
}

// A receiver gets an empty request before the load and the last state at its end, in
// OTLP's JSON.
func TestOTLP(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=se%20cret, x=1")
	r, e := receive(t)
	if len(r.bodies) != 1 || r.bodies[0] != `{"resourceMetrics":[]}` {
		t.Fatalf("before the load: got %q, want a request without metrics", r.bodies)
	}
	e.Note(state(time.Second))
	e.Note(state(2 * time.Second))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if len(r.bodies) != 2 {
		t.Fatalf("got %d requests, want one before the load and one at its end: %q", len(r.bodies), r.bodies)
	}
	req, body := r.asked[1], r.bodies[1]
	if req.Method != "POST" || req.URL.Path != "/v1/metrics" || req.Header.Get("Content-Type") != "application/json" ||
		req.Header.Get("Api-Key") != "se cret" || req.Header.Get("X") != "1" {
		t.Errorf("got %s %s with %v", req.Method, req.URL, req.Header)
	}
	form, requests := points(t, body, "tare.load.requests")
	if form["isMonotonic"] != true || form["aggregationTemporality"] != 2.0 || len(requests) != 1 || requests[0]["asInt"] != "101" {
		t.Errorf("requests: got %v, want a cumulative sum of 101 as a string", form)
	}
	if since, at := nanos(t, requests[0]["startTimeUnixNano"]), nanos(t, requests[0]["timeUnixNano"]); at.Sub(since) < time.Second || at.Sub(since) > time.Minute || time.Since(at) > time.Minute {
		t.Errorf("requests: got from %v to %v, want the second before the first state to now", since, at)
	}
	_, responses := points(t, body, "tare.load.responses")
	if got := fmt.Sprintf("%v %v", responses[1]["attributes"], responses[1]["asInt"]); len(responses) != 5 || got != "[map[key:class value:map[stringValue:2xx]]] 90" {
		t.Errorf("responses: got %v, want five classes, 90 of 2xx", responses)
	}
	if _, flight := points(t, body, "tare.load.in_flight"); flight[0]["asDouble"] != 3.0 {
		t.Errorf("in flight: got %v, want 3", flight)
	}
	_, times := points(t, body, "tare.load.response")
	q := times[0]["quantileValues"].([]any)
	if times[0]["count"] != "99" || len(q) != 5 || q[0].(map[string]any)["quantile"] != 0.5 {
		t.Errorf("response times: got %v, want 99 and their quantiles", times)
	}
}

// Counters begin when the measured part does, and again when the next one does.
func TestOTLPBegins(t *testing.T) {
	var begun []time.Time
	for _, elapsed := range [][]time.Duration{{-time.Second}, {-time.Second, 0}, {time.Second, 5 * time.Second}, {5 * time.Second, time.Second}} {
		r, e := receive(t)
		for _, d := range elapsed {
			e.Note(state(d))
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		_, requests := points(t, r.bodies[1], "tare.load.requests")
		begun = append(begun, time.Time{}.Add(nanos(t, requests[0]["timeUnixNano"]).Sub(nanos(t, requests[0]["startTimeUnixNano"]))))
	}
	for i, want := range []time.Duration{0, 0, time.Second, time.Second} {
		if got := begun[i].Sub(time.Time{}); got < want || got > want+time.Second/2 {
			t.Errorf("%d: the counters had counted for %v, want %v", i, got, want)
		}
	}
}

// The measured part's own figures come last.
func TestLast(t *testing.T) {
	r, e := receive(t)
	e.Note(state(time.Second))
	e.Last(nil)
	e.Last(&load.Result{Elapsed: 3 * time.Second, Counts: load.Counts{Scheduled: 200}, Response: hist.New()})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, requests := points(t, r.bodies[1], "tare.load.requests"); requests[0]["asInt"] != "200" {
		t.Errorf("got %v, want the result's", requests)
	}
	if _, times := points(t, r.bodies[1], "tare.load.response"); times[0]["quantileValues"] != nil || times[0]["count"] != "0" {
		t.Errorf("got %v, want no quantiles of nothing", times)
	}
}

// What does not arrive is an error, with what the receiver says.
func TestOTLPRefused(t *testing.T) {
	for _, tt := range []struct {
		status      int
		reply, want string
	}{
		{200, `{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}`, "rejected 3 of the values: too old"},
		{200, `{"partialSuccess":{"rejectedDataPoints":2}}`, "rejected 2"},
		{400, `{"message":"no such field"}`, `400 Bad Request: "no such field"`},
		{404, "404 page not found\n", `404 Not Found: "404 page not found\n"`},
		{415, "", "does not take OTLP as JSON"},
		{503, "", "503 Service Unavailable"},
	} {
		r, e := receive(t)
		r.answer(tt.status, tt.reply)
		e.Note(state(time.Second))
		if err := e.Close(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("status %d, %s: got %v, want %q", tt.status, tt.reply, err, tt.want)
		}
	}
	r, e := receive(t)
	r.answer(200, `{"partialSuccess":{"rejectedDataPoints":"0","errorMessage":"a warning"}}`)
	e.Note(state(time.Second))
	if err := e.Close(); err != nil {
		t.Errorf("nothing was rejected: got %v", err)
	}
}

// A receiver that is not there, or a URL that is none, is found before the load.
func TestOTLPOpen(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	dead := httptest.NewServer(nil)
	dead.Close()
	for _, tt := range []struct {
		url, want string
		status    int
	}{
		{s.URL, "sending metrics to " + s.URL + "/v1/metrics: it answered 404 Not Found", cli.ExitFailed},
		{s.URL + "/otlp", "/otlp: it answered 404", cli.ExitFailed},
		{dead.URL, "connection refused", cli.ExitFailed},
		{"ftp://localhost", `scheme "ftp"`, cli.ExitUsage},
		{"http://", "no host", cli.ExitUsage},
		{"http://ada:secret%@localhost", "malformed", cli.ExitUsage},
	} {
		_, err := export.Flags{Flag: telemetry.Flag{OTLP: tt.url}}.Open(t.Context(), &cli.Terminal{Err: io.Discard})
		f, ok := err.(*cli.Failure)
		if !ok || f.Status != tt.status || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q and status %d", tt.url, err, tt.want, tt.status)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key")
	if _, err := (export.Flags{Flag: telemetry.Flag{OTLP: s.URL}}).Open(t.Context(), &cli.Terminal{Err: io.Discard}); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_HEADERS") {
		t.Errorf("a header without a value: got %v, want an error that names the variable", err)
	}
}
