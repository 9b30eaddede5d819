package metrics_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/timeout"
)

func Example() {
	m, err := metrics.New(metrics.Options{NoRuntime: true})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "an order") })
	h := m.Middleware(mux)
	for _, path := range []string{"/orders/7", "/orders/8", "/made-up"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	page := httptest.NewRecorder()
	m.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.Contains(line, "_count") {
			fmt.Print(line)
		}
	}
	// Output:
	// http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/orders/{id}"} 2
	// http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="404",http_route=""} 1
}

func open(t testing.TB, o metrics.Options) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scrape returns the samples of the page.
func scrape(t *testing.T, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if got := w.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("Content-Type: %q", got)
	}
	found := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i := strings.LastIndex(line, "} "); i > 0 {
			name, text = line[:i+1], strings.TrimSpace(line[i+2:])
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		if _, twice := found[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		found[name] = v
	}
	return found
}

// counted returns a request's count by its labels.
func counted(found map[string]float64, method string, status int, route string) float64 {
	return found[fmt.Sprintf(`http_server_request_duration_seconds_count{http_request_method="%s",http_response_status_code="%d",http_route="%s"}`, method, status, route)]
}

func mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "an order") })
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	mux.HandleFunc("/any", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/panics", func(http.ResponseWriter, *http.Request) { panic("x") })
	mux.HandleFunc("/late", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "be"); panic("x") })
	mux.HandleFunc("/hijacks", func(w http.ResponseWriter, _ *http.Request) { w.(http.Hijacker).Hijack() })
	return mux
}

// TestSeries has each kind of answer counted, with the pattern that the router matched
// behind a middleware that copies the request.
func TestSeries(t *testing.T) {
	timed, err := timeout.New(timeout.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, wrap := range map[string]func(m *metrics.Metrics) http.Handler{
		"alone":    func(m *metrics.Metrics) http.Handler { return m.Middleware(mux()) },
		"chain":    func(m *metrics.Metrics) http.Handler { return chain.Must(chain.New(m.Middleware, timed).Then(mux())) },
		"time-out": func(m *metrics.Metrics) http.Handler { return m.Middleware(timed(mux())) },
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t, metrics.Options{Buckets: []float64{1e-9, 60}})
			h := wrap(m)
			for _, c := range []struct{ method, path string }{
				{"GET", "/orders/7"}, {"GET", "/orders/8"}, {"POST", "/orders"}, {"GET", "/any"}, {"HEAD", "/any"}, {"HEAD", "/orders/7"},
				{"GET", "/panics"}, {"GET", "/late"}, {"GET", "/hijacks"}, {"GET", "/nothing"}, {"GET", "/nothing/" + name},
			} {
				func() {
					defer func() { recover() }()
					h.ServeHTTP(&hijackable{httptest.NewRecorder()}, httptest.NewRequest(c.method, c.path, nil))
				}()
			}
			found := scrape(t, m)
			for _, want := range []struct {
				method string
				status int
				route  string
				n      float64
			}{
				{"GET", 200, "/orders/{id}", 2}, {"POST", 201, "/orders", 1}, {"GET", 200, "/any", 1}, {"HEAD", 200, "/any", 1}, {"HEAD", 200, "/orders/{id}", 1},
				{"GET", 500, "/panics", 1}, {"GET", 200, "/late", 1}, {"GET", 101, "/hijacks", 1}, {"GET", 404, "", 2},
			} {
				if got := counted(found, want.method, want.status, want.route); got != want.n {
					t.Errorf("%s %d %q: counted %v, want %v", want.method, want.status, want.route, got, want.n)
				}
			}
			const labels = `{http_request_method="GET",http_response_status_code="200",http_route="/orders/{id}"`
			const duration = "http_server_request_duration_seconds"
			for sample, want := range map[string]float64{
				duration + "_bucket" + labels + `,le="1e-09"}`: 0, duration + "_bucket" + labels + `,le="60"}`: 2, duration + "_bucket" + labels + `,le="+Inf"}`: 2,
				"http_server_response_body_bytes_total" + labels + "}":                                                                        16,
				`http_server_response_body_bytes_total{http_request_method="HEAD",http_response_status_code="200",http_route="/orders/{id}"}`: 0,
				"http_server_active_requests": 0,
			} {
				if got, ok := found[sample]; got != want || !ok {
					t.Errorf("%s is %v (there: %t), want %v", sample, got, ok, want)
				}
			}
			if sum := found[duration+"_sum"+labels+"}"]; sum <= 0 || sum > 60 {
				t.Errorf("two requests took %v s", sum)
			}
		})
	}
}

