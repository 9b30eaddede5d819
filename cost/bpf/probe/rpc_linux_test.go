//go:build linux && amd64

package probe_test

import (
	"bufio"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
)

// rpc is a running program of testdata/rpc.
type rpc struct {
	pid int
	in  io.Writer
	out *bufio.Reader
}

// buildModule builds a program of testdata that is a module of its own, or skips the
// test where what it requires is not to be had.
func buildModule(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	for _, args := range [][]string{{"list", "-deps", "."}, {"build", "-o", path, "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = filepath.Join("testdata", name)
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil && args[0] == "list":
			t.Skipf("what %s requires is not to be had: %v\n%s", name, err, out)
		case err != nil:
			t.Fatalf("building: %v\n%s", err, out)
		}
	}
	return path
}

// startRPC runs the program until the test ends.
func startRPC(t *testing.T, path string, args ...string) *rpc {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &rpc{cmd.Process.Pid, in, bufio.NewReader(out)}
}

// line returns what the program prints next.
func (r *rpc) line(t *testing.T) string {
	t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// handled returns how many calls the program has handled.
func (r *rpc) handled(t *testing.T) float64 {
	t.Helper()
	if _, err := io.WriteString(r.in, "\n"); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseFloat(r.line(t), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRPC holds the requests that are counted against the calls that a gRPC server has
// handled, unary and streaming ones, whichever way it came by them: each is one.
func TestRPC(t *testing.T) {
	path := buildModule(t, "rpc")
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"a goroutine for each", nil},
		{"workers", []string{"-workers=4"}},
		{"behind net/http", []string{"-behind"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startRPC(t, path, tt.args...)
			startRPC(t, path, "-load", s.line(t))
			p := open(t, s.pid)
			w := prepare(t, p, nil)
			before := s.handled(t)
			m := run(t, w, probe.Options{For: 1500 * time.Millisecond, Window: 1500 * time.Millisecond})
			if most := s.handled(t) - before; m.Requests > most+64 {
				t.Errorf("got %.0f requests, want no more than the %.0f calls that were handled meanwhile", m.Requests, most)
			}
			eachOnce(t, m)
		})
	}
}

// TestFasthttp counts the requests of fasthttp, whichever way it reads their bodies: the
// handler is called once in each.
func TestFasthttp(t *testing.T) {
	path := buildModule(t, "fast")
	for _, args := range [][]string{nil, {"-stream"}} {
		s := start(t, path, args...)
		s.load(t, 2, "/")
		m := run(t, prepare(t, open(t, s.pid), nil), probe.Options{For: 500 * time.Millisecond})
		for _, owner := range []string{"fast.tagged", "fast.hello"} {
			if w := wallOf(t, m, owner); w.Calls < 1 || math.Abs(w.Calls-m.Requests) > 2 {
				t.Errorf("%q: got %g calls of %s in %g requests, want one in each", args, w.Calls, owner, m.Requests)
			}
		}
	}
}

// eachOnce fails the test unless each request that was counted was a call of one of the
// methods, inside its interceptors.
func eachOnce(t *testing.T, m *probe.Measurement) {
	t.Helper()
	const atEnds = 64
	if m.Requests < 20 {
		t.Fatalf("got %.0f requests, want the load to be seen", m.Requests)
	}
	all := 0.0
	for method, interceptors := range map[string][]string{
		"rpc.(*health).Check": {"rpc.tagged", "rpc.spun"},
		"rpc.(*health).Watch": {"rpc.taggedStream", "rpc.spunStream"},
	} {
		calls := wallOf(t, m, method).Calls
		all += calls
		for _, name := range interceptors {
			if w := wallOf(t, m, name); math.Abs(w.Calls-calls) > atEnds || !w.Around || w.Calls-w.Seen > atEnds {
				t.Errorf("%s: got %.0f calls, %.0f seen to end, around others %t; want %.0f of %s inside it", name, w.Calls, w.Seen, w.Around, calls, method)
			}
		}
	}
	if math.Abs(all-m.Requests) > atEnds {
		t.Errorf("got %.0f calls in %.0f requests, want each to be one", all, m.Requests)
	}
}
