package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/compress"
	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/middleware/jwt"
	"github.com/tarehq/tare/serve/middleware/limit"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
	"github.com/tarehq/tare/serve/middleware/recovery"
	"github.com/tarehq/tare/serve/middleware/requestid"
	"github.com/tarehq/tare/serve/middleware/secure"
	"github.com/tarehq/tare/serve/middleware/timeout"
	"github.com/tarehq/tare/serve/tracing"
)

// service is what clients reach, with what must be closed after it.
type service struct {
	handler http.Handler
	ready   atomic.Bool // requests may be sent here
	access  *accesslog.Log
	metrics *metrics.Metrics
	traces  *sdktrace.TracerProvider
}

// answerWithin is how long a handler may take.
const answerWithin = 5 * time.Second

// newService puts the stack around the orders. The chain refuses an order of it that is
// not safe.
func newService(set settings, orders *orders, log *slog.Logger, out io.Writer) (*service, error) {
	g, err := newGuards(set)
	if err != nil {
		return nil, err
	}
	s := &service{traces: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithBatcher(spanLog{log}))}
	if s.access, err = accesslog.New(accesslog.Options{To: out, Every: 100 * time.Millisecond, User: customer, Trace: tracing.ID}); err != nil {
		return nil, err
	}
	if s.metrics, err = metrics.New(metrics.Options{Service: "orders", Trace: tracing.ID, Values: []metrics.Value{
		count("accesslog_lost_total", "Lines of the log that were lost.", s.access.Lost),
		count("limit_refused_total", "Requests that were too large or too many at a time.", g.limit.Refused),
		count("ratelimit_refused_total", "Requests of clients that asked too often.", g.rate.Refused),
		count("jwt_refused_total", "Requests without a token that is accepted.", g.auth.Refused),
	}}); err != nil {
		return nil, err
	}
	traced, err := tracing.New(tracing.Options{Provider: s.traces, Sampler: tracing.PerSecond{Most: set.traces}})
	if err != nil {
		return nil, err
	}
	s.handler, err = chain.New(
		recovery.New(recovery.Options{Log: log}),
		requestid.New(requestid.Options{}),
		clientaddr.New(clientaddr.Options{Trusted: set.proxies}),
		traced,
		s.access.Middleware,
		s.metrics.Middleware,
		secure.New(secure.Options{}),
		g.limit.Middleware,
		g.rate.Middleware,
		g.timeout,
		g.auth.Middleware,
		g.compress,
	).Then(orders.routes())
	return s, err
}

func count(name, help string, read func() uint64) metrics.Value {
	return metrics.Value{Name: name, Help: help, Counter: true, Read: func() float64 { return float64(read()) }}
}

// guards are the layers that refuse requests or change answers.
type guards struct {
	limit             *limit.Limit
	rate              *ratelimit.Limiter
	auth              *jwt.Verifier
	timeout, compress func(http.Handler) http.Handler
}

func newGuards(set settings) (g guards, err error) {
	if g.limit, err = limit.New(limit.Options{InFlight: set.inFlight}); err != nil {
		return g, err
	}
	if g.rate, err = ratelimit.New(ratelimit.Options{Law: ratelimit.GCRA{Rate: set.rate}, Announce: true}); err != nil {
		return g, err
	}
	if g.timeout, err = timeout.New(timeout.Options{After: answerWithin}); err != nil {
		return g, err
	}
	keys, err := jwt.Static(jwt.Key{Algorithm: "HS256", Value: []byte(set.secret)})
	if err != nil {
		return g, err
	}
	if g.auth, err = jwt.New(jwt.Options{Keys: keys, Audience: []string{"orders"}}); err != nil {
		return g, err
	}
	g.compress, err = compress.New(compress.Options{})
	return g, err
}

// customer returns who asks, empty if nobody has shown a token.
func customer(r *http.Request) string {
	if token := jwt.From(r.Context()); token != nil {
		return token.Subject
	}
	return ""
}

// admin returns what the operator asks for.
func (s *service) admin() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "ending", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // for tare cost, doctor and others
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// close writes what waits: lines of the log and spans. It is for when no request comes any
// more.
func (s *service) close(ctx context.Context) error {
	return errors.Join(s.access.Close(ctx), s.traces.Shutdown(ctx))
}

// spanLog exports spans to the log, one record each. Where there is a collector,
// otlptracehttp.New of OpenTelemetry takes its place.
type spanLog struct{ log *slog.Logger }

// ExportSpans logs spans.
func (l spanLog) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, span := range spans {
		l.log.InfoContext(ctx, "span", "name", span.Name(), "trace_id", span.SpanContext().TraceID().String(),
			"span_id", span.SpanContext().SpanID().String(), "duration", span.EndTime().Sub(span.StartTime()))
	}
	return nil
}

// Shutdown has nothing to end.
func (spanLog) Shutdown(context.Context) error { return nil }
