package tracing_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/servetest"
	"github.com/tarehq/tare/serve/tracing"
)

// away is an exporter whose collector does not answer until it is back, and fails then.
type away struct {
	back  chan struct{}
	asked atomic.Int64 // spans that it was to export
}

func (e *away) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	e.asked.Add(int64(len(spans)))
	<-e.back
	return errors.New("the collector is away")
}

func (e *away) Shutdown(context.Context) error { return nil }

// TestCollectorAway has the collector hang, and later fail, amid load. Requests get their
// answers meanwhile, and no more spans are kept than the batch has room for.
func TestCollectorAway(t *testing.T) {
	before := otel.GetErrorHandler()
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	var failures atomic.Int64
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { failures.Add(1) }))

	const room, requests = 64, 1000
	exporter := &away{back: make(chan struct{})}
	provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()),
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(room), sdk.WithMaxExportBatchSize(room/2)))
	mw := must(tracing.New(tracing.Options{Provider: provider, Sampler: always}))
	s := servetest.NewServer(chain.Must(chain.New(mw).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path)
	}))))
	defer s.Close()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for i := range requests / 20 {
				path := "/orders/" + strings.Repeat("7", i)
				res, err := s.Client().Get(s.URL + path)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || string(got) != path {
					t.Errorf("%s: got %q, %v", path, got, err)
				}
			}
		})
	}
	all.Wait() // would last for ever if a request waited for the collector
	close(exporter.back)
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	// The queue, the batch that hung and one that was gathered.
	if n := exporter.asked.Load(); n < room || n > 2*room {
		t.Errorf("%d spans of %d were kept, want %d to %d", n, requests, room, 2*room)
	}
	if failures.Load() == 0 {
		t.Error("nobody was told of the failure")
	}
}
