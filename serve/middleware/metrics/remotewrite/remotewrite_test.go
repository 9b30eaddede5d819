package remotewrite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/metrics/remotewrite"
)

func Example() {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path, r.Header.Get("Content-Encoding"))
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	m, err := metrics.New(metrics.Options{Service: "orders"})
	if err != nil {
		panic(err)
	}
	sender, err := remotewrite.New(remotewrite.Options{URL: receiver.URL + "/api/v1/write", Metrics: m})
	if err != nil {
		panic(err)
	}
	fmt.Println(sender.Send(context.Background()))
	// Output:
	// POST /api/v1/write snappy
	// <nil>
}

// receiver keeps what it is sent, and answers with a status.
type receiver struct {
	mu     sync.Mutex
	status int
	header http.Header
	bodies [][]byte
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if err == nil {
		rc.bodies, rc.header = append(rc.bodies, body), r.Header
	}
	w.WriteHeader(rc.status)
	io.WriteString(w, "out of order")
}

func (rc *receiver) answer(status int) (received int) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.status = status
	return len(rc.bodies)
}

func start(t *testing.T, o remotewrite.Options) (*receiver, *remotewrite.Sender) {
	t.Helper()
	rc := &receiver{status: http.StatusNoContent}
	s := httptest.NewServer(rc)
	t.Cleanup(s.Close)
	m, err := metrics.New(metrics.Options{Service: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Metrics = strings.Replace(s.URL, "://", "://ann:secret@", 1)+"/api/v1/write", m
	sender, err := remotewrite.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return rc, sender
}

// literals reads a block of snappy's that has nothing but literals of two bytes' length.
func literals(t *testing.T, block []byte) []byte {
	t.Helper()
	length, n := binary.Uvarint(block)
	var all []byte
	for b := block[n:]; len(b) > 0; {
		if len(b) < 3 || b[0] != 61<<2 {
			t.Fatalf("no literal at %d of %d bytes", len(block)-len(b), len(block))
		}
		size := int(binary.LittleEndian.Uint16(b[1:])) + 1
		if len(b) < 3+size {
			t.Fatalf("a literal of %d bytes, of which %d are there", size, len(b)-3)
		}
		all, b = append(all, b[3:3+size]...), b[3+size:]
	}
	if uint64(len(all)) != length {
		t.Fatalf("%d bytes, of which %d are announced", len(all), length)
	}
	return all
}

// TestSend sends a page with the fields and labels that the protocol asks for. Whether
// others understand it, tests of arms/rivals and serve/tracing say.
func TestSend(t *testing.T) {
	rc, sender := start(t, remotewrite.Options{
		Labels: map[string]string{"instance": "a:1", "service_name": "another"}, Header: http.Header{"Authorization": {"Bearer x"}},
	})
	if err := sender.Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0", "Authorization": "Bearer x",
	} {
		if got := rc.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	page := literals(t, rc.bodies[0])
	label := func(name, value string) []byte {
		b := append([]byte{1<<3 | 2, byte(len(name))}, name...)
		return append(append(b, 2<<3|2, byte(len(value))), value...)
	}
	for want, n := range map[string]bool{
		string(label("__name__", "http_server_active_requests")): true,
		string(label("service_name", "orders")):                  true,
		string(label("service_name", "another")):                 false, // the sample has its own
		string(label("instance", "a:1")):                         true,
	} {
		if bytes.Contains(page, []byte(want)) != n {
			t.Errorf("%q is there: %t, want %t", want, !n, n)
		}
	}
}

// TestFails has the receiver refuse: what fails is counted, told once, and over when the
// receiver is back. The last numbers are sent at the end.
func TestFails(t *testing.T) {
	var told bytes.Buffer
	rc, sender := start(t, remotewrite.Options{Every: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&told, nil))})
	rc.answer(http.StatusBadRequest)
	if err := sender.Send(t.Context()); err == nil || !strings.Contains(err.Error(), "400 Bad Request") || !strings.Contains(err.Error(), "out of order") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want the status and what the receiver says, without the password", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); sender.Run(ctx) }()
	until := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waiting for %s", what)
			}
		}
	}
	until("two failures", func() bool { return sender.Failed() >= 2 })
	before := rc.answer(http.StatusOK)
	until("two more sendings", func() bool { return rc.answer(http.StatusOK) >= before+2 })
	before = rc.answer(http.StatusOK)
	cancel()
	<-done
	if after := rc.answer(http.StatusOK); after <= before {
		t.Errorf("%d sendings before the end and %d behind it", before, after)
	}
	if strings.Contains(told.String(), "secret") {
		t.Errorf("the password is told:\n%s", &told)
	}
	if fails, works := strings.Count(told.String(), "fails"), strings.Count(told.String(), "works again"); fails != 1 || works != 1 {
		t.Errorf("told %d times that it fails and %d that it works again:\n%s", fails, works, &told)
	}
}

func TestOptions(t *testing.T) {
	m, err := metrics.New(metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const to = "http://127.0.0.1:9090/api/v1/write"
	for want, o := range map[string]remotewrite.Options{
		"Options.URL is":      {URL: "prometheus:9090", Metrics: m},
		"Options.URL: ":       {URL: "http://[", Metrics: m},
		"Options.Metrics":     {URL: to},
		"Options.Every":       {URL: to, Metrics: m, Every: -1},
		`the name "__name__"`: {URL: to, Metrics: m, Labels: map[string]string{"__name__": "x"}},
		`the name "a-b"`:      {URL: to, Metrics: m, Labels: map[string]string{"a-b": "x"}},
		`the name ""`:         {URL: to, Metrics: m, Labels: map[string]string{"": "x"}},
	} {
		if _, err := remotewrite.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %s", err, want)
		}
	}
}

// TestValuePanics has a value panic when it is read: that fails like a receiver that is away.
func TestValuePanics(t *testing.T) {
	failsOnce(t, metrics.Options{Values: []metrics.Value{{Name: "broken", Read: func() float64 { panic("broken") }}}}, nil)
}

// TestLogPanics has the handler of the log panic, on the goroutine that only sends.
func TestLogPanics(t *testing.T) {
	failsOnce(t, metrics.Options{}, slog.New(broken{slog.DiscardHandler}))
}

// failsOnce has a sender whose receiver is away send once, at its end, and come back with one failure.
func failsOnce(t *testing.T, o metrics.Options, log *slog.Logger) {
	t.Helper()
	m, err := metrics.New(o)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := remotewrite.New(remotewrite.Options{URL: "http://127.0.0.1:1/", Metrics: m, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	sender.Run(over)
	if n := sender.Failed(); n != 1 {
		t.Errorf("%d failures", n)
	}
}

// broken is a handler of logs that panics.
type broken struct{ slog.Handler }

func (broken) Enabled(context.Context, slog.Level) bool { return true }

func (broken) Handle(context.Context, slog.Record) error { panic("the log is broken") }
