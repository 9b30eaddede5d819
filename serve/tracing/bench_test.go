package tracing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/tracing"
)

// slot is a context with a place for the chain's state, as that of package serve.
type slot struct {
	context.Context
	state chain.Slot
}

func (s *slot) ChainSlot() *chain.Slot { return &s.state }

func (s *slot) Value(key any) any {
	if v := s.state.Load().Value(key); v != nil {
		return v
	}
	return s.Context.Value(key)
}

// writer is the engine's writer of the answer to a request with a slot.
type writer struct {
	http.ResponseWriter
	*slot
}

// served returns what serves a request in a chain as on package serve.
func served(s tracing.Sampler) func() {
	provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()))
	mw := must(tracing.New(tracing.Options{Provider: provider, Sampler: s}))
	h := chain.Must(chain.New(mw).Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	state := new(chain.State)
	kept := &slot{Context: context.Background()}
	kept.state.Store(state)
	r := httptest.NewRequest("GET", "/orders/7", nil).WithContext(kept)
	r.Header.Set("User-Agent", "curl/8")
	w := &writer{httptest.NewRecorder(), kept}
	return func() {
		state.Reset()
		h.ServeHTTP(w, r)
	}
}

func benchmark(b *testing.B, s tracing.Sampler) {
	serve := served(s)
	b.ReportAllocs()
	for b.Loop() {
		serve()
	}
}
