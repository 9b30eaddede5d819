package compat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/rivals/compat"
)

// A pair of probe and server runs in a process of its own: this test binary
// started again with pairEnv set.
const pairEnv = "TARE_COMPAT_PAIR"

// pair says what a process is to run, and where to write the outcome.
type pair struct {
	Probe, Server string
	Times         int
	File          string
}

// most is how long a process may take for one trial.
const most = 30 * time.Second

// TestPair is that process.
func TestPair(t *testing.T) {
	text := os.Getenv(pairEnv)
	if text == "" {
		t.Skip("this is the process that other tests start")
	}
	var p pair
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	servers := append(compat.Servers(), spoilt()...)
	s := slices.IndexFunc(servers, func(s compat.Server) bool { return s.Name == p.Server })
	probes := compat.Probes()
	i := slices.IndexFunc(probes, func(q compat.Probe) bool { return q.Name == p.Probe })
	if s < 0 || i < 0 {
		t.Fatalf("no probe %q or no server %q", p.Probe, p.Server)
	}
	outcome, err := json.Marshal(probes[i].Run(servers[s], p.Times))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.File, outcome, 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a pair in its process. A process that ends or hangs has broken.
func (p pair) run(ctx context.Context) (o compat.Outcome, err error) {
	dir, err := os.MkdirTemp("", "pair")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	p.File = filepath.Join(dir, "outcome")
	text, err := json.Marshal(p)
	if err != nil {
		return o, err
	}
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(p.Times)*most)
	defer cancel()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestPair$")
	cmd.Env = append(os.Environ(), pairEnv+"="+string(text), "GORACE=exitcode=0")
	cmd.Stdout, cmd.Stderr = &output, &output
	ended := cmd.Run()
	if bytes.Contains(output.Bytes(), []byte("DATA RACE")) && (p.Server == "nethttp" || p.Server == "serve") {
		return o, fmt.Errorf("the race detector reports:\n%s", &output)
	}
	data, err := os.ReadFile(p.File)
	switch {
	case err == nil:
		return o, json.Unmarshal(data, &o)
	case ctx.Err() != nil:
		o.Add(compat.Finding{Verdict: compat.Breaks, Note: "it hangs"})
	case strings.Contains(output.String(), "--- FAIL") && !strings.Contains(output.String(), "panic: "):
		return o, fmt.Errorf("%w\n%s", ended, &output)
	default:
		o.Add(compat.Finding{Verdict: compat.Breaks, Note: "the server's process ends: " + lastWords(output.String())})
	}
	return o, nil
}

// lastWords returns the line that a Go program ends with.
func lastWords(output string) string {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			line = strings.TrimSpace(line)
			return line[:min(len(line), 120)]
		}
	}
	return fmt.Sprintf("%.120q", output)
}
