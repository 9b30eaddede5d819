//go:build linux

package arm_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// TestControl holds the instrument's side of the control socket against an arm
// that was built with the other side.
func TestControl(t *testing.T) {
	p := build(t, &arm.Builder{Cache: t.TempDir()}, study.Arm{Go: "./arms/tuning", Args: []string{"--server", "tuned"}})
	a, err := arm.Start(t.Context(), *p, arm.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := a.Ready(t.Context(), func(ctx context.Context) error { _, err := get(ctx, a.URL()+"/ping"); return err }); err != nil {
		t.Fatal(err)
	}
	facts, err := a.Facts(t.Context())
	if err != nil || facts["http.Server.ReadTimeout"] != "5s" || facts["go"] != p.Go {
		t.Errorf("facts: got %v, %v, want the server's settings and %s", facts, err, p.Go)
	}
	if err := a.GC(t.Context()); err != nil {
		t.Error(err)
	}
	metrics, err := a.Metrics(t.Context())
	if err != nil || metrics["/gc/heap/allocs:bytes"] <= 0 || metrics["/gc/cycles/forced:gc-cycles"] != 2 {
		t.Errorf("metrics: got %d, %v, want what was allocated and two forced GCs", len(metrics), err)
	}
	heap, err := a.Profile(t.Context(), "heap", 0)
	if err != nil || !bytes.HasPrefix(heap, []byte("\x1f\x8b")) {
		t.Errorf("heap profile: got %d bytes, %v, want it gzipped", len(heap), err)
	}
	if _, err := a.Profile(t.Context(), "dance", 0); err == nil || !strings.Contains(err.Error(), `asking the arm for dance: unknown question`) {
		t.Errorf("unknown profile: got %v", err)
	}
	res, err := a.Loop(t.Context(), 20*time.Millisecond, []arm.LoopRequest{{Method: "GET", Target: "/ping"}, {Target: "/sleep?ms=x"}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(`{"message":"pong"}`))
	if pong := (arm.LoopAnswer{Status: 200, SHA256: hex.EncodeToString(sum[:]), Length: 18}); res.Answers[0] != pong || res.Answers[1].Status != 400 {
		t.Errorf("answers: got %+v, want %+v and a 400", res.Answers, pong)
	}
	if res.N == 0 || res.NS <= 0 || res.Bytes <= 0 || res.Allocs <= 0 {
		t.Errorf("loop: got %+v, want each positive", res)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Profile(ctx, "cpu", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("profile longer than the context: got %v, want its deadline", err)
	}
}

func TestNoControl(t *testing.T) {
	a := begin(t, "serves", arm.Program{}, arm.StartOptions{})
	if _, err := a.Facts(t.Context()); !errors.Is(err, arm.ErrNoControl) {
		t.Errorf("an arm without the socket: got %v, want ErrNoControl", err)
	}
}

// TestControlIsBounded asks arms that answer as they should not.
func TestControlIsBounded(t *testing.T) {
	a := begin(t, "serves", arm.Program{}, arm.StartOptions{})
	l, err := net.Listen("unix", asks(t, a, "/env?name=TARE_CONTROL"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for answer, want := range map[string]string{
		"":                               "EOF",
		"{}\n":                           "did not answer every request",
		"[]\n":                           "malformed",
		`{"error":"no"}` + "\n":          "asking the arm for loop: no",
		`{"bytes":5}` + "\nabc":          "unexpected EOF",
		`{"bytes":-1}` + "\n":            "announces -1 bytes",
		`{"bytes":1000000000000}` + "\n": "announces 1000000000000 bytes",
		strings.Repeat("x", 17<<20):      "longer than 16777216 bytes",
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			bufio.NewReader(c).ReadString('\n')
			io.WriteString(c, answer)
		}()
		if _, err := a.Loop(t.Context(), 1, []arm.LoopRequest{{Target: "/"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("answer %.20q: got %v, want an error that says %q", answer, err, want)
		}
		<-done
	}
}

// An arm that takes a question and never answers does not hang who asked.
func TestControlThatHangs(t *testing.T) {
	a := begin(t, "serves", arm.Program{}, arm.StartOptions{})
	l, err := net.Listen("unix", asks(t, a, "/env?name=TARE_CONTROL"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a.BePatient(50 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := a.Facts(ctx); err == nil || !strings.Contains(err.Error(), "asking the arm for facts: no answer within 50ms") {
		t.Errorf("an arm that does not answer: got %v, want that it took too long", err)
	}
}
