package tracing_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/servetest"
	"github.com/tarehq/tare/serve/tracing"
)

func Example() {
	recorder := tracetest.NewSpanRecorder() // in place of an exporter
	provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()), sdk.WithSpanProcessor(recorder))
	traced, err := tracing.New(tracing.Options{Provider: provider, Sampler: tracing.Adaptive{Target: 10, Least: 1}})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("sampled:", trace.SpanContextFromContext(r.Context()).IsSampled())
	})
	h := chain.Must(chain.New(traced).Then(mux))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/orders/7", nil))
	fmt.Println(recorder.Ended()[0].Name())
	// Output:
	// sampled: true
	// GET /orders/{id}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// traced returns a middleware and what records its spans.
func traced(o tracing.Options) (func(http.Handler) http.Handler, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	o.Provider = sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()), sdk.WithSpanProcessor(recorder))
	return must(tracing.New(o)), recorder
}

var always = tracing.Fixed{Share: 1}

// TestSpan says what a span has, in a chain, without one, and on package serve.
func TestSpan(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !trace.SpanFromContext(r.Context()).IsRecording() {
			t.Error("the handler has no span")
		}
		http.Error(w, "", http.StatusTeapot)
	})
	for name, chained := range map[string]bool{"chain": true, "alone": false} {
		mw, recorder := traced(tracing.Options{Sampler: always})
		h := mw(mux)
		if chained {
			h = chain.Must(chain.New(mw).Then(mux))
		}
		s := servetest.NewServer(h)
		r := must(http.NewRequest("GET", s.URL+"/orders/7?secret=1", nil))
		r.Header.Set("User-Agent", "curl/8 \xff"+strings.Repeat("x", 300))
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		res := must(s.Client().Do(r))
		res.Body.Close()
		s.Close()
		if len(recorder.Ended()) != 1 {
			t.Fatalf("%s: %d spans", name, len(recorder.Ended()))
		}
		span := recorder.Ended()[0]
		if span.Name() != "GET /orders/{id}" || span.SpanKind() != trace.SpanKindServer || span.Parent().IsValid() || span.Status().Code != codes.Unset {
			t.Errorf("%s: %s, %s, parent %v, %v", name, span.Name(), span.SpanKind(), span.Parent(), span.Status())
		}
		got := map[attribute.Key]string{}
		for _, a := range span.Attributes() {
			got[a.Key] = a.Value.String()
			if !utf8.ValidString(a.Value.String()) || len(a.Value.String()) > 300 || strings.Contains(a.Value.String(), "secret") {
				t.Errorf("%s: %s is %q", name, a.Key, a.Value.String())
			}
		}
		for key, want := range map[attribute.Key]string{
			"http.request.method": "GET", "http.route": "/orders/{id}", "http.response.status_code": "418", "url.path": "/orders/7",
			"url.scheme": "http", "client.address": "127.0.0.1", "network.protocol.version": "1.1", "server.address": "127.0.0.1",
			"server.port": s.URL[strings.LastIndexByte(s.URL, ':')+1:],
		} {
			if got[key] != want {
				t.Errorf("%s: %s is %q, want %q", name, key, got[key], want)
			}
		}
	}
}