type hijackable struct{ *httptest.ResponseRecorder }

func (*hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// TestClientsMakeNoSeries sends methods and paths that are made up, and has more patterns
// than there is room for.
func TestClientsMakeNoSeries(t *testing.T) {
	m := open(t, metrics.Options{NoRuntime: true})
	h := m.Middleware(mux())
	for i := range 1000 {
		for _, target := range []string{"/any", "/made-up-"} {
			r := httptest.NewRequest("GET", target+strconv.Itoa(i), nil)
			r.Method = "M" + strconv.Itoa(i)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	found := scrape(t, m)
	if got := counted(found, "_OTHER", 404, ""); got != 2000 || len(found) > 20 {
		t.Errorf("%d samples, 2000 made-up requests counted %v times", len(found), got)
	}

	m = open(t, metrics.Options{NoRuntime: true, Routes: 3, Route: func(r *http.Request) string { return r.URL.Path }})
	h = m.Middleware(http.NotFoundHandler())
	for i := range 100 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/"+strconv.Itoa(i), nil))
	}
	found = scrape(t, m)
	if one, others := counted(found, "GET", 404, "/2"), counted(found, "GET", 404, "_OTHER"); one != 1 || others != 97 {
		t.Errorf("of 100 routes and room for 3: the third has %v, the others %v", one, others)
	}
}

// TestSums adds up durations and bytes of requests in the first bucket, one between and the last.
func TestSums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, metrics.Options{NoRuntime: true})
		took := time.Duration(0)
		h := m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(took)
			_, _ = io.WriteString(w, took.String())
		}))
		for _, took = range []time.Duration{time.Millisecond, 30 * time.Millisecond, time.Minute} {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}
		const labels = `{http_request_method="GET",http_response_status_code="200",http_route=""}`
		found := scrape(t, m)
		for name, want := range map[string]float64{"http_server_request_duration_seconds_sum": 60.031, "http_server_request_duration_seconds_count": 3,
			"http_server_response_body_bytes_total": float64(len("1ms30ms1m0s"))} {
			if got := found[name+labels]; got != want {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		}
	})
}

