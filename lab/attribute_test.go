package lab_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// injected is a study of an arm whose middlewares count what they cost, beside
// one without them.
func injected(t *testing.T) *study.Study {
	t.Helper()
	s := small(t, "ok")
	s.Arms = []study.Arm{
		{Name: "bare", Go: "./arms/injected", Args: []string{"-spin=0", "-alloc=0"}},
		{Name: "full", Go: "./arms/injected", Args: []string{"-spin=200us", "-alloc=32768", "-block=2ms"}},
	}
	s.Control, s.Twin, s.Workloads = "bare", false, s.Workloads[:1]
	s.Attribute = study.Attribute{
		For: time.Second, Repeat: 2, Workloads: map[string][]study.Source{"closed": {study.Pprof, study.EBPF, study.Trace}},
		Truth: study.Truth{Path: "/truth", CPU: 0.05, Least: time.Microsecond, Bytes: 0.02, Waiting: 0.1},
	}
	return s
}

// TestAttribute profiles real arms, is interrupted on the way, and goes on: what
// an arm's middlewares cost comes back by their names.
func TestAttribute(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and loads arms for some seconds")
	}
	o := options(t, injected(t))
	o.Builder, o.Blocks = moduleArms(), 1
	ctx, stop := context.WithCancel(t.Context())
	begun := 0
	o.Progress = func(e lab.Event) {
		if e.Stage != lab.Profiling {
			return
		}
		if begun++; begun == 4 {
			stop()
		}
	}
	run, err := lab.Run(ctx, o)
	if !errors.Is(err, context.Canceled) || len(run.Captures) != 3 || run.Manifest.Outcome != "interrupted" {
		t.Fatalf("interrupted at the fourth capture: %v, %d captures, outcome %q", err, len(run.Captures), run.Manifest.Outcome)
	}
	trials := len(run.Trials)
	o.Resume, o.Progress = true, nil
	if run, err = lab.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if run.Manifest.Outcome != "cap" || len(run.Trials) != trials {
		t.Errorf("resumed: outcome %q with %d trials, want cap with %d", run.Manifest.Outcome, len(run.Trials), trials)
	}
	seen, whole := map[string]int{}, 0
	for _, c := range run.Captures {
		seen[fmt.Sprintf("%d %s %v", c.Round, c.Arm, c.Sources)]++
		if len(c.Invalid) > 0 {
			t.Logf("capture %d of %s is invalid: %v", c.Seq, c.Arm, c.Invalid) // as may be on a busy machine
			continue
		}
		checkCapture(t, run, &c)
		whole++
	}
	if whole == 0 {
		t.Skip("this machine is too busy: no capture counts")
	}
	for round := range 2 {
		for _, cell := range []string{"bare [pprof]", "bare [ebpf]", "bare [trace]", "full [pprof]", "full [ebpf]", "full [trace]"} {
			if n := seen[fmt.Sprintf("%d %s", round, cell)]; n != 1 {
				t.Errorf("round %d has %d captures of %s, want 1; all are %v", round, n, cell, seen)
			}
		}
	}
}

// checkCapture holds one capture's bills and files against each other and the
// arm's own count.
func checkCapture(t *testing.T, run *record.Run, c *record.Capture) {
	t.Helper()
	if c.Requests == 0 || c.Elapsed < time.Second {
		t.Errorf("capture %d: %d requests in %s, want some in 1s or more", c.Seq, c.Requests, c.Elapsed)
	}
	for _, s := range c.Seen {
		for kind, name := range s.Files {
			if raw, err := run.Profile(name); err != nil || len(raw) == 0 {
				t.Errorf("capture %d, %s: %d bytes, %v", c.Seq, kind, len(raw), err)
			}
		}
		if s.Source == study.Trace {
			if c.Arm == "full" && itemOf(s.Bill, "layers.Block").Wait < 1e6 {
				t.Errorf("capture %d: the middleware that sleeps 2 ms waits %g ns in %+v", c.Seq, itemOf(s.Bill, "layers.Block").Wait, s.Bill.Items)
			}
			continue
		}
		var sum float64
		for _, it := range s.Bill.Items {
			sum += it.Self
		}
		if want := float64(c.CPU) / float64(c.Requests); c.CPU > 0 && len(s.Bill.Items) > 0 && math.Abs(sum-want) > 0.001*want {
			t.Errorf("capture %d by %s: owners add up to %g ns a request, the kernel counted %g", c.Seq, s.Source, sum, want)
		}
		if c.Arm == "full" {
			checkFull(t, c, &s)
		}
	}
}