// TestServer has the name and the port that a client asked be two attributes.
func TestServer(t *testing.T) {
	for host, want := range map[string]string{
		"shop.example": "shop.example", "shop.example:8443": "shop.example 8443", "[::1]:80": "::1 80", "[::1]": "::1",
		"127.0.0.1:0x": "127.0.0.1", ":": "", "a:70000": "a", "": "",
	} {
		mw, recorder := traced(tracing.Options{Sampler: always})
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		mw(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
		set := attribute.NewSet(recorder.Ended()[0].Attributes()...)
		address, _ := set.Value("server.address")
		got := address.AsString()
		if port, ok := set.Value("server.port"); ok {
			got += fmt.Sprint(" ", port.AsInt64())
		}
		if got != want {
			t.Errorf("Host %q: got %q, want %q", host, got, want)
		}
	}
}

// keeping is a provider, tracer and span of another SDK, which keeps the attributes that it is given.
type keeping struct {
	noop.TracerProvider
	spans []*keptSpan
}

type keepingTracer struct {
	noop.Tracer
	of *keeping
}

type keptSpan struct {
	noop.Span
	given [][]attribute.KeyValue
}

func (k *keeping) Tracer(string, ...trace.TracerOption) trace.Tracer { return keepingTracer{of: k} }

func (k keepingTracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := new(keptSpan)
	k.of.spans = append(k.of.spans, s)
	return ctx, s
}

func (s *keptSpan) SetAttributes(all ...attribute.KeyValue) { s.given = append(s.given, all) }

// TestSpansThatKeep has no span's attributes change once another request comes.
func TestSpansThatKeep(t *testing.T) {
	provider := new(keeping)
	h := must(tracing.New(tracing.Options{Provider: provider, Sampler: always}))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(len(r.URL.Path) + 200)
	}))
	paths := []string{"/a", "/bb", "/ccc"}
	for _, path := range paths {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	for i, path := range paths {
		set := attribute.NewSet(slices.Concat(provider.spans[i].given...)...)
		got, _ := set.Value("url.path")
		status, _ := set.Value("http.response.status_code")
		if got.AsString() != path || status.AsInt64() != int64(len(path)+200) {
			t.Errorf("span %d: path %q, status %d, want %q and %d", i, got.AsString(), status.AsInt64(), path, len(path)+200)
		}
	}
}

// TestFailures has panics, answers of 500 and made-up methods in the span.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name, method string
		h            http.HandlerFunc
		status       int64
		error        string
	}{
		{"a panic", "GET", func(http.ResponseWriter, *http.Request) { panic("broken") }, 500, "panic"},
		{"an answer of 503", "POST", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, 503, "503"},
		{"nothing written", "PUT", func(http.ResponseWriter, *http.Request) {}, 200, ""},
		{"a method of the client's", "EVIL", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, 404, ""},
		{"its client has gone", "GONE", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 499, ""},
		{"its client has gone, as the handler noticed", "GONE", func(http.ResponseWriter, *http.Request) {}, 499, ""},
		{"its client has gone amid", "GONE", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic(http.ErrAbortHandler) }, 200, ""},
	} {
		mw, recorder := traced(tracing.Options{Sampler: always})
		func() {
			defer func() { _ = recover() }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.method == "GONE" {
				cancel()
			}
			mw(c.h).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(c.method, "/", nil).WithContext(ctx))
		}()
		span := recorder.Ended()[0]
		set := attribute.NewSet(span.Attributes()...)
		status, _ := set.Value("http.response.status_code")
		kind, _ := set.Value("error.type")
		if status.AsInt64() != c.status || kind.AsString() != c.error || (span.Status().Code == codes.Error) != (c.error != "") {
			t.Errorf("%s: status %d, error %q, %v", c.name, status.AsInt64(), kind.AsString(), span.Status())
		}
		if method, _ := set.Value("http.request.method"); c.method == "EVIL" && (span.Name() != "_OTHER" || method.AsString() != "_OTHER") {
			t.Errorf("%s: %s, %s", c.name, span.Name(), method.AsString())
		}
	}
}

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	both    = traceID + "-" + spanID
)

