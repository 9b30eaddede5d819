package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// tare runs a command line and returns what it printed.
func tare(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &cli.Terminal{Out: &out, Err: &errs, Piped: true})
	return status, out.String(), errs.String()
}

// fragile is a server that goes away after so many answers, and comes back.
type fragile struct {
	addr  string
	left  atomic.Int64
	first *http.Server
	back  chan *http.Server
}

func newFragile(t *testing.T, answers int64) *fragile {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fragile{addr: l.Addr().String(), back: make(chan *http.Server, 1)}
	f.left.Store(answers)
	f.first = &http.Server{Handler: f}
	go f.first.Serve(l)
	t.Cleanup(func() {
		f.first.Close()
		select {
		case s := <-f.back:
			s.Close()
		default:
		}
	})
	return f
}

func (f *fragile) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if f.left.Add(-1) == 0 {
		go f.rise()
	}
	io.WriteString(w, "alive")
}

// rise dies first.
func (f *fragile) rise() {
	f.first.Close()
	time.Sleep(300 * time.Millisecond)
	l, err := net.Listen("tcp", f.addr)
	if err != nil {
		return // the run then ends without the answers that are missing
	}
	s := &http.Server{Handler: f}
	f.back <- s
	s.Serve(l)
}

func TestLoadSurvivesTargetThatDiesAndReturns(t *testing.T) {
	const answers, requests = 100, 5000
	f := newFragile(t, answers)
	status, out, errs := tare(t, "load", "-q", "--json", "-c", "8", "-n", fmt.Sprint(requests), "http://"+f.addr)
	if status != 0 {
		t.Fatalf("loading a server that dies and returns: got status %d, want 0: %s", status, errs)
	}
	var res struct {
		Counts struct{ Scheduled, Answered, Refused, Reset, Short uint64 }
	}
	if err := json.Unmarshal([]byte(out), &res); err != nil {
		t.Fatal(err)
	}
	c := res.Counts
	if c.Answered <= answers+8 || c.Refused == 0 || c.Answered+c.Refused+c.Reset+c.Short != requests {
		t.Errorf("loading a server that dies after %d of %d requests and returns: got %+v, want more answers than that, some refused, and the sum", answers, requests, c)
	}
}

func TestLoadGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	got := run(ctx, []string{"load", "-d", "1h", deadURL(t)}, &cli.Terminal{Out: &out, Err: &errs, Width: 80})
	if got != cli.ExitInterrupted {
		t.Errorf("loading with an ended context: got status %d, want %d: %s", got, cli.ExitInterrupted, &errs)
	}
}
