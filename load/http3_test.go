package load_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// onHTTP3 is a server for HTTP/3 and what to offer it load with.
func onHTTP3(t *testing.T, h http.Handler) load.Options {
	t.Helper()
	for i, p := range protocols {
		if p.protocol == load.HTTP3 {
			o, _ := serve(t, i, h)
			return o
		}
	}
	panic("no protocol is HTTP/3")
}

// Each new connection shakes hands, and resumes the session unless that is off.
func TestHTTP3Handshakes(t *testing.T) {
	o := onHTTP3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	o.Connections, o.Requests, o.NewConnections = 1, 20, 1
	r := run(t, context.Background(), o)
	if r.Counts.Status[2] != 20 || r.Opened != 20 || r.Resumed < 15 || r.Handshake.Count() != 20 {
		t.Errorf("got %+v on %+v, %d handshakes; want 20 answers, each on a connection of its own, most of them resumed", r.Counts, r.Connections, r.Handshake.Count())
	}
	o.NoResume = true
	if r := run(t, context.Background(), o); r.Resumed != 0 || r.Full != 20 {
		t.Errorf("without resumption: got %+v, want 20 full handshakes", r.Connections)
	}
}

// Streams of one connection are in flight together, in the open loop too.
func TestHTTP3Streams(t *testing.T) {
	const streams = 8
	var flying, most atomic.Int64
	all := make(chan struct{}) // have been there at once
	together := sync.OnceFunc(func() { close(all) })
	o := onHTTP3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := flying.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == streams {
			together()
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
		time.Sleep(20 * time.Millisecond)
		flying.Add(-1)
	}))
	o.Connections, o.Streams, o.Requests = 1, streams, 80
	if r := run(t, context.Background(), o); r.Counts.Status[2] != 80 || r.Opened != 1 || most.Load() != streams {
		t.Errorf("got %+v on %d connections, at most %d at once; want 80 answers on one connection, %d at once", r.Counts, r.Opened, most.Load(), streams)
	}
	o.Schedule, o.Streams = pace.Constant(200), 0
	if r := run(t, context.Background(), o); r.Counts.Status[2] != 80 || r.Opened != 1 {
		t.Errorf("open loop: got %+v on %d connections, want 80 answers on one", r.Counts, r.Opened)
	}
}

// A stream that the server resets, within an answer or before, is counted as what it is.
func TestHTTP3Resets(t *testing.T) {
	var n atomic.Int64
	o := onHTTP3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 3:
			panic(http.ErrAbortHandler)
		case 5:
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "ok")
			w.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond) // a reset discards what was not read
			panic(http.ErrAbortHandler)
		}
	}))
	o.Connections, o.Requests = 1, 10
	if r := run(t, context.Background(), o); r.Counts.Status[2] != 8 || r.Counts.Reset != 1 || r.Counts.Short != 1 {
		t.Errorf("got %+v, want 8 answers, one reset and one cut short", r.Counts)
	}
}

func TestHTTP3NothingListens(t *testing.T) {
	r, err := load.Run(t.Context(), load.Options{Protocol: load.HTTP3, Connections: 2, Requests: 2, Timeout: 300 * time.Millisecond,
		Targets: []load.Target{{URL: "https://127.0.0.1:1"}}})
	if r == nil || r.Counts.Timeout != 2 || err == nil || !strings.Contains(err.Error(), "no request was answered") {
		t.Errorf("got %+v and error %v, want 2 timed out", r, err)
	}
}

func TestHTTP3Refused(t *testing.T) {
	for _, o := range []load.Options{
		{Targets: []load.Target{{URL: "http://127.0.0.1:1"}}},
		{Targets: []load.Target{{URL: "https://127.0.0.1:1"}}, Unix: "/x"},
	} {
		o.Protocol = load.HTTP3
		if _, err := load.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "HTTP/3 needs https") {
			t.Errorf("%s: error %v, want one that says what HTTP/3 needs", o.Targets[0].URL, err)
		}
	}
}