// TestParents says which fields of whom are believed.
func TestParents(t *testing.T) {
	for _, c := range []struct {
		name    string
		fields  [][2]string
		parent  bool
		sampled bool // if there is a parent
	}{
		{"none", nil, false, false},
		{"sampled", [][2]string{{"traceparent", "00-" + both + "-01"}}, true, true},
		{"not sampled", [][2]string{{"traceparent", "00-" + both + "-00"}}, true, false},
		{"random flag", [][2]string{{"traceparent", "00-" + both + "-02"}}, true, false},
		{"a later version", [][2]string{{"traceparent", "cc-" + both + "-01-what"}}, true, true},
		{"version ff", [][2]string{{"traceparent", "ff-" + both + "-01"}}, false, false},
		{"too long", [][2]string{{"traceparent", "00-" + both + "-01-what"}}, false, false},
		{"too long, later", [][2]string{{"traceparent", "cc-" + both + "-01what"}}, false, false},
		{"upper case", [][2]string{{"traceparent", "00-" + strings.ToUpper(both) + "-01"}}, false, false},
		{"zero trace", [][2]string{{"traceparent", "00-00000000000000000000000000000000-" + spanID + "-01"}}, false, false},
		{"zero span", [][2]string{{"traceparent", "00-" + traceID + "-0000000000000000-01"}}, false, false},
		{"short", [][2]string{{"traceparent", "00-" + both}}, false, false},
		{"not hexadecimal", [][2]string{{"traceparent", "00-" + traceID[:31] + "g-" + spanID + "-01"}}, false, false},
		{"two", [][2]string{{"traceparent", "00-" + both + "-01"}, {"traceparent", "00-" + both + "-01"}}, false, false},
		{"b3", [][2]string{{"b3", both + "-1"}}, true, true},
		{"b3 with a parent", [][2]string{{"b3", both + "-0-" + spanID}}, true, false},
		{"b3 debug", [][2]string{{"b3", both + "-d"}}, true, true},
		{"b3 without a word", [][2]string{{"b3", both}}, true, false},
		{"b3 of 64 bits", [][2]string{{"b3", traceID[16:] + "-" + spanID + "-1"}}, true, true},
		{"b3 nonsense", [][2]string{{"b3", both + "-x"}}, false, false},
		{"b3 fields", [][2]string{{"x-b3-traceid", traceID}, {"x-b3-spanid", spanID}, {"x-b3-sampled", "1"}}, true, true},
		{"b3 fields, flags", [][2]string{{"x-b3-traceid", traceID}, {"x-b3-spanid", spanID}, {"x-b3-flags", "1"}}, true, true},
		{"b3 fields, half", [][2]string{{"x-b3-traceid", traceID}}, false, false},
		{"traceparent before b3", [][2]string{{"traceparent", "00-" + both + "-00"}, {"b3", both + "-1"}}, true, false},
	} {
		for _, believed := range []bool{true, false} {
			o := tracing.Options{Sampler: always, B3: true}
			if believed {
				o.Trusted = clientaddr.Private()
			}
			mw, recorder := traced(o)
			var seen trace.SpanContext
			h := chain.Must(chain.New(mw).Then(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				seen = trace.SpanContextFromContext(r.Context())
			})))
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = "10.0.0.7:4711"
			for _, f := range c.fields {
				r.Header.Add(f[0], f[1])
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
			parent := believed && c.parent
			if got := seen.TraceID().String()[16:] == traceID[16:]; got != parent || !seen.IsValid() || seen.SpanID().String() == spanID {
				t.Errorf("%s, believed %t: the span is %s %s", c.name, believed, seen.TraceID(), seen.SpanID())
			}
			if want := !parent || c.sampled; seen.IsSampled() != want || (len(recorder.Ended()) == 1) != want {
				t.Errorf("%s, believed %t: sampled %t, %d spans, want %t", c.name, believed, seen.IsSampled(), len(recorder.Ended()), want)
			}
		}
	}
}

// TestRandomFlag passes on whether a trace's identifier is random (W3C Trace Context, level 2), sampled or
// not: the identifier stays as it is.
func TestRandomFlag(t *testing.T) {
	var sent http.Header
	tr := tracing.NewTransport(roundTrip(func(r *http.Request) { sent = r.Header }), false)
	for _, flags := range []string{"00", "01", "02", "03"} {
		mw, _ := traced(tracing.Options{Trusted: clientaddr.Private()})
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.0.0.7:4711"
		r.Header.Set("Traceparent", "00-"+both+"-"+flags)
		mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = tr.RoundTrip(must(http.NewRequestWithContext(r.Context(), "GET", "http://x/", nil)))
		})).ServeHTTP(httptest.NewRecorder(), r)
		if got := sent.Get("Traceparent"); !strings.HasPrefix(got, "00-"+traceID) || !strings.HasSuffix(got, "-"+flags) {
			t.Errorf("came with the flags %s, left with %s", flags, got)
		}
	}
}

