//go:build linux && amd64

package main

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/internal/injected"
)

// TestEndedMeanwhile kills what each verb looks at, once it looks: that has a status of its own,
// and is said.
func TestEndedMeanwhile(t *testing.T) {
	t.Parallel() // it waits
	bpf, err := condition("bpf")
	if err != nil {
		t.Fatal(err)
	}
	path := injected.Build(t)
	for _, tt := range []struct {
		name, begins string
		outside      bool
		args         []string // of a URL, or after a process ID
	}{
		{"cost", "profiling", false, []string{"cost", "--for", "30s"}},
		{"cost outside", "sampling process", true, []string{"cost", "--for", "30s"}},
		{"flame", "profiling", false, []string{"flame", "--for", "30s", "-o", "flame.html"}},
		{"flame outside", "sampling process", true, []string{"flame", "--for", "30s", "-o", "flame.html"}},
		{"trace", "tracing", false, []string{"trace", "--for", "30s"}},
		{"doctor", "looking at", false, []string{"doctor", "--for", "30s"}},
		{"watch", "watching at", true, []string{"watch", "--for", "30s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.outside && !bpf {
				t.Skip("SKIPPED: no sampling from outside here")
			}
			p := injected.Start(t, path)
			what := p.URL
			if tt.outside {
				what = strconv.Itoa(p.PID)
			}
			errs := onWrite{text: tt.begins, do: func() { time.AfterFunc(time.Second, p.Stop) }}
			var out bytes.Buffer
			args := append(tt.args, what)
			if i := len(args) - 2; args[i] == "flame.html" {
				args[i] = t.TempDir() + "/flame.html"
			}
			begun := time.Now()
			status := run(t.Context(), args, &cli.Terminal{Out: &out, Err: &errs, Piped: true, Columns: 80})
			if said := out.String() + errs.String(); status != cli.ExitEnded || !strings.Contains(said, "has ended") {
				t.Errorf("tare %s: got status %d, want %d and to be told: %s", strings.Join(args, " "), status, cli.ExitEnded, said)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %s, want it to end with the service", took)
			}
		})
	}
}
