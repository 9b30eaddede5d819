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

// The trials of a pair of probe and server run in a process of their own: this test
// binary started again with pairEnv set.
//
// Note: Hertz has a process for each trial. In a build with the race detector netpoll looks
// up what an event is about by the number of its descriptor. The event of a trial's last
// connection could come when the next trial's listener had that number, and end Hertz as if
// the listener were closed.
const pairEnv = "TARE_COMPAT_PAIR"

// pair says what a process is to run, how often, and where to write the findings.
type pair struct {
	Probe, Server string
	Times         int
	File          string
}

// most is how long a trial may take.
const most = 30 * time.Second

// TestPair is that process.
func TestPair(t *testing.T) {
	asked := os.Getenv(pairEnv)
	if asked == "" {
		t.Skip("this is the process that other tests start")
	}
	var p pair
	if err := json.Unmarshal([]byte(asked), &p); err != nil {
		t.Fatal(err)
	}
	servers := append(compat.Servers(), spoilt()...)
	s := slices.IndexFunc(servers, func(s compat.Server) bool { return s.Name == p.Server })
	probes := compat.Probes()
	i := slices.IndexFunc(probes, func(q compat.Probe) bool { return q.Name == p.Probe })
	if s < 0 || i < 0 {
		t.Fatalf("no probe %q or no server %q", p.Probe, p.Server)
	}
	var found []compat.Finding
	for range p.Times {
		found = append(found, probes[i].Run(servers[s])...)
	}
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.File, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a pair some times over.
func (p pair) run(ctx context.Context, times int) (o compat.Outcome, err error) {
	p.Times = times
	processes := 1
	if p.Server == "hertz" {
		p.Times, processes = 1, times
	}
	for range processes {
		found, err := p.try(ctx)
		if err != nil {
			return o, err
		}
		o.Add(found...)
	}
	return o, nil
}

// try runs trials in their process. A process that ends or hangs has broken.
func (p pair) try(ctx context.Context) (found []compat.Finding, err error) {
	dir, err := os.MkdirTemp("", "pair")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	p.File = filepath.Join(dir, "findings")
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(p.Times)*most)
	defer cancel()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestPair$")
	// The race detector waits for a second before a process ends, unless told otherwise.
	cmd.Env = append(os.Environ(), pairEnv+"="+string(text), "GORACE=exitcode=0 atexit_sleep_ms=100")
	cmd.Stdout, cmd.Stderr = &output, &output
	ended := cmd.Run()
	if bytes.Contains(output.Bytes(), []byte("DATA RACE")) && (p.Server == "nethttp" || p.Server == "serve") {
		return nil, fmt.Errorf("the race detector reports:\n%s", &output)
	}
	data, err := os.ReadFile(p.File)
	switch {
	case err == nil:
		return found, json.Unmarshal(data, &found)
	case ctx.Err() != nil:
		return []compat.Finding{{Verdict: compat.Breaks, Note: "it hangs"}}, nil
	case strings.Contains(output.String(), "--- FAIL") && !strings.Contains(output.String(), "panic: "):
		return nil, fmt.Errorf("%w\n%s", ended, &output)
	}
	return []compat.Finding{{Verdict: compat.Breaks, Note: "the server's process ends: " + lastWords(output.String())}}, nil
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
