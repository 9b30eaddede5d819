package tracing

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tarehq/tare/serve/chain"
)

// unsampled is the span of a request that is not traced. Whoever has the request's
// context may keep it, so it is never used again.
type unsampled struct {
	noop.Span
	context trace.SpanContext
}

// SpanContext returns what identifies it.
func (s *unsampled) SpanContext() trace.SpanContext { return s.context }

// block is memory for so many spans, as one allocation: the plain way, one for each, has as
// many bytes and BenchmarkUnsampled shows 1 allocation a request instead of 0.03. Its time
// was a tenth more where nothing disturbed it.
type block struct {
	used  int
	spans [32]unsampled
}

var blocks = sync.Pool{New: func() any { return new(block) }}

func newUnsampled() *unsampled {
	b := blocks.Get().(*block)
	s := &b.spans[b.used]
	if b.used++; b.used < len(b.spans) {
		blocks.Put(b)
	}
	return s
}

// spanKey is the key by which OpenTelemetry's API looks for the span in a context, so
// that a chain need not copy the request.
var spanKey = chain.KeyOf[trace.Span](findKey())

// findKey returns that key, which the API does not export.
func findKey() any {
	f := &keyFinder{Context: context.Background()}
	trace.SpanFromContext(f)
	return f.key
}

// keyFinder is a context that keeps what it is asked for.
type keyFinder struct {
	context.Context
	key any
}

func (f *keyFinder) Value(key any) any {
	f.key = key
	return nil
}
