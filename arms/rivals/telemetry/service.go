package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/tarehq/tare/arms/rivals/json/payload"
	"github.com/tarehq/tare/arms/weights/plan"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/metrics/remotewrite"
	"github.com/tarehq/tare/serve/tracing"
)

// options say what is told to the collector.
type options struct {
	signals, sampler string
	gzip, readings   bool
}

// The values of options.
const (
	allSignals  = "none, metrics, traces, logs, all, or pushed for serve/middleware/metrics by remote write"
	allSamplers = "always or tenth by otelhttp; tare-always, tare-tenth, tare-rate or tare-adaptive by serve/tracing"
)

// share is what is traced where not everything is, and perSecond is as much at the rate of
// the study's light workload.
const (
	share     = 0.1
	perSecond = 200
)

// period is the time from one sending of metrics to the next. Usual is a minute, of which
// a trial of seconds would see nothing.
const period = time.Second

// service answers requests and sends telemetry.
type service struct {
	handler http.Handler
	wire    *wire
	flushes []func(context.Context) error
}

// flush sends what waits.
func (s *service) flush(ctx context.Context) error {
	var errs []error
	for _, f := range s.flushes {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}

func newService(o options, to addresses) (*service, error) {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.Use(patterned)
	s := &service{handler: g, wire: &wire{}}
	var err error
	switch o.signals {
	case "none":
	case "pushed":
		err = s.push(to)
	case "metrics", "traces", "logs", "all":
		err = s.send(g, o, to)
	default:
		return nil, fmt.Errorf("signals %q: want %s", o.signals, allSignals)
	}
	if err != nil {
		return nil, err
	}
	if o.readings {
		g.Use(readBeside("handler"))
	}
	answer, page := plan.NewAnswer(), payload.New(229)
	g.GET("/orders/:id", func(c *gin.Context) { answer.Write(c.Writer) })
	g.GET("/page", func(c *gin.Context) {
		b, err := json.Marshal(page)
		if err != nil {
			c.String(http.StatusInternalServerError, "%v", err)
			return
		}
		c.Data(http.StatusOK, "application/json; charset=utf-8", b)
	})
	return s, nil
}

// send sets up OpenTelemetry's signals.
func (s *service) send(g *gin.Engine, o options, to addresses) error {
	e, err := s.wire.dialCollector(to.grpc, o.gzip)
	if err != nil {
		return err
	}
	var meters metric.MeterProvider = nometric.NewMeterProvider()
	if o.signals == "metrics" || o.signals == "all" {
		p, err := e.meters()
		if err != nil {
			return err
		}
		meters, s.flushes = p, append(s.flushes, p.ForceFlush)
	}
	if o.signals == "traces" || o.signals == "all" {
		if err := s.trace(o.sampler, e, meters); err != nil {
			return err
		}
	} else if o.signals == "metrics" {
		s.instrument(notrace.NewTracerProvider(), meters)
	}
	if o.signals == "logs" || o.signals == "all" {
		l, flush, err := e.logger()
		if err != nil {
			return err
		}
		s.flushes = append(s.flushes, flush)
		g.Use(logging(l))
	}
	return nil
}

// instrument puts otelhttp around the service.
func (s *service) instrument(traces trace.TracerProvider, meters metric.MeterProvider) {
	s.handler = otelhttp.NewHandler(s.handler, "shop", otelhttp.WithTracerProvider(traces), otelhttp.WithMeterProvider(meters), otelhttp.WithPropagators(propagation.TraceContext{}))
}

// trace has requests traced that the sampler chooses.
func (s *service) trace(sampler string, e *exporters, meters metric.MeterProvider) error {
	otel := map[string]sdktrace.Sampler{
		"always": sdktrace.ParentBased(sdktrace.AlwaysSample()),
		"tenth":  sdktrace.ParentBased(sdktrace.TraceIDRatioBased(share)),
	}
	tare := map[string]tracing.Sampler{
		"tare-always": tracing.Fixed{Share: 1}, "tare-tenth": tracing.Fixed{Share: share},
		"tare-rate": tracing.PerSecond{Most: perSecond}, "tare-adaptive": tracing.Adaptive{Target: perSecond, Least: share / 10},
	}
	chosen, ours := otel[sampler], tare[sampler]
	if ours != nil {
		chosen = sdktrace.AlwaysSample() // of all that serve/tracing gives it
	}
	if chosen == nil {
		return fmt.Errorf("sampler %q: want %s", sampler, allSamplers)
	}
	p, err := e.tracers(chosen)
	if err != nil {
		return err
	}
	s.flushes = append(s.flushes, p.ForceFlush)
	if ours == nil {
		s.instrument(p, meters)
		return nil
	}
	mw, err := tracing.New(tracing.Options{Provider: p, Sampler: ours})
	if err != nil {
		return err
	}
	s.handler = mw(s.handler)
	return nil
}

// push sets up serve/middleware/metrics, whose page goes out by remote write.
func (s *service) push(to addresses) error {
	m, err := metrics.New(metrics.Options{Service: "shop"})
	if err != nil {
		return err
	}
	sender, err := remotewrite.New(remotewrite.Options{
		URL: "http://" + to.http + "/api/v1/write", Metrics: m, Every: period,
		Client: &http.Client{Transport: &http.Transport{DialContext: s.wire.dial}, Timeout: period},
	})
	if err != nil {
		return err
	}
	s.handler, s.flushes = m.Middleware(s.handler), append(s.flushes, sender.Send)
	go sender.Run(context.Background())
	return nil
}

// patterned tells middlewares of net/http which route gin matched.
func patterned(c *gin.Context) { c.Request.Pattern = c.FullPath() }

// logging logs a line a request, as services do.
func logging(l *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		begun := time.Now()
		c.Next()
		l.LogAttrs(c.Request.Context(), slog.LevelInfo, "request", slog.String("method", c.Request.Method), slog.String("route", c.FullPath()),
			slog.Int("status", c.Writer.Status()), slog.Int("bytes", c.Writer.Size()), slog.Duration("duration", time.Since(begun)), slog.String("client", c.ClientIP()))
	}
}
