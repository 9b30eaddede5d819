package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asCommand in the environment has the tests' program be the command, as which it starts
// the collector's process.
const asCommand = "TELEMETRY_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const requests = 2000

// ask sends a service its requests, and then what waits, and returns what has come to the
// collector.
func ask(t *testing.T, o options) (*received, *service) {
	t.Helper()
	r, to, err := newReceiver()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	s, err := newService(o, to)
	if err != nil {
		t.Fatal(err)
	}
	for i := range requests {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, httptest.NewRequest("GET", "/orders/7", nil))
		if w.Code != http.StatusOK || w.Body.Len() != 1024 {
			t.Fatalf("%+v: %d and %d bytes", o, w.Code, w.Body.Len())
		}
		if i%500 == 499 { // the queues hold 2,048
			if err := s.flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r, s
}

// TestSignals has what each signal says of the requests arrive, and nothing of the others.
func TestSignals(t *testing.T) {
	plain := 0.0
	for _, c := range []struct {
		o            options
		spans, lines int64
		points       bool
	}{
		{options{signals: "none"}, 0, 0, false},
		{options{signals: "metrics"}, 0, 0, true},
		{options{signals: "traces", sampler: "always"}, requests, 0, false},
		{options{signals: "traces", sampler: "always", gzip: true}, requests, 0, false},
		{options{signals: "traces", sampler: "always", readings: true}, requests, 0, false},
		{options{signals: "traces", sampler: "tare-always"}, requests, 0, false},
		{options{signals: "logs"}, 0, requests, false},
		{options{signals: "all", sampler: "always"}, requests, requests, true},
	} {
		r, s := ask(t, c.o)
		if r.spans.Load() != c.spans || r.lines.Load() != c.lines || (r.points.Load() > 0) != c.points {
			t.Errorf("%+v: %d spans, %d lines, %d metrics; want %d, %d, some: %t", c.o, r.spans.Load(), r.lines.Load(), r.points.Load(), c.spans, c.lines, c.points)
		}
		if traced := r.traced.Load(); c.o.signals == "all" && traced != requests || c.o.signals == "logs" && traced != 0 {
			t.Errorf("%+v: %d of %d lines name a trace", c.o, traced, requests)
		}
		each := float64(s.wire.bytes.Load()) / requests
		switch {
		case c.o.signals == "none" && each != 0, c.spans+c.lines > 0 && !c.o.gzip && each < 100:
			t.Errorf("%+v: %.0f bytes a request", c.o, each)
		case c.o == options{signals: "traces", sampler: "always"}:
			plain = each
		case c.o.gzip && each > plain/2:
			t.Errorf("%+v: %.0f bytes a request, of %.0f uncompressed", c.o, each, plain)
		}
		t.Logf("%+v: %.0f bytes a request", c.o, each)
	}
	if r, s := ask(t, options{signals: "pushed"}); r.pages.Load() == 0 || s.wire.bytes.Load() == 0 {
		t.Errorf("pushed: %d pages, %d bytes", r.pages.Load(), s.wire.bytes.Load())
	}
}

// TestSamplers holds samplers to their share. What the rest of the requests was like, no
// span tells.
func TestSamplers(t *testing.T) {
	for sampler, bounds := range map[string][2]int64{
		"tenth": {requests / 20, requests / 5}, "tare-tenth": {requests / 20, requests / 5}, "tare-rate": {1, requests - 1}, "tare-adaptive": {1, requests / 2},
	} {
		r, _ := ask(t, options{signals: "traces", sampler: sampler})
		if got := r.spans.Load(); got < bounds[0] || got > bounds[1] {
			t.Errorf("%s: %d spans of %d requests, want %d to %d", sampler, got, requests, bounds[0], bounds[1])
		}
	}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]options{allSignals: {signals: "some"}, allSamplers: {signals: "traces", sampler: "half"}} {
		if _, err := newService(o, addresses{"127.0.0.1:1", "127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error that says what there is", o, err)
		}
	}
}

// P1.metrics: a request's reading has what other goroutines do.
func TestReadingCounts(t *testing.T) {
	if got := readingCounts(); got != ofProcess {
		t.Errorf("a reading counts %s, want %s", got, ofProcess)
	}
}

// TestCollector starts the process, or a real collector below it, and has it end with what
// holds its life.
func TestCollector(t *testing.T) {
	t.Setenv(asCommand, "1")
	programs := []string{""}
	if path, err := exec.LookPath("otelcol"); err == nil {
		programs = append(programs, path)
	}
	for _, program := range programs {
		c, err := startCollector(program)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newService(options{signals: "all", sampler: "always"}, c.addresses)
		if err != nil {
			t.Fatal(err)
		}
		s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/page", nil))
		if err := s.flush(t.Context()); err != nil {
			t.Errorf("%q: %v", program, err)
		}
		if sent := c.sent(s); sent == 0 {
			t.Errorf("%q: nothing is counted", program)
		}
		c.life.Close()
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			conn, err := net.Dial("tcp", c.grpc)
			if err != nil {
				break
			}
			conn.Close()
			if time.Now().After(deadline) {
				t.Fatalf("%q: the process goes on", program)
			}
		}
	}
}
