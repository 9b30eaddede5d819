// Package spans has tracers of different authors hand their spans to one exporter.
package spans

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Provider makes spans that a batch exporter gets, which keeps nothing.
func Provider(s sdktrace.Sampler) *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(s), sdktrace.WithBatcher(dropped{}))
}

type dropped struct{}

func (dropped) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (dropped) Shutdown(context.Context) error                             { return nil }