// TestTogether counts from many goroutines, scraped meanwhile.
func TestTogether(t *testing.T) {
	m := open(t, metrics.Options{})
	h := m.Middleware(mux())
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for i := range 100 {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", []string{"/any", "/orders/7", "/x"}[i%3], nil))
			}
			if _, err := m.WriteTo(io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	found := scrape(t, m)
	if a, b, c := counted(found, "GET", 200, "/any"), counted(found, "GET", 200, "/orders/{id}"), counted(found, "GET", 404, ""); a != 1700 || b != 1650 || c != 1650 {
		t.Errorf("counted %v, %v, %v", a, b, c)
	}
}

func TestValuesAndRuntime(t *testing.T) {
	m := open(t, metrics.Options{Values: []metrics.Value{
		{Name: "log_lines_lost_total", Help: "Lines lost.\nTwo \\ lines.", Counter: true, Read: func() float64 { return 7 }},
		{Name: "pi", Help: "A gauge.", Read: func() float64 { return math.Pi }},
	}})
	found := scrape(t, m)
	for _, want := range []string{"go_sched_goroutines_goroutines", "go_gc_cycles_total_gc_cycles_total", "go_memory_classes_total_bytes",
		"go_sched_latencies_seconds_count", `go_sched_latencies_seconds_bucket{le="+Inf"}`} {
		if _, ok := found[want]; !ok {
			t.Errorf("%s is missing", want)
		}
	}
	if found["log_lines_lost_total"] != 7 || found["pi"] != math.Pi {
		t.Errorf("values: %v, %v", found["log_lines_lost_total"], found["pi"])
	}
	if found["go_sched_latencies_seconds_count"] != found[`go_sched_latencies_seconds_bucket{le="+Inf"}`] {
		t.Error("the histogram's count is not that of its last bucket")
	}
	var page strings.Builder
	if _, err := m.WriteTo(&page); err != nil || !strings.Contains(page.String(), `Two \\ lines.`) {
		t.Errorf("help is not escaped: %v", err)
	}
	if n := len(regexp.MustCompile(`(?m)^go_sched_latencies_seconds_bucket`).FindAllString(page.String(), -1)); n < 5 || n > 40 {
		t.Errorf("%d buckets of the scheduler's latencies", n)
	}
}

// TestExemplars has the last traced request of a bucket in OpenMetrics, for clients that
// accept that, and all metrics with the name of the service.
func TestExemplars(t *testing.T) {
	m := open(t, metrics.Options{
		Service: `the "shop"`, Buckets: []float64{60},
		Trace: func(r *http.Request) string { return r.Header.Get("X-Trace") },
	})
	h := m.Middleware(mux())
	for _, trace := range []string{"first", "second" + strings.Repeat("2", 100), ""} {
		r := httptest.NewRequest("GET", "/any", nil)
		r.Header.Set("X-Trace", trace)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	ask := func(accept string) (kind, text string) {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		m.ServeHTTP(w, r)
		return w.Header().Get("Content-Type"), w.Body.String()
	}
	bucket := regexp.MustCompile(`(?m)^http_server_request_duration_seconds_bucket\{service_name="the \\"shop\\"",http_request_method="GET",http_response_status_code="200",http_route="/any",le="60"\} 3 # \{trace_id="second2{58}"\} [0-9.e-]+ 1[0-9]{9}\.[0-9]{3}$`)
	for accept, want := range map[string]bool{
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1": true,
		"application/openmetrics-text": true,
		"":                             false,
		"text/plain;version=0.0.4":     false,
		"text/plain, application/openmetrics-text; q=0": false,
	} {
		kind, text := ask(accept)
		if got := strings.HasPrefix(kind, "application/openmetrics-text; version=1.0.0"); got != want {
			t.Errorf("Accept %q: got %s, want OpenMetrics: %t", accept, kind, want)
		}
		if got := bucket.MatchString(text); got != want {
			t.Errorf("Accept %q: an exemplar is there: %t, want %t:\n%s", accept, got, want, text)
		}
		if got := strings.Contains(text, "go_sched_latencies_seconds_count"); got == want { // which has no sum
			t.Errorf("Accept %q: a count without a sum is there: %t, want %t", accept, got, !want)
		}
		if got := strings.HasSuffix(text, "\n# EOF\n"); got != want {
			t.Errorf("Accept %q: it ends with EOF: %t, want %t", accept, got, want)
		}
		if got := strings.Contains(text, "# TYPE http_server_response_body_bytes counter\n"); got != want {
			t.Errorf("Accept %q: the counter's family is without _total: %t, want %t", accept, got, want)
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "#") && !strings.Contains(line, `{service_name="the \"shop\""`) {
				t.Errorf("Accept %q: no name of the service in %s", accept, line)
			}
		}
	}
}

// TestSamples has the numbers of the page.
func TestSamples(t *testing.T) {
	m := open(t, metrics.Options{Service: "shop", NoRuntime: true})
	m.Middleware(mux()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/any", nil))
	found := scrape(t, m)
	for _, s := range m.Samples() {
		var labels []string
		for _, l := range s.Labels {
			labels = append(labels, fmt.Sprintf("%s=%q", l.Name, l.Value))
		}
		name := s.Name + "{" + strings.Join(labels, ",") + "}"
		if want, ok := found[name]; !ok || s.Value != want {
			t.Errorf("%s: %v, want %v of the page (there: %t)", name, s.Value, want, ok)
		}
		delete(found, name)
	}
	if len(found) > 0 {
		t.Errorf("on the page alone: %v", found)
	}
}

// TestNativeCell holds durations to the bounds of their cells.
func TestNativeCell(t *testing.T) {
	durations := []time.Duration{-1, 0, 1, 953, 954, time.Microsecond, time.Millisecond, time.Second, time.Second + 1, 1 << 62, 36 * time.Hour, 37 * time.Hour}
	for range 1000 {
		durations = append(durations, time.Duration(math.Exp(rand.Float64()*math.Log(1e14))))
	}
	for _, d := range durations {
		got := metrics.NativeCell(d)
		above, upTo := math.Exp2(-20+float64(got-1)/8), math.Exp2(-20+float64(got)/8)
		if got == 0 {
			above = math.Inf(-1)
		}
		if got == metrics.NativeCells-1 {
			upTo = math.Inf(1)
		}
		if got < 0 || got >= metrics.NativeCells || !(d.Seconds() > above && d.Seconds() <= upTo) {
			t.Errorf("%v: got cell %d, of %v to %v s", d, got, above, upTo)
		}
	}
}

func TestOptions(t *testing.T) {
	read := func() float64 { return 0 }
	for _, o := range []metrics.Options{
		{Routes: -1}, {Buckets: []float64{1, 1}}, {Buckets: []float64{-1}}, {Buckets: []float64{math.NaN()}}, {Buckets: []float64{math.Inf(1)}},
		{Values: []metrics.Value{{Name: "1a", Read: read}}}, {Values: []metrics.Value{{Name: "a"}}},
		{Values: []metrics.Value{{Name: "a", Counter: true, Read: read}}}, {Values: []metrics.Value{{Name: "a_total", Read: read}}},
		{Values: []metrics.Value{{Name: "a", Read: read}, {Name: "a", Read: read}}},
		{Values: []metrics.Value{{Name: "http_server_active_requests", Read: read}}},
		{Values: []metrics.Value{{Name: "go_sched_goroutines_goroutines", Read: read}}},
	} {
		if _, err := metrics.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// BenchmarkRequest counts a request in a chain: by one goroutine, and by all processors at a
// time. A layer outside has asked when the request came.
func BenchmarkRequest(b *testing.B) {
	m := open(b, metrics.Options{})
	h := m.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("GET", "/orders/7", nil)
	r.Pattern = "GET /orders/{id}"
	b.Run("by=one", func(b *testing.B) {
		w, _ := chain.Record(httptest.NewRecorder())
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(w, r)
		}
	})
	b.Run("by=one/native", func(b *testing.B) {
		h := open(b, metrics.Options{Native: true}).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		w, _ := chain.Record(httptest.NewRecorder())
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(w, r)
		}
	})
	b.Run("by=all", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			w, _ := chain.Record(httptest.NewRecorder())
			for pb.Next() {
				h.ServeHTTP(w, r)
			}
		})
	})
}

