package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	logsv1 "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricsv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// collector is what telemetry is sent to.
type collector struct {
	addresses
	life *os.File // the process ends when this is closed, as at this one's end
}

// addresses are where it takes OTLP, and remote write.
type addresses struct{ grpc, http string }

// sent returns how many bytes the service's connections to it had.
func (c *collector) sent(s *service) int64 { return s.wire.bytes.Load() }

// patience is how long its start may take.
const patience = 20 * time.Second

// startCollector starts the collector's process, by one that ends at once, so that it is
// no child of this one.
func startCollector(program string) (*collector, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting the collector: %w", err)
	}
	end, life, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the collector: %w", err)
	}
	defer end.Close()
	told, tell, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the collector: %w", err)
	}
	defer told.Close()
	keepListener()
	cmd := exec.Command(self, "-receive", "detach", "-collector", program)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = end, tell, os.Stderr
	err = cmd.Run()
	tell.Close()
	if err != nil {
		return nil, fmt.Errorf("starting the collector: %w", err)
	}
	_ = told.SetReadDeadline(time.Now().Add(patience)) // not everywhere: then it waits for the end
	c := &collector{life: life}
	if _, err := fmt.Fscan(told, &c.grpc, &c.http); err != nil {
		return nil, fmt.Errorf("waiting for the collector to start: %w", err)
	}
	return c, nil
}

// detach starts the collector's process and leaves it alone.
func detach(program string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "-receive", "run", "-collector", program)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = ownSession()
	return cmd.Start()
}

// collect takes telemetry until life ends. It tells its addresses by a line.
func collect(program string, life io.Reader, tell io.Writer) error {
	c, to, err := newReceiver()
	if err != nil {
		return err
	}
	defer c.Stop()
	if program != "" {
		stop, err := startProgram(program, &to)
		if err != nil {
			return err
		}
		defer stop()
	}
	fmt.Fprintln(tell, to.grpc, to.http)
	_, err = io.Copy(io.Discard, life)
	return err
}

// received counts what came.
type received struct {
	*grpc.Server
	spans, lines, points, pages atomic.Int64
	traced                      atomic.Int64 // lines that name a trace
}

// newReceiver starts servers for OTLP over gRPC and for remote write.
func newReceiver() (*received, addresses, error) {
	otlp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, addresses{}, err
	}
	writes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, addresses{}, err
	}
	r := &received{Server: grpc.NewServer()}
	tracev1.RegisterTraceServiceServer(r.Server, &traces{r: r})
	metricsv1.RegisterMetricsServiceServer(r.Server, &meters{r: r})
	logsv1.RegisterLogsServiceServer(r.Server, &logs{r: r})
	go func() { _ = r.Serve(otlp) }()
	go func() {
		_ = http.Serve(writes, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if _, err := io.Copy(io.Discard, q.Body); err == nil {
				r.pages.Add(1)
			}
			w.WriteHeader(http.StatusNoContent)
		}))
	}()
	return r, addresses{otlp.Addr().String(), writes.Addr().String()}, nil
}

type traces struct {
	tracev1.UnimplementedTraceServiceServer
	r *received
}

func (t *traces) Export(_ context.Context, q *tracev1.ExportTraceServiceRequest) (*tracev1.ExportTraceServiceResponse, error) {
	for _, resource := range q.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			t.r.spans.Add(int64(len(scope.GetSpans())))
		}
	}
	return &tracev1.ExportTraceServiceResponse{}, nil
}

type meters struct {
	metricsv1.UnimplementedMetricsServiceServer
	r *received
}

func (m *meters) Export(_ context.Context, q *metricsv1.ExportMetricsServiceRequest) (*metricsv1.ExportMetricsServiceResponse, error) {
	for _, resource := range q.GetResourceMetrics() {
		for _, scope := range resource.GetScopeMetrics() {
			m.r.points.Add(int64(len(scope.GetMetrics())))
		}
	}
	return &metricsv1.ExportMetricsServiceResponse{}, nil
}

type logs struct {
	logsv1.UnimplementedLogsServiceServer
	r *received
}

func (l *logs) Export(_ context.Context, q *logsv1.ExportLogsServiceRequest) (*logsv1.ExportLogsServiceResponse, error) {
	for _, resource := range q.GetResourceLogs() {
		for _, scope := range resource.GetScopeLogs() {
			for _, line := range scope.GetLogRecords() {
				l.r.lines.Add(1)
				if len(line.GetTraceId()) > 0 {
					l.r.traced.Add(1)
				}
			}
		}
	}
	return &logsv1.ExportLogsServiceResponse{}, nil
}

// configuration of a real collector: it takes OTLP and drops what it gets.
const configuration = `receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {debug: {verbosity: basic}}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
    metrics: {receivers: [otlp], exporters: [debug]}
    logs: {receivers: [otlp], exporters: [debug]}
`

// startProgram starts a real collector and has OTLP go to it.
func startProgram(program string, to *addresses) (stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	to.grpc = l.Addr().String()
	l.Close()
	dir, err := os.MkdirTemp("", "collector")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, to.grpc), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "--config", config)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", to.grpc); err == nil {
			conn.Close()
			return stop, nil
		}
	}
	stop()
	return nil, errors.New(program + " does not listen")
}
