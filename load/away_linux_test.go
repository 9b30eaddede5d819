package load_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
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

// What is due goes out on no connection that is known to have ended, however many end
// at once and however late the generator gets to it.
func TestEndedBeforeDue(t *testing.T) {
	const n = 50
	var there atomic.Int64
	all := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if there.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	some := pace.Phase{From: 10 * n, To: 10 * n, For: time.Second / 10}
	const pause = time.Hour
	got, err := load.AwayIdle(ctx, load.Options{Engine: load.Epoll, Targets: []load.Target{{URL: s.URL}}, Threads: 1,
		Schedule: &pace.Schedule{Phases: []pace.Phase{some, {For: pause}, some}}}, n,
		func() { s.Config.SetKeepAlivesEnabled(false) }, pause+some.For)
	if err != nil || got.Status[2] != 2*n {
		t.Errorf("got %+v, %v; want %d answered", got, err, 2*n)
	}
}

// What was due and could not begin is told, however late the generator is.
func TestDueIsCounted(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	for name, tt := range map[string]struct {
		requests int64
		flight   int
		want     uint64
	}{"by the schedule": {0, 0, 1000}, "by a number": {400, 0, 400}, "beyond a bound": {0, 10, 1000}} {
		got, err := load.Late(t.Context(), load.Options{Engine: load.Epoll, Targets: []load.Target{{URL: s.URL}}, Threads: 1,
			Schedule: pace.Constant(1000), Duration: time.Second, Requests: tt.requests, MaxInFlight: tt.flight})
		if err != nil || got.Scheduled != tt.want || got.Answered()+got.Failed()+got.Dropped != tt.want || got.Dropped < tt.want/2 {
			t.Errorf("%s: got %+v, %v; want %d scheduled and most dropped", name, got, err, tt.want)
		}
	}
}