// TestDecisionAlone has trusted services, and others, say by B3 whether to trace and no more.
func TestDecisionAlone(t *testing.T) {
	never := tracing.Fixed{}
	for _, c := range []struct {
		field, word string
		own         tracing.Sampler
		want        bool
	}{
		{"b3", "0", always, false}, {"b3", "1", never, true}, {"b3", "d", never, true}, {"b3", "x", always, true}, {"b3", "", always, true},
		{"x-b3-sampled", "0", always, false}, {"x-b3-sampled", "1", never, true}, {"x-b3-flags", "1", never, true}, {"x-b3-flags", "0", always, true},
	} {
		for _, believed := range []bool{true, false} {
			o := tracing.Options{Sampler: c.own, B3: true}
			if believed {
				o.Trusted = clientaddr.Private()
			}
			mw, recorder := traced(o)
			var seen trace.SpanContext
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = "10.0.0.7:4711"
			r.Header.Set(c.field, c.word)
			mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = trace.SpanContextFromContext(r.Context()) })).ServeHTTP(httptest.NewRecorder(), r)
			want := believed && c.want || !believed && c.own == always
			if seen.IsSampled() != want || !seen.IsValid() || (len(recorder.Ended()) == 1) != want {
				t.Errorf("%s: %q, believed %t: %+v, %d spans, want a span %t", c.field, c.word, believed, seen, len(recorder.Ended()), want)
			}
		}
	}
}

// TestPropagation follows a trace through two services, and its state.
func TestPropagation(t *testing.T) {
	var seen []trace.SpanContext
	note := func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, trace.SpanContextFromContext(r.Context()))
	}
	for _, share := range []float64{0, 1} {
		seen = nil
		mw, recorder := traced(tracing.Options{Sampler: always, Trusted: clientaddr.Private()})
		inner := servetest.NewServer(mw(http.HandlerFunc(note)))
		first, _ := traced(tracing.Options{Sampler: tracing.Fixed{Share: share}})
		hc := &http.Client{Transport: tracing.NewTransport(http.DefaultTransport, true)}
		outer := chain.Must(chain.New(first).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			note(w, r)
			res := must(hc.Do(must(http.NewRequestWithContext(r.Context(), "GET", inner.URL, nil))))
			res.Body.Close()
		})))
		outer.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		inner.Close()
		hc.CloseIdleConnections()
		if len(seen) != 2 || seen[0].TraceID() != seen[1].TraceID() || seen[0].SpanID() == seen[1].SpanID() || seen[1].IsSampled() != (share == 1) {
			t.Fatalf("a share of %v: %+v", share, seen)
		}
		if share == 1 && recorder.Ended()[0].Parent().SpanID() != seen[0].SpanID() {
			t.Error("the inner span has another parent")
		}
	}
	state := must(trace.ParseTraceState("vendor=1"))
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceState: state}))
	var sent http.Header
	tr := tracing.NewTransport(roundTrip(func(r *http.Request) { sent = r.Header }), false)
	r := must(http.NewRequestWithContext(ctx, "GET", "http://x/", nil))
	_, _ = tr.RoundTrip(r)
	if sent.Get("Tracestate") != "vendor=1" || sent.Get("B3") != "" || r.Header.Get("Traceparent") != "" {
		t.Errorf("%v; the caller's request changed to %v", sent, r.Header)
	}
	_, _ = tr.RoundTrip(must(http.NewRequest("GET", "http://x/", nil)))
	if sent.Get("Traceparent") != "" {
		t.Errorf("a request without a span is sent with %v", sent)
	}
}

