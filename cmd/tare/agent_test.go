package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// serveAgent runs tare agent serve until the test ends, and returns its address.
func serveAgent(t *testing.T, certs, place string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:0\nallow:\n  - "+place+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	log, said := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"agent", "serve", "--config", file, "--certs", certs}, &cli.Terminal{Out: io.Discard, Err: said, Width: 80})
		said.Close()
	}()
	lines := bufio.NewReader(log)
	line, err := lines.ReadString('\n')
	found := regexp.MustCompile(`agent ready.* address=(\S+)`).FindStringSubmatch(line)
	if err != nil || found == nil {
		t.Fatalf("the agent said %q, %v; want its address", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	t.Cleanup(func() {
		cancel()
		if status := <-ended; status != 0 {
			t.Errorf("the agent ended with status %d", status)
		}
	})
	return found[1]
}

// tare load --on makes one load with several agents, and shows what each measured.
func TestLoadOn(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer s.Close()
	place := strings.TrimPrefix(s.URL, "http://")
	certs := filepath.Join(t.TempDir(), "certs")
	status, out, errs := tare(t, "agent", "init", "--certs", certs, "--host", "127.0.0.1")
	mine := strings.TrimSpace(out)
	if status != 0 || !strings.HasPrefix(mine, certs) {
		t.Fatalf("agent init: status %d, %q, %q", status, out, errs)
	}
	on := serveAgent(t, mine, place) + "," + serveAgent(t, mine, place)
	// Status 5 is that of a machine too busy to be on time.
	status, out, errs = tare(t, "load", "-q", "--on", on, "--certs", certs, "-r", "100", "-d", "1s", s.URL)
	if status != 0 && status != cli.ExitNotOffered || !strings.Contains(out, "100 scheduled, 100 answered") || !strings.Contains(out, "began within") {
		t.Errorf("status %d, want 0, and 100 requests and a table of agents:\n%s%s", status, out, errs)
	}
	status, out, errs = tare(t, "load", "-q", "--json", "--on", on, "--certs", certs, "-n", "10", "-c", "2", s.URL)
	var got struct {
		Counts struct{ Answered int }
		Fleet  struct {
			Agents []struct {
				Name   string
				Result struct{ Counts struct{ Answered int } }
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 {
		t.Fatalf("status %d, %v, %q: %s", status, err, errs, out)
	}
	if f := got.Fleet.Agents; got.Counts.Answered != 10 || len(f) != 2 || f[0].Result.Counts.Answered != 5 {
		t.Errorf("got %+v, want 10 answers, half of them by each of two agents", got)
	}
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"load --on " + on + " " + s.URL, 2, "--on needs --certs"},
		{"load --certs " + certs + " " + s.URL, 2, "--certs does nothing without --on"},
		{"load --on " + on + " --certs " + certs + " --find-max p99<1s " + s.URL, 2, "--on does not go with --find-max"},
		{"load --on " + on + " --certs " + certs + " http://127.0.0.1:1/", 1, "not among those of `allow`"},
		{"load --on " + on + " --certs " + certs + " -c 1 " + s.URL, 2, "1 connections are fewer than 2 agents"},
		{"load --on 127.0.0.1:1 --certs " + certs + " " + s.URL, 1, "agent 127.0.0.1:1: connecting"},
		{"load --on " + strings.ReplaceAll(on, "127.0.0.1", "localhost") + " --certs " + certs + " " + s.URL, 1, "tare agent init --host HOST"},
		{"run --arm-on 127.0.0.1 nesting", 2, "--arm-on does nothing without --on"},
		{"run --on " + on + " nesting", 2, "--on needs --certs"},
		{"load --on k8s --certs " + certs + " " + s.URL, 2, "--certs does nothing with --on k8s"},
		{"load --image mine:1 " + s.URL, 2, "do nothing without --on k8s"},
		{"load --on k8s:shop " + s.URL, 2, "no image has tare (devel)"},
		{"run --on k8s --image mine:1 --resume run", 2, "--resume does nothing with --on k8s"},
		{"run --on k8s --image mine:1 --dir /srv/runs nesting", 2, "/srv/runs is outside of this folder"},
		{"run --on k8s --image mine:1 none.yaml", 2, "none"},
		{"gate --on " + on + " nesting", 2, "--on needs --certs"},
		{"gate --arm-on 127.0.0.1 nesting", 2, "--arm-on does nothing without --on"},
		{"gate --on k8s --image mine:1 --resume nesting", 2, "--resume does nothing with --on k8s"},
		{"gate --on k8s --image mine:1 --dir /srv/runs nesting", 2, "/srv/runs is outside of this folder"},
		{"ab --on " + on + " http://127.0.0.1:1 http://127.0.0.1:2", 2, "--on needs --certs"},
		{"ab --certs " + certs + " http://127.0.0.1:1 http://127.0.0.1:2", 2, "--certs does nothing without --on"},
		{"ab --on k8s --image mine:1 --body-file /etc/hostname http://old http://new", 2, "/etc/hostname is outside of this folder"},
		{"ab --on k8s http://old http://new", 2, "no image has tare (devel)"},
		{"agent serve", 2, "--config"},
		{"agent init --certs x", 2, "--host"},
		{"agent init --certs x --host h --config y", 2, "--config does nothing with init"},
		{"agent serve --config missing.yaml", 2, "missing.yaml"},
	} {
		if status, _, errs := tare(t, strings.Fields(c.args)...); status != c.status || !strings.Contains(errs, c.want) {
			t.Errorf("tare %s: status %d and %q, want %d and %q", c.args, status, errs, c.status, c.want)
		}
	}
}

// twoAgents makes certificates in the folder certs, starts two agents, and returns how --on
// names them.
func twoAgents(t *testing.T) string {
	t.Helper()
	status, out, errs := tare(t, "agent", "init", "--certs", "certs", "--host", "127.0.0.1")
	if status != 0 {
		t.Fatalf("agent init: status %d, %q, %q", status, out, errs)
	}
	mine := strings.TrimSpace(out)
	return serveAgent(t, mine, "127.0.0.1:*") + "," + serveAgent(t, mine, "127.0.0.1:*")
}

// tare ab --on compares two services by the loads of two agents: in each trial
// both have answers.
func TestABOn(t *testing.T) {
	t.Chdir(t.TempDir())
	var urls []string
	for range 2 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
		defer s.Close()
		urls = append(urls, s.URL)
	}
	on := twoAgents(t)
	args := append([]string{"ab", "--on", on, "--certs", "certs", "--budget", "2s", "--rate", "200", "--connections", "4", "--no-why"}, urls...)
	status, out, errs := tare(t, args...)
	if status != 0 && status != cli.ExitInconclusive || !strings.Contains(out, "\nOwners\n") || strings.Index(out, "\nOwners\n") > strings.Index(out, "Repeat it") {
		t.Fatalf("status %d, want 0 or %d, and what there is to say of owners above how to repeat it:\n%s%s", status, cli.ExitInconclusive, out, errs)
	}
	found, err := filepath.Glob(filepath.Join("runs", "*", "agents.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("got the runs %q, %v; want one with what the agents measured", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	loads := 0
	for line := range strings.Lines(string(text)) {
		var got struct {
			Agents []struct {
				Name   string
				Result struct{ Counts struct{ Answered int } }
			}
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if a := got.Agents; len(a) != 2 || a[0].Name+","+a[1].Name != on || a[0].Result.Counts.Answered == 0 || a[1].Result.Counts.Answered == 0 {
			t.Errorf("got the load %+v, want answers to each of %s", got, on)
		}
		loads++
	}
	if loads < 4 {
		t.Errorf("%d loads, want two of each service at least", loads)
	}
}

// tare gate --on has agents load the arms, and keeps what each measured. One block decides
// nothing.
func TestGateOn(t *testing.T) {
	t.Chdir(t.TempDir())
	var study strings.Builder
	study.WriteString("name: two\ntitle: Two servers\narms:\n")
	for _, name := range []string{"old", "new"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
		defer s.Close()
		fmt.Fprintf(&study, "  - {name: %s, url: %q}\n", name, s.URL)
	}
	study.WriteString(`control: old
workloads:
  - name: steady
    schedule: closed
    connections: 4
    targets: [{path: /, verify: {status: 200}}]
primary: {metric: service_p50, workload: steady}
threshold: 5%
trial: {warm_up: 100ms, measure: 1s, slice: 100ms}
`)
	if err := os.WriteFile("two.yaml", []byte(study.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	on := twoAgents(t)
	status, out, errs := tare(t, "gate", "--on", on, "--certs", "certs", "--blocks", "1", "two.yaml")
	if status != cli.ExitInconclusive || !strings.Contains(out, "inconclusive") {
		t.Fatalf("status %d, want %d:\n%s%s", status, cli.ExitInconclusive, out, errs)
	}
	found, err := filepath.Glob(filepath.Join("runs", "*", "agents.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("got the runs %q, %v; want one with what the agents measured", found, err)
	}
	if status, _, errs := tare(t, "gate", "--on", on, "--certs", "certs", filepath.Dir(found[0])); status != 2 || !strings.Contains(errs, "judged as it is") {
		t.Errorf("of a run: status %d and %q, want wrong usage", status, errs)
	}
}
