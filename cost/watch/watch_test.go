package watch_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof" // what is polled
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/cost/watch"
)

// TestPolled watches this process by its own profiles.
func TestPolled(t *testing.T) {
	s := httptest.NewServer(http.DefaultServeMux)
	defer s.Close()
	var done atomic.Bool
	defer done.Store(true)
	go func() {
		for x := 1.0; !done.Load(); x = math.Sin(x) + 2 {
		}
	}()
	w, err := watch.Start(t.Context(), watch.Options{URLs: []string{s.URL}, Every: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 2 {
		i, err := w.Next(t.Context())
		if err != nil || len(i.Services) != 1 {
			t.Fatalf("got %+v, %v, want one service", i, err)
		}
		var sum float64
		for _, it := range i.Services[0].Bill.Items {
			sum += it.Self
		}
		if b := i.Services[0].Bill; b.Per != "second" || b.CPU <= 0 || math.Abs(sum-b.CPU) > 0.01*b.CPU {
			t.Errorf("got %.0f ns a %s in owners, %.0f in all", sum, b.Per, b.CPU)
		}
	}
	i, err := func() (*watch.Interval, error) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return w.Next(ctx)
	}()
	if err != nil || i == nil {
		t.Errorf("interrupted: got %v, want what was seen", err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []watch.Options{
		{}, {URLs: []string{"localhost:1"}, Every: time.Millisecond}, {URLs: []string{"localhost:1"}, Hz: 5000},
		{URLs: []string{"localhost:1"}, Budget: 2}, {URLs: []string{"ftp://localhost"}},
	} {
		if w, err := watch.Start(t.Context(), o); err == nil {
			w.Close()
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestQuantile(t *testing.T) {
	times := []reply.Bucket{{From: 1, Below: 3, Count: 98}, {From: 10, Below: 20, Count: 1}, {From: 100, Below: 200, Count: 1}}
	for q, want := range map[float64]time.Duration{0.5: 2, 0.98: 2, 0.99: 15, 1: 150} {
		if got := watch.Quantile(times, q); got != want {
			t.Errorf("p%v: got %v, want %v", 100*q, got, want)
		}
	}
	if got := watch.Quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: got %v", got)
	}
}

// All Go services of a machine are watched until one has ended. This needs root, so it is
// compiled and not run.
func Example() {
	w, err := watch.Start(context.Background(), watch.Options{AllGo: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	for {
		i, err := w.Next(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, s := range i.Services {
			for _, it := range s.Bill.Items {
				fmt.Printf("%s %s: %.0f ns a %s\n", s.Name, it.Owner, it.Self, s.Bill.Per)
			}
		}
	}
}
