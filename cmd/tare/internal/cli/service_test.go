package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/capture"
)

// Header fields and the body that were asked for are sent with every request of the load.
func TestLoadHeader(t *testing.T) {
	var sent, lacked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 100))
		if sent.Add(1); r.Header.Get("Authorization") != "Bearer a:b" || r.Header.Get("X-Shop") != "1" || r.Method != "POST" || err != nil || string(body) != "seven" {
			lacked.Add(1)
		}
	}))
	defer s.Close()
	flags := cli.Load{URL: s.URL, Sending: cli.Sending{Connections: 1, Body: "seven", Headers: cli.Headers{Header: []string{"Authorization: Bearer a:b", "X-Shop: 1"}}}}
	if err := flags.Check(&cli.Terminal{}); err != nil {
		t.Fatal(err)
	}
	l, err := capture.StartLoad(t.Context(), *flags.Options())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // under load, whose end is no error once anything was answered
	if _, err := l.End(); err != nil {
		t.Log(err)
	}
	if sent.Load() < 2 || lacked.Load() > 0 {
		t.Errorf("of %d requests %d lacked the fields or the body, want none", sent.Load(), lacked.Load())
	}
}

// A flag of a load does nothing without one, and one service is named, not two.
func TestServiceFlags(t *testing.T) {
	for _, flag := range []string{"header", "body", "method"} {
		given := &cli.Terminal{Given: map[string]bool{flag: true}}
		if err := (cli.Load{Sending: cli.Sending{Connections: 1}}).Check(given); err == nil {
			t.Errorf("--%s without --load is taken", flag)
		}
	}
	for _, tt := range []struct {
		p       cli.Process
		arg     string
		refused bool
	}{
		{cli.Process{}, "", true}, {cli.Process{PID: 1}, "localhost:1", true}, {cli.Process{PID: 1, Cgroup: "x"}, "", true},
		{cli.Process{}, "ftp://host", true}, {cli.Process{}, "0", true},
		{cli.Process{PID: 1}, "", false}, {cli.Process{}, "1", false}, {cli.Process{Container: "3f"}, "", false}, {cli.Process{}, "localhost:1", false},
	} {
		if got, err := tt.p.Service(tt.arg, "name one"); (err != nil) != tt.refused {
			t.Errorf("%+v %q: got %+v, %v, want it refused: %t", tt.p, tt.arg, got, err, tt.refused)
		}
	}
}