// BenchmarkScrape writes the page of 100 routes.
func BenchmarkScrape(b *testing.B) {
	m := open(b, metrics.Options{Route: func(r *http.Request) string { return r.URL.Path }})
	h := m.Middleware(http.NotFoundHandler())
	for i := range 100 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/"+strconv.Itoa(i), nil))
	}
	for b.Loop() {
		if _, err := m.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

// TestClientGone has a request whose client has gone count with a status that says so, unless it was
// answered, and any other one whose handler panics as an error.
func TestClientGone(t *testing.T) {
	for _, c := range []struct {
		answered, gone, returns bool
		want                    int
	}{{false, true, false, 499}, {false, true, true, 499}, {false, false, false, 500}, {true, true, false, 200}} {
		m := open(t, metrics.Options{})
		h := m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.answered {
				w.WriteHeader(http.StatusOK)
			}
			if !c.returns {
				panic(http.ErrAbortHandler)
			}
		}))
		ctx, leave := context.WithCancel(t.Context())
		if c.gone {
			leave()
		}
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		}()
		leave()
		if found := scrape(t, m); counted(found, "GET", c.want, "") != 1 {
			t.Errorf("%+v: got %v", c, found)
		}
	}
}

// TestOptionsPanic has requests counted for which the user's functions panic: none stays
// active for ever, and the panic passes on.
func TestOptionsPanic(t *testing.T) {
	broken := func(*http.Request) string { panic("broken") }
	for name, o := range map[string]metrics.Options{"route": {Route: broken}, "trace": {Trace: broken}} {
		m := open(t, o)
		h := m.Middleware(mux())
		for _, path := range []string{"/any", "/orders/7", "/panics"} {
			func() {
				defer func() {
					if p := recover(); p != "broken" {
						t.Errorf("%s, %s: the panic is %v", name, path, p)
					}
				}()
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
			}()
		}
		found := scrape(t, m)
		all := 0.0
		for series, n := range found {
			if strings.HasPrefix(series, "http_server_request_duration_seconds_count") {
				all += n
			}
		}
		if active := found["http_server_active_requests"]; active != 0 || all != 3 {
			t.Errorf("%s: %v requests are active, %v counted", name, active, all)
		}
		if name == "route" && (counted(found, "GET", 500, "") != 2 || counted(found, "GET", 200, "") != 1) {
			t.Errorf("without a route: %v", found)
		}
	}
}