// checkFull holds what was charged to the middlewares against their own count,
// with bounds that a busy machine keeps: it is about whom, not how much.
func checkFull(t *testing.T, c *record.Capture, s *record.Seen) {
	t.Helper()
	spin := c.Truth["spin"]
	if enough := 50 * time.Millisecond; spin.CPU*float64(c.Requests) < float64(enough) {
		t.Logf("capture %d: %d requests in %s, too few to be told apart: this machine is too busy", c.Seq, c.Requests, c.Elapsed)
		return
	}
	if spin.Calls < 0.5 || spin.Calls > 1.5 || spin.CPU < 100_000 || spin.CPU > 1_000_000 {
		t.Errorf("capture %d: by its own count, what burns 200 µs a request has cost %+v", c.Seq, spin)
	}
	if got := itemOf(s.Bill, "layers.Spin").Self; got < spin.CPU/4 || got > 4*spin.CPU {
		t.Errorf("capture %d by %s: charged with %g ns, by its own count %g", c.Seq, s.Source, got, spin.CPU)
	}
	if s.Source != study.Pprof {
		return
	}
	if got, want := itemOf(s.Bill, "layers.Alloc").Bytes, c.Truth["alloc"].Bytes; got < want/2 || got > 2*want {
		t.Errorf("capture %d: charged with %g bytes, by its own count %g", c.Seq, got, want)
	}
	for _, it := range s.Bill.Items {
		if strings.Contains(it.Owner, "profileWriter") && it.Bytes > 0 {
			t.Errorf("capture %d: the profiler is charged with %g bytes, want it left out", c.Seq, it.Bytes)
		}
	}
	for _, name := range []string{"handlers_cpu", "memory_cpu", "scheduling_cpu", "kernel_cpu"} {
		if _, ok := c.Metrics[name]; !ok {
			t.Errorf("capture %d lacks the metric %s: %v", c.Seq, name, c.Metrics)
		}
	}
}

func itemOf(b *cost.Bill, owner string) cost.Item {
	for _, it := range b.Items {
		if it.Owner == owner {
			return it
		}
	}
	return cost.Item{}
}

// An arm without a control socket is asked once, and the reason is on record.
func TestAttributeUnable(t *testing.T) {
	s := small(t, "ok", "ok")
	s.Workloads = s.Workloads[:1]
	s.Attribute = study.Attribute{For: 200 * time.Millisecond, Repeat: 3}
	o := options(t, s)
	o.Blocks = 1
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Captures) != 2 {
		t.Fatalf("%d captures, want one of each arm: %+v", len(run.Captures), run.Captures)
	}
	for _, c := range run.Captures {
		if len(c.Invalid) != 1 || !strings.Contains(c.Invalid[0], "pprof: the arm does not answer on TARE_CONTROL") || len(c.Seen) != 0 {
			t.Errorf("capture of %s: invalid %q with %d sources, want that the arm does not answer", c.Arm, c.Invalid, len(c.Seen))
		}
	}
}

// The idle connections of a workload are there in its captures, too.
func TestAttributeIdle(t *testing.T) {
	o := begunRun(t, 8, 1)
	o.Blocks = 8
	o.Study.Arms[1].Env = []string{"LAB_TEST_ARM=closes"}
	o.Study.Workloads[0].Idle = 5
	o.Study.Attribute = study.Attribute{For: 200 * time.Millisecond, Repeat: 1, Arms: []string{"b"}}
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Captures) != 1 || !strings.Contains(strings.Join(run.Captures[0].Invalid, "; "), "closes a connection after its first answer") {
		t.Errorf("got captures %+v, want one of an arm that keeps no idle connection", run.Captures)
	}
}

// An arm that does not tell the truth makes its captures invalid, with the reason.
func TestAttributeWithoutTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and loads arms for some seconds")
	}
	s := injected(t)
	s.Arms = s.Arms[:1]
	s.Twin, s.Attribute.Repeat, s.Attribute.Truth.Path = true, 1, "/nothing"
	o := options(t, s)
	o.Builder, o.Blocks = moduleArms(), 1
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range run.Captures {
		if len(c.Invalid) == 0 || !strings.Contains(c.Invalid[0], "asking the arm for /nothing: it answered 404") {
			t.Errorf("capture %d is invalid for %q, want for the answer 404", c.Seq, c.Invalid)
		}
	}
	if len(run.Captures) == 0 {
		t.Error("no captures, want some")
	}
}

// What runs already, and knows nothing of tare, is profiled by what it exposes.
func TestAttributeExposed(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	s := small(t)
	s.Arms, s.Twin, s.Workloads = []study.Arm{{Name: "a", URL: srv.URL}, {Name: "b", URL: srv.URL}}, false, s.Workloads[:1]
	s.AA = true
	s.Attribute = study.Attribute{For: time.Second, Repeat: 1, Workloads: map[string][]study.Source{"closed": {study.Pprof}}}
	o := options(t, s)
	o.Blocks = 1
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range run.Captures {
		if len(c.Seen) != 1 || c.Seen[0].Bill.CPU <= 0 || c.Seen[0].Bill.Bytes <= 0 {
			t.Errorf("capture of %s: %q, seen %+v, want CPU time and bytes", c.Arm, c.Invalid, c.Seen)
		}
	}
	answers, err := lab.Answers(t.Context(), lab.Options{Study: s, Builder: o.Builder, FindProfiles: true})
	if err != nil || len(run.Captures) != 2 || len(answers) != 2 || !answers[0].Profiled || string(answers[0].Body) != "hello" {
		t.Errorf("%d captures, answers %+v, %v, want two of each, known to expose profiles", len(run.Captures), answers, err)
	}
	sampler, refused := bpf.Start(bpf.Options{PID: os.Getpid()}) // which serves both
	if refused == nil {
		_, err := sampler.Stop()
		refused = err
	}
	if got := answers[0].Unsampled; (got == nil) != (refused == nil) {
		t.Errorf("the kernel can sample the server: %v, want %v", got, refused)
	}
	answers, err = lab.Answers(t.Context(), lab.Options{Study: s, Builder: o.Builder})
	if err != nil || len(answers) != 2 || answers[0].Profiled || answers[0].Unsampled != nil {
		t.Errorf("answers %+v, %v, want two, not asked for profiles", answers, err)
	}
}
