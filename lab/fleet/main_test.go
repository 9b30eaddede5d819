package fleet_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/fleet/agent"
	"github.com/tarehq/tare/lab/fleet/certs"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/hist"
)

const version = "v0.0.0-test"

// The test's own program is an agent, or a hundred simulated ones, when these are set: an
// agent that is killed or stopped has to be a process.
const (
	agentCerts = "FLEET_TEST_AGENT_CERTS"
	agentAllow = "FLEET_TEST_AGENT_ALLOW"
	simulation = "FLEET_TEST_SIMULATE_CERTS"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(agentCerts) != "":
		beChild(os.Getenv(agentCerts), func(l net.Listener, security *tls.Config) error {
			a, err := agent.New(agent.Config{Allow: []string{os.Getenv(agentAllow)}}, security, version, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			return a.Serve(context.Background(), l)
		})
	case os.Getenv(simulation) != "":
		beChild(os.Getenv(simulation), func(l net.Listener, security *tls.Config) error {
			simulate(l, security, sampleTimes(1000))
			return nil
		})
	default:
		os.Exit(m.Run())
	}
}

// beChild serves until standard input ends, which it does with the test.
func beChild(dir string, serve func(net.Listener, *tls.Config) error) {
	security, err := certs.Agent(dir)
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if err := serve(l, security); err != nil {
		panic(err)
	}
}

// startChild starts the test's program as what the variables say, and returns its address.
func startChild(tb testing.TB, env ...string) (*os.Process, string) {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("the child did not say its address: %v", err)
	}
	return cmd.Process, strings.TrimSpace(line)
}

// makeCerts makes certificates for agents on 127.0.0.1.
func makeCerts(tb testing.TB) (coordinator, agents string) {
	tb.Helper()
	dir := tb.TempDir()
	made, err := certs.Make(dir, []string{"127.0.0.1"})
	if err != nil || len(made) != 1 {
		tb.Fatalf("making certificates: %q, %v", made, err)
	}
	return dir, made[0]
}

// startAgent starts an agent in this process and returns its address.
func startAgent(tb testing.TB, dir string, config agent.Config) string {
	tb.Helper()
	security, err := certs.Agent(dir)
	if err != nil {
		tb.Fatal(err)
	}
	a, err := agent.New(config, security, version, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("the agent ended: %v", err)
		}
	})
	return l.Addr().String()
}

// startServer starts what is loaded, and returns its URL and its host:port.
func startServer(tb testing.TB) (url, place string) {
	tb.Helper()
	return startCounting(tb, new(atomic.Int64))
}

// startCounting is startServer with a count of the requests.
func startCounting(tb testing.TB, asked *atomic.Int64) (url, place string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "hello")
	})}
	go func() { _ = s.Serve(l) }()
	tb.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String() + "/", l.Addr().String()
}

// connect connects to agents by the certificates in dir.
func connect(tb testing.TB, dir string, agents ...string) (*fleet.Fleet, error) {
	tb.Helper()
	security, err := certs.Coordinator(dir)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := fleet.Connect(tb.Context(), fleet.Options{Agents: agents, TLS: security, Version: version})
	if err == nil {
		tb.Cleanup(f.Close)
	}
	return f, err
}

// mustConnect is connect for agents that are there.
func mustConnect(tb testing.TB, dir string, agents ...string) *fleet.Fleet {
	tb.Helper()
	f, err := connect(tb, dir, agents...)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// sampleTimes are n response times from 0.2 to 20 ms.
func sampleTimes(n int) *hist.Hist {
	h := hist.New()
	for i := range n {
		h.Record(int64(2e5 * math.Pow(100, float64(i)/float64(n))))
	}
	return h
}

// constant is an open loop for some seconds.
func constant(url string, rate float64, d time.Duration) load.Options {
	return load.Options{Targets: []load.Target{{URL: url}}, Schedule: pace.Constant(rate), Duration: d, Timeout: 10 * time.Second}
}

func keyOf(dir string) string { return filepath.Join(dir, "coordinator.key") }