type roundTrip func(*http.Request)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

// TestLibrary has a library's span, of the global sampler, follow the request's decision.
func TestLibrary(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	library := sdk.NewTracerProvider(sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())), sdk.WithSpanProcessor(recorder)).Tracer("library")
	for _, share := range []float64{0, 1} {
		mw, _ := traced(tracing.Options{Sampler: tracing.Fixed{Share: share}})
		h := chain.Must(chain.New(mw).Then(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, span := library.Start(r.Context(), "query")
			span.End()
		})))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		if n := len(recorder.Ended()); n != int(share) {
			t.Errorf("a share of %v: %d spans of the library", share, n)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, s := range []tracing.Sampler{tracing.Fixed{Share: 2}, tracing.Fixed{Share: math.NaN()}, tracing.PerSecond{}, tracing.Adaptive{}, tracing.Adaptive{Target: 1, Least: -1}} {
		if _, err := tracing.New(tracing.Options{Sampler: s}); err == nil || !strings.HasPrefix(err.Error(), "tracing: ") {
			t.Errorf("%s: %v", s, err)
		}
	}
	mw, recorder := traced(tracing.Options{Sampler: always, Exempt: func(r *http.Request) bool { return r.URL.Path == "/health" }})
	mw(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/health", nil))
	if len(recorder.Ended()) != 0 {
		t.Error("an exempt request has a span")
	}
}

// TestOrder refuses what the span would not see, with the reason.
func TestOrder(t *testing.T) {
	other := func(name string) chain.Layer {
		return chain.Layer{Name: name, Wrap: func(h http.Handler) http.Handler { return h }}
	}
	mw, _ := traced(tracing.Options{})
	own := chain.Layer{Wrap: mw}
	for _, name := range []string{"auth", "limit", "cache", "timeout"} {
		if _, err := new(chain.Chain).With(other(name), own).Then(http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "would") {
			t.Errorf("inside of %s: %v", name, err)
		}
		if _, err := new(chain.Chain).With(own, other(name)).Then(http.NotFoundHandler()); err != nil {
			t.Error(err)
		}
	}
	if _, err := new(chain.Chain).With(own, other("clientaddr")).Then(http.NotFoundHandler()); err == nil {
		t.Error("outside of clientaddr")
	}
}

// TestConcurrent has a thousand clients, some of which go away: each sees its own span,
// and none is lost.
func TestConcurrent(t *testing.T) {
	mw, recorder := traced(tracing.Options{Sampler: tracing.Fixed{Share: 0.5}})
	var ids sync.Map
	sampled := 0
	var mu sync.Mutex
	s := servetest.NewServer(chain.Must(chain.New(mw).Then(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		span := trace.SpanContextFromContext(r.Context())
		if _, twice := ids.LoadOrStore(span.TraceID(), true); twice || !span.IsValid() {
			t.Errorf("two requests have the trace %s", span.TraceID())
		}
		mu.Lock()
		defer mu.Unlock()
		if span.IsSampled() {
			sampled++
		}
	}))))
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%10 == 0 {
				go cancel()
			}
			if res, err := s.Client().Do(must(http.NewRequestWithContext(ctx, "GET", s.URL, nil))); err == nil {
				res.Body.Close()
			}
		})
	}
	all.Wait()
	s.Close()
	if n := len(recorder.Ended()); n != sampled || n < 300 || n > 600 {
		t.Errorf("%d spans of %d sampled requests", n, sampled)
	}
}

// BenchmarkUnsampled is what a request that is not traced costs, in a chain.
func BenchmarkUnsampled(b *testing.B) {
	for _, s := range []tracing.Sampler{tracing.Fixed{}, tracing.PerSecond{1}, tracing.Adaptive{Target: 1}} {
		b.Run(fmt.Sprintf("%T", s), func(b *testing.B) { benchmark(b, s) })
	}
}

// BenchmarkSampled has no exporter.
func BenchmarkSampled(b *testing.B) { benchmark(b, always) }
