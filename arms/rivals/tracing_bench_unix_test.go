//go:build unix

package rivals_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/tracing"
)

// BenchmarkTracing compares serve/tracing with otelhttp, both with a batch exporter that keeps
// nothing, by CPU of the process: exporter and collector of garbage included. They take turns;
// each figure is a median over the turns, less what the handler takes alone. tare is in a chain
// on package serve, tare-net in none on net/http, and otelhttp is where it costs least.
func BenchmarkTracing(b *testing.B) {
	for _, kind := range []string{"sampled", "unsampled"} {
		b.Run("kind="+kind, func(b *testing.B) {
			sides := tracers(b, kind == "sampled")
			costs := make([][]float64, len(sides))
			var ofs, netOfs []float64
			b.ReportAllocs()
			for turn := 0; b.Loop(); turn++ {
				var took [4]float64
				for i := range sides {
					i = (i + turn) % len(sides)
					took[i] = sides[i].turn(b)
				}
				for i := range sides {
					costs[i] = append(costs[i], took[i]-took[0])
				}
				ofs = append(ofs, (took[1]-took[0])/(took[3]-took[0]))
				netOfs = append(netOfs, (took[2]-took[0])/(took[3]-took[0]))
			}
			for i, s := range sides[1:] {
				b.ReportMetric(median(costs[i+1]), s.name+"-ns")
			}
			b.ReportMetric(median(ofs), "tare/otelhttp")
			b.ReportMetric(median(netOfs), "tare-net/otelhttp")
			b.ReportMetric(0, "ns/op") // how long turns are says nothing
		})
	}
}

// tracers are the handler alone and the three sides, in this order.
func tracers(b *testing.B, sampled bool) []*traced {
	b.Helper()
	share, sampler := 0.0, sdktrace.NeverSample()
	if sampled {
		share, sampler = 1, sdktrace.AlwaysSample()
	}
	provider := func(s sdktrace.Sampler) *sdktrace.TracerProvider {
		p := sdktrace.NewTracerProvider(sdktrace.WithSampler(s), sdktrace.WithBatcher(dropped{}))
		b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
		return p
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	ours := func(p *sdktrace.TracerProvider) func(http.Handler) http.Handler {
		mw, err := tracing.New(tracing.Options{Provider: p, Sampler: tracing.Fixed{Share: share}})
		if err != nil {
			b.Fatal(err)
		}
		return mw
	}
	chained, net, others := provider(sdktrace.AlwaysSample()), provider(sdktrace.AlwaysSample()), provider(sampler)
	return []*traced{
		newTraced("none", answer, nil, false),
		newTraced("tare", chain.Must(chain.New(ours(chained)).Then(answer)), chained, true),
		newTraced("tare-net", ours(net)(answer), net, false),
		newTraced("otelhttp", otelhttp.NewHandler(answer, "orders", otelhttp.WithTracerProvider(others),
			otelhttp.WithMeterProvider(metricnoop.NewMeterProvider()), otelhttp.WithPropagators(propagation.TraceContext{})), others, false),
	}
}

// traced is a handler with what asks it.
type traced struct {
	name     string
	h        http.Handler
	r        *http.Request
	w        http.ResponseWriter
	renew    func()
	provider *sdktrace.TracerProvider // nil: none
}

func newTraced(name string, h http.Handler, p *sdktrace.TracerProvider, slotted bool) *traced {
	ctx, renew := context.Background(), func() {}
	kept := &discards{http.Header{}}
	var w http.ResponseWriter = kept
	if slotted {
		ctx, renew = engines.Serve.LoopContext()()
		w = &slottedDiscards{kept, ctx.(chainSlot)}
	}
	r := httptest.NewRequest("GET", "/orders/7", nil).WithContext(ctx)
	r.Pattern = "GET /orders/{id}"
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	return &traced{name, h, r, w, renew, p}
}

// turn returns the CPU that a request takes, in nanoseconds.
func (s *traced) turn(b *testing.B) float64 {
	const requests = 2000 // as many as a batch exporter's queue has room for
	begun := cpu(b)
	for range requests {
		s.renew()
		s.h.ServeHTTP(s.w, s.r)
	}
	if s.provider != nil {
		if err := s.provider.ForceFlush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return float64(cpu(b)-begun) / requests
}

// cpu is what the process has used, in nanoseconds.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// dropped is an exporter that keeps nothing.
type dropped struct{}

func (dropped) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (dropped) Shutdown(context.Context) error                             { return nil }

// discards is a response writer that keeps nothing.
type discards struct{ header http.Header }

func (d *discards) Header() http.Header         { return d.header }
func (d *discards) Write(p []byte) (int, error) { return len(p), nil }
func (d *discards) WriteHeader(int)             {}

// slottedDiscards has the engine's place for a chain's state.
type slottedDiscards struct {
	*discards
	chainSlot
}

type chainSlot interface{ ChainSlot() *chain.Slot }
