// Package tracing makes OpenTelemetry spans of requests.
//
// It decides itself which requests are traced, before OpenTelemetry has anything to do:
// a [Fixed] share, so many a second at most ([PerSecond]), or a share that follows the
// load ([Adaptive]). So what is not traced costs next to nothing. The provider must sample
// all that it is given:
//
//	sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), …)
//
// A trace that another service began goes on here if that service is in Options.Trusted:
// traceparent and tracestate (W3C Trace Context), and B3 if Options.B3 is set. Its decision
// to sample holds. Of all others the fields are ignored, so that strangers can neither
// have all their requests traced nor put them into others' traces.
//
// Handlers and libraries find the span by trace.SpanFromContext, also that of a request
// that is not traced: it has identifiers and is not sampled, so that spans of its calls
// are not either if their sampler is sdktrace.ParentBased. [NewTransport] passes it on.
// [ID] ties the log line and the exemplar of a request to its span.
//
// A span is named by method and route, and has the attributes of OpenTelemetry's
// conventions for HTTP servers, set once it has begun: the provider's sampler, which has nothing to
// decide, does not see them, nor does OnStart of its processors. The route is the pattern that the router matched. The query
// is not recorded. What a client sent is cut at 256 bytes and made valid UTF-8, without
// which exporters lose whole batches. A panic, and an answer of 500 or more, are errors. A handler
// that panics since its client has gone, as proxies do, is none. The status of a client that left
// before the answer is 499.
//
// While the collector is away, OpenTelemetry's batch keeps what its queue has room for and drops
// later spans. Requests do not wait for it.
//
// Limits: no baggage, and no spans of outgoing calls. Spans are exported when their requests have
// ended, so it does not go with Server.Reuse of package serve.
//
// Place: behind recovery and clientaddr, outside of all that refuses requests.
//
// Cost: of a request that is not traced, in a chain, one allocation in 64 requests, of
// 1.2 kB, and one more where somebody asks for its identifiers or a trusted service named its
// trace. Elsewhere a copy of the request besides.
package tracing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/outcome"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
)

// Options of the middleware. The zero value traces ten requests a second at most, by the
// global provider.
type Options struct {
	// Provider makes the spans; it must sample all of them. Nil: OpenTelemetry's global one.
	Provider trace.TracerProvider
	// Sampler decides which requests without a trusted parent are traced. Nil:
	// PerSecond{10}.
	Sampler Sampler
	// Trusted are the services, by the addresses of their connections, whose traces go on
	// here. Nil: none. See clientaddr.Private.
	Trusted []netip.Prefix
	// B3 has the fields of B3 read where there is no traceparent: the single one and the
	// several. If they name no trace, they may still say whether one is to begin.
	B3 bool
	// Exempt says which requests get no span and no decision, such as those of health
	// checks. Nil: none.
	Exempt func(*http.Request) bool
}

const scope = "github.com/tarehq/tare/serve/tracing"

// New returns the middleware, or an error that says which option is wrong. In a chain its
// layer is called tracing.
func New(o Options) (func(http.Handler) http.Handler, error) {
	if o.Provider == nil {
		o.Provider = otel.GetTracerProvider()
	}
	if o.Sampler == nil {
		o.Sampler = PerSecond{10}
	}
	decider, err := o.Sampler.prepare()
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	tracer, begun := o.Provider.Tracer(scope), time.Now()
	return func(next http.Handler) http.Handler {
		return &handler{o: o, decider: decider, tracer: tracer, begun: begun, next: next}
	}, nil
}

// ID returns the identifier of the request's trace, 32 hexadecimal digits, as the options
// Trace of packages accesslog and metrics ask for it. It is empty if the request is not
// traced, as there is no span to find.
func ID(r *http.Request) string {
	span := trace.SpanFromContext(r.Context())
	if _, ok := span.(*unsampled); ok {
		return "" // without making identifiers that nobody asks for
	}
	if c := span.SpanContext(); c.IsSampled() {
		return c.TraceID().String()
	}
	return ""
}

