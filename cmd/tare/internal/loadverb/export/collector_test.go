package export_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb/export"
	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
)

// collectorConfig has a collector show the metrics that it is sent by HTTP, each field.
const collectorConfig = `receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [otlp], exporters: [debug]}}
`

// OpenTelemetry's own collector reads the figures, and reads what was meant. otelcol is its
// distribution core, or what its builder (go.opentelemetry.io/collector/cmd/builder) makes
// with the receiver otlp and the exporter debug.
func TestOTLPCollector(t *testing.T) {
	program, err := exec.LookPath("otelcol")
	if err != nil {
		t.Skip("SKIPPED: no OpenTelemetry Collector is installed as otelcol")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, collectorConfig, addr), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "--config", config)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		_ = cmd.Wait()
	}
	if !listens(addr) {
		stop()
		t.Fatalf("the collector does not listen: %s", &said)
	}
	e, err := export.Flags{Flag: telemetry.Flag{OTLP: "http://" + addr}}.Open(t.Context(), &cli.Terminal{Err: io.Discard})
	if err == nil {
		e.Note(state(time.Second))
		err = e.Close()
	}
	stop()
	if err != nil {
		t.Fatalf("got error %v, want the figures taken; the collector said %s", err, &said)
	}
	for _, want := range []string{
		`service\.name: Str\(tare\)`,
		`(?s)Name: tare\.load\.requests\n.*?DataType: Sum\n.*?IsMonotonic: true\n.*?AggregationTemporality: Cumulative\n.*?Value: 101\n`,
		`(?s)Name: tare\.load\.responses\n.*?class: Str\(2xx\)\n.*?Value: 90\n`,
		`(?s)Name: tare\.load\.in_flight\n.*?DataType: Gauge\n.*?Value: 3\.0`,
		`(?s)Name: tare\.load\.response\n.*?DataType: Summary\n.*?Count: 99\n.*?Quantile 0\.5`,
	} {
		if !regexp.MustCompile(want).Match(said.Bytes()) {
			t.Errorf("the collector said nothing like %s:\n%s", want, strings.TrimSpace(said.String()))
		}
	}
}

// listens waits until a server accepts connections.
func listens(addr string) bool {
	for range 600 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}
