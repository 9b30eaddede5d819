package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tarehq/tare/serve/chain"
)

// unsampled is the span of a request that is not traced. Whoever has the request's
// context may keep it, so it is never used again. It gets identifiers when somebody asks for
// them: for most requests nobody does.
type unsampled struct {
	*noop.Span // nothing, which all of them share
	context    atomic.Pointer[trace.SpanContext]
}

var nothing noop.Span

// SpanContext returns what identifies it.
func (s *unsampled) SpanContext() trace.SpanContext {
	c := s.context.Load()
	if c == nil {
		s.context.CompareAndSwap(nil, identify(trace.SpanContext{})) // another goroutine may be faster
		c = s.context.Load()
	}
	return *c
}

// identify returns what identifies a new span that is not sampled, in the trace of the parent
// if that is valid.
func identify(parent trace.SpanContext) *trace.SpanContext {
	id := parent.TraceID()
	if !parent.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64()|1) // never all zero
	}
	var own trace.SpanID
	binary.NativeEndian.PutUint64(own[:], rand.Uint64()|1)
	c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: own, TraceState: parent.TraceState(),
		TraceFlags: parent.TraceFlags() & trace.FlagsRandom}) // of the trace's identifier, which stays
	return &c
}

// block is memory for so many spans, as one allocation: the plain way, one for each, has as
// many bytes and BenchmarkUnsampled shows 1 allocation a request instead of 0.02.
type block struct {
	used  int
	spans [64]unsampled
}

var blocks = sync.Pool{New: func() any {
	b := new(block)
	for i := range b.spans {
		b.spans[i].Span = &nothing
	}
	return b
}}

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