type handler struct {
	o       Options
	decider decider
	tracer  trace.Tracer
	begun   time.Time
	next    http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "tracing", Rules: []chain.Rule{
		chain.Once("a request would have two spans"),
		chain.After("clientaddr", "it would note the proxies' addresses"),
		chain.Before("auth", "requests that it refuses would have no span"),
		chain.Before("limit", "requests that it refuses would have no span"),
		chain.Before("cache", "requests that it answers would have no span"),
		chain.Before("timeout", "the answer of a request that timed out would not be seen"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.o.Exempt != nil && h.o.Exempt(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	parent, ok := h.parent(r)
	switch {
	case ok && parent.IsSampled(), !ok && h.decide(w):
		h.trace(w, r, parent)
	default:
		h.pass(w, r, parent)
	}
}

// decide reports whether a request is traced that came in no trace.
func (h *handler) decide(w http.ResponseWriter) bool {
	var now time.Duration
	if h.decider.timed {
		now = chain.Begun(w).Sub(h.begun)
	}
	return h.decider.decide(rand.Uint64(), now)
}

// pass serves a request that is not traced.
func (h *handler) pass(w http.ResponseWriter, r *http.Request, parent trace.SpanContext) {
	span := newUnsampled()
	if parent.IsValid() {
		span.context.Store(identify(parent))
	}
	passed := spanKey.With(r, trace.Span(span))
	h.next.ServeHTTP(w, passed)
	if passed != r {
		r.Pattern = passed.Pattern // layers outside count and log by it
	}
}

// trace serves a request within a span.
func (h *handler) trace(w http.ResponseWriter, r *http.Request, parent trace.SpanContext) {
	ctx := r.Context()
	if parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	// Note: the plain way gives Start the attributes, for samplers to look at, in memory of their own.
	// A sampled request then takes 1.2 times as long (BenchmarkTracing in arms/rivals).
	_, span := h.tracer.Start(ctx, methodOf(r), ofServer)
	mem := memoryFor(span)
	known := asked(mem.attributes[:0], r)
	span.SetAttributes(known...)
	passed := spanKey.With(r, span)
	w, rec := chain.Record(w)
	panicked := true
	defer func() {
		if passed != r {
			r.Pattern = passed.Pattern
		}
		answer{span, passed, rec, panicked}.note(known[len(known):])
		mem.giveBack()
		span.End()
	}()
	h.next.ServeHTTP(w, passed)
	panicked = false
}

// ofServer is an option of every span, made once.
var ofServer = trace.WithSpanKind(trace.SpanKindServer)

// memory is room for the attributes that are known before the answer, and for those of it.
type memory struct {
	attributes [9 + 3]attribute.KeyValue
	given      bool // to a span that may keep it
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// memoryFor returns memory for a span's attributes. Spans of OpenTelemetry's SDK copy them.
func memoryFor(span trace.Span) *memory {
	if _, ofSDK := span.(interface{ DroppedAttributes() int }); !ofSDK {
		return &memory{given: true}
	}
	return memories.Get().(*memory)
}

// giveBack lets another request use the memory, which keeps nothing of this one.
func (m *memory) giveBack() {
	if !m.given {
		clear(m.attributes[:])
		memories.Put(m)
	}
}

// asked adds to all the attributes that are known before the answer.
func asked(all []attribute.KeyValue, r *http.Request) []attribute.KeyValue {
	method := methodOf(r)
	all = append(all, attribute.String("http.request.method", method))
	if method == otherMethod {
		all = append(all, attribute.String("http.request.method_original", clean(r.Method)))
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	all = append(all, attribute.String("url.scheme", scheme), attribute.String("url.path", clean(r.URL.Path)),
		attribute.String("network.protocol.version", version(r)))
	all = appendServer(all, clean(r.Host))
	if addr := clientaddr.From(r); addr.IsValid() {
		all = append(all, attribute.String("client.address", addr.String()))
	}
	if agent := r.Header["User-Agent"]; len(agent) > 0 {
		all = append(all, attribute.String("user_agent.original", clean(agent[0])))
	}
	return all
}

// appendServer adds the name and the port that the client asked. A Host without a port has no port
// there either: it is the scheme's.
func appendServer(all []attribute.KeyValue, host string) []attribute.KeyValue {
	name, port := host, ""
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
		name, port = host[:at], host[at+1:]
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	all = append(all, attribute.String("server.address", name))
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		all = append(all, attribute.Int("server.port", int(n)))
	}
	return all
}

// answer is how a request within a span ended.
type answer struct {
	span     trace.Span
	r        *http.Request
	rec      *chain.Recorder
	panicked bool
}

// note notes the route and the answer; all has room for their attributes.
func (a answer) note(all []attribute.KeyValue) {
	gone := a.panicked && a.r.Context().Err() == context.Canceled
	status := outcome.Status(a.r, a.rec, a.panicked)
	if pattern := a.r.Pattern; pattern != "" {
		method, route, ok := strings.Cut(pattern, " ")
		if !ok {
			route = pattern
		}
		if own := methodOf(a.r); !ok || method != own {
			pattern = own + " " + route
		}
		a.span.SetName(pattern)
		all = append(all, attribute.String("http.route", route))
	}
	all = append(all, attribute.Int("http.response.status_code", status))
	switch {
	case gone:
	case a.panicked:
		all = append(all, attribute.String("error.type", "panic"))
		a.span.SetStatus(codes.Error, "the handler panicked")
	case status >= 500:
		all = append(all, attribute.String("error.type", fmt.Sprint(status)))
		a.span.SetStatus(codes.Error, "")
	}
	a.span.SetAttributes(all...)
}

const otherMethod = "_OTHER"

// methodOf returns the method, if RFC 9110 or RFC 5789 defines it.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	}
	return otherMethod
}

func version(r *http.Request) string {
	switch {
	case r.ProtoMajor == 1 && r.ProtoMinor == 1:
		return "1.1"
	case r.ProtoMajor == 1:
		return "1.0"
	}
	return fmt.Sprint(r.ProtoMajor)
}

// longest is how much of what a client sent is kept, in bytes.
const longest = 256

// clean returns the begin of s as valid UTF-8.
func clean(s string) string {
	if len(s) > longest {
		s = s[:longest]
	}
	if utf8.ValidString(s) { // as most are, which takes less time to find
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
