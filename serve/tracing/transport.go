package tracing

import (
	"net/http"

	"go.opentelemetry.io/otel/trace"
)

// NewTransport returns a transport that names the span of the request's context to the
// upstream, by traceparent and tracestate, and by the single field of B3 if b3 is set. A
// request without a span is sent as it is. It makes no span itself.
func NewTransport(next http.RoundTripper, b3 bool) http.RoundTripper {
	return &transport{next, b3}
}

type transport struct {
	next http.RoundTripper
	b3   bool
}

// CloseIdleConnections closes those of the transport below, as http.Client asks for.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	span := trace.SpanContextFromContext(r.Context())
	if !span.IsValid() {
		return t.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	ids := span.TraceID().String() + "-" + span.SpanID().String()
	flags, sampled := span.TraceFlags()&(trace.FlagsSampled|trace.FlagsRandom), "-0"
	if span.IsSampled() {
		sampled = "-1"
	}
	r.Header["Traceparent"] = []string{"00-" + ids + "-" + flags.String()}
	delete(r.Header, "Tracestate")
	if state := span.TraceState().String(); state != "" {
		r.Header["Tracestate"] = []string{state}
	}
	if t.b3 {
		r.Header["B3"] = []string{ids + sampled}
	}
	return t.next.RoundTrip(r)
}
