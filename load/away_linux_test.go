package load_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
)

// An answer that has come in time is read, however late the generator gets to it:
// it may have been stopped.
func TestReadBeforeTimeOut(t *testing.T) {
	for name, run := range map[string]bool{"the requests' time": false, "the run's": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			answer := make(chan struct{})
			s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				select {
				case <-answer:
				case <-r.Context().Done():
				}
			}))
			defer s.Close()
			const n = 100
			got, err := load.AwayPast(ctx, load.Options{Engine: load.Epoll, Targets: []load.Target{{URL: s.URL}},
				Connections: n, Requests: n, Threads: 1}, func() { close(answer) }, run)
			if err != nil || got.Answered() != n || got.Timeout != 0 {
				t.Errorf("%d answered, %d timed out, %v; want all %d answered", got.Answered(), got.Timeout, err, n)
			}
		})
	}
}
