package exectrace_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime/trace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/exectrace"
)

// Nap and Queue are middlewares that wait: for a timer, for a lock that another
// goroutine holds.
func Nap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond)
		next.ServeHTTP(w, r)
	})
}

func Queue(mu *sync.Mutex, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func waiting(w http.ResponseWriter, _ *http.Request) {
	c := make(chan bool)
	go func() { c <- true }()
	<-c
}

// TestRead traces a real server: each wait must come back by its owner and
// reason, and not shorter than it was.
func TestRead(t *testing.T) {
	var mu sync.Mutex
	s := httptest.NewServer(Nap(Queue(&mu, http.HandlerFunc(waiting))))
	defer s.Close()
	var b bytes.Buffer
	if err := trace.Start(&b); err != nil {
		t.Fatal(err)
	}
	const requests = 20
	for i := range requests {
		mu.Lock()
		done := make(chan error)
		go func() {
			res, err := s.Client().Get(s.URL)
			if err == nil {
				err = res.Body.Close()
			}
			done <- err
		}()
		time.Sleep(20 * time.Millisecond) // it naps, then queues, meanwhile
		mu.Unlock()
		if err := <-done; err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	trace.Stop()
	tr, err := exectrace.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if tr.Duration < requests*20*time.Millisecond {
		t.Errorf("a trace of %s, want at least %d times 20 ms", tr.Duration, requests)
	}
	bill := cost.NewBill(nil, nil, cost.Window{Requests: requests})
	bill.AddWaits(tr.Waits, cost.Window{Duration: tr.Duration, Requests: requests})
	got := map[string]float64{}
	for _, it := range bill.Items {
		for _, w := range it.Waits {
			got[it.Owner+" "+w.Reason] += w.Value
		}
	}
	if nap := got["exectrace.Nap sleep"]; nap < 5e6 {
		t.Errorf("Nap slept %g ns a request, want at least 5 ms; all: %v", nap, got)
	}
	if queue := got["exectrace.Queue lock"]; queue <= 0 {
		t.Errorf("Queue waited %g ns a request for a lock, want some; all: %v", queue, got)
	}
	if idle := got["net/http: connection network"]; idle != 0 {
		t.Errorf("an idle connection was charged with %g ns a request, want none", idle)
	}
	for name := range got {
		if strings.HasPrefix(name, "net/http client") {
			t.Errorf("%s: the client's wait is not within a handler", name)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, in := range []string{"", "no trace", "go 1.4 trace\x00\x00\x00\x00"} {
		if _, err := exectrace.Read(strings.NewReader(in)); err == nil {
			t.Errorf("reading %q succeeded, want an error", in)
		}
	}
}

func Example() {
	_, err := exectrace.Read(strings.NewReader("no trace"))
	fmt.Println(err != nil)
	// Output: true
}
