package flowverb_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/flowverb"
	"github.com/tarehq/tare/load/flow/script"
)

// shop lists, and fails what is asked of /broken.
func shop(t *testing.T, asked *atomic.Int64) (base string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		io.WriteString(w, `{"items": [{"id": 7}]}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

const visits = `users: {arrive: 50/s}
duration: 200ms
fail_if: [errors>1%]
flows:
  - name: visit
    steps:
      - {name: list, url: /list, take: {id: {json: "items[0].id"}}}
      - {name: item, url: "/item/{{.id}}", fail_if: [errors>1%]}
`

// write writes a flow file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "visit.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs the verb, and returns what it printed and its exit status.
func run(t *testing.T, c flowverb.Command) (out, errs string, status int, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err = c.Run(t.Context(), &cli.Terminal{Out: &stdout, Err: &stderr, Width: 120})
	var f *cli.Failure
	switch {
	case errors.As(err, &f):
		status = f.Status
	case err != nil:
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), status, err
}

func TestRun(t *testing.T) {
	var asked atomic.Int64
	c := flowverb.Command{File: write(t, visits), Base: shop(t, &asked), Output: filepath.Join(t.TempDir(), "out.json")}
	out, errs, status, err := run(t, c)
	if status != 0 || err != nil {
		t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
	}
	for _, want := range []string{"visit.yaml: 50 sessions a second for 200ms", "10 begun, 10 completed", "visit", "list", "item", "sessions: fail if errors>1%: held", "visit/item: fail if errors>1%: held"} {
		if !strings.Contains(out, want) {
			t.Errorf("the summary lacks %q:\n%s", want, out)
		}
	}
	if asked.Load() != 20 {
		t.Errorf("the service was asked %d times, want 20", asked.Load())
	}
	var kept struct {
		Title      string
		Thresholds []struct{ Of, Outcome string }
		Result     struct {
			Sessions struct{ Completed int }
			Steps    []struct{ Flow, Step string }
		}
	}
	text, err := os.ReadFile(c.Output)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &kept); err != nil || kept.Result.Sessions.Completed != 10 || len(kept.Thresholds) != 2 || len(kept.Result.Steps) != 2 || kept.Result.Steps[1].Step != "item" {
		t.Errorf("the JSON says %+v, %v", kept, err)
	}
}

// TestShortSoak says that there is no verdict on drift.
func TestShortSoak(t *testing.T) {
	var asked atomic.Int64
	out, errs, status, err := run(t, flowverb.Command{File: write(t, visits), Base: shop(t, &asked), Profile: script.Soak, Duration: 200 * time.Millisecond})
	if status != 0 || !strings.Contains(out, "too short for a verdict on drift") {
		t.Errorf("status %d, %v\n%s%s", status, err, out, errs)
	}
}

// TestStatus ends with the status of what came of a load.
func TestStatus(t *testing.T) {
	var asked atomic.Int64
	base := shop(t, &asked)
	broken := strings.Replace(visits, "/list", "/broken", 1)
	crowded := strings.Replace(visits, "arrive: 50/s", "arrive: 5000/s, most: 1", 1)
	for _, c := range []struct {
		name   string
		text   string
		change func(*flowverb.Command)
		want   int
		says   string
	}{
		{"a threshold", broken, nil, cli.ExitThreshold, ""},
		{"a threshold of a step", visits, func(c *flowverb.Command) { c.FailIf = []string{"list: max>1ns"} }, cli.ExitThreshold, ""},
		{"no session", strings.NewReplacer("fail_if: [errors>1%]\n", "", ", fail_if: [errors>1%]", "").Replace(broken), nil, cli.ExitFailed, "no session was completed"},
		{"too few", visits, func(c *flowverb.Command) { c.FailIf = []string{"p99>1h"} }, cli.ExitInconclusive, "by 10 of 1000 sessions: too few sessions"},
		{"smoke has too few", visits, func(c *flowverb.Command) {
			c.FailIf, c.Profile, c.Duration = []string{"p99>1h"}, "smoke", 100*time.Millisecond
		}, 0, ""},
		{"nobody there", visits, func(c *flowverb.Command) { c.Base = "http://127.0.0.1:1" }, cli.ExitFailed, ""},
		{"turned away, and a threshold", crowded, nil, cli.ExitThreshold, ""},
		{"turned away", strings.Replace(crowded, "fail_if: [errors>1%]\n", "", 1), nil, cli.ExitNotOffered, "not offered"},
		{"set-up", "setup: [{url: /broken}]\n" + visits, nil, cli.ExitFailed, "set-up"},
	} {
		cmd := flowverb.Command{File: write(t, c.text), Base: base, Quiet: true}
		if c.change != nil {
			c.change(&cmd)
		}
		out, _, status, err := run(t, cmd)
		if status != c.want || c.says != "" && !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: status %d, %v, want %d, %q\n%s", c.name, status, err, c.want, c.says, out)
		}
	}
}

// TestUsage refuses what cannot be, before anybody is asked.
func TestUsage(t *testing.T) {
	var asked atomic.Int64
	base := shop(t, &asked)
	for _, c := range []struct {
		says   string
		text   string
		change func(*flowverb.Command)
	}{
		{"--rate and --users exclude each other", visits, func(c *flowverb.Command) { c.Rate, c.Users = "5", 3 }},
		{"not negative", visits, func(c *flowverb.Command) { c.Users = -1 }},
		{"--rate", visits, func(c *flowverb.Command) { c.Rate = "fast" }},
		{"no step is called", visits, func(c *flowverb.Command) { c.FailIf = []string{"lst: p99>1s"} }},
		{"a session has no status", visits, func(c *flowverb.Command) { c.FailIf = []string{"status_5xx>1%"} }},
		{"profile soak needs users who arrive", strings.Replace(visits, "arrive: 50/s", "count: 2", 1), func(c *flowverb.Command) { c.Profile = "soak" }},
		{"users say either arrive", strings.Replace(visits, "arrive: 50/s", "most: 2", 1), nil},
		{"base", visits, func(c *flowverb.Command) { c.Base = "localhost" }},
		{"is there already", visits, func(c *flowverb.Command) { c.From = "site.har" }},
		{"which file is to be written", visits, func(c *flowverb.Command) { c.File, c.From = "", "site.har" }},
		{"which file? name a flow", visits, func(c *flowverb.Command) { c.File = "" }},
		{"users come from one process", visits, func(c *flowverb.Command) { c.On = "load1" }},
		{"do nothing without --on k8s", visits, func(c *flowverb.Command) { c.Pod.Image = "mine:1" }},
		{"no image has tare", visits, func(c *flowverb.Command) { c.On = "k8s:shop" }},
		{"is outside of this folder", visits, func(c *flowverb.Command) { c.On, c.Pod.Image = "k8s:shop", "mine:1" }},
	} {
		cmd := flowverb.Command{File: write(t, c.text), Base: base}
		if c.change != nil {
			c.change(&cmd)
		}
		_, _, status, err := run(t, cmd)
		if status != cli.ExitUsage || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%q: status %d, %v", c.says, status, err)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("the service was asked %d times", asked.Load())
	}
}

// TestBreakpoint doubles the rate until a threshold fails.
func TestBreakpoint(t *testing.T) {
	const least = 25 * time.Millisecond
	var begun atomic.Int64 // of the second in which it counts, in milliseconds
	var within atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now().UnixMilli() / 100
		if begun.Swap(now) != now {
			within.Store(0)
		}
		if within.Add(1) > 8 { // in a tenth of a second
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer srv.Close()
	one := "users: {arrive: 10/s}\nflows: [{name: f, steps: [{name: one, url: /}]}]\n"
	out, _, status, err := run(t, flowverb.Command{File: write(t, one), Base: srv.URL, Profile: "breakpoint", Duration: 12 * least, JSON: true, Quiet: true})
	var b struct {
		Held, Broke float64
		Probes      []struct{ Rate float64 }
	}
	if jerr := json.Unmarshal([]byte(out), &b); jerr != nil || status != 0 || err != nil {
		t.Fatalf("status %d, %v, %v\n%s", status, err, jerr, out)
	}
	if b.Broke != 2*b.Held || b.Held < 10 || b.Broke > 320 || b.Probes[len(b.Probes)-1].Rate != b.Broke {
		t.Errorf("got %+v, want it to hold and break in a doubling", b)
	}
}

// TestFrom writes a first file of an archive, without secrets, that parses.
func TestFrom(t *testing.T) {
	har := filepath.Join(t.TempDir(), "site.har")
	content := `{"log": {"entries": [{"request": {"method": "POST", "url": "http://shop.test/login?a=1", "headers": [{"name": "Cookie", "value": "sid=1"}, {"name": "X-A", "value": "b"}], "postData": {"mimeType": "application/json", "text": "{\"password\": 1}"}}}]}}`
	if err := os.WriteFile(har, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "new.yaml")
	_, errs, status, err := run(t, flowverb.Command{File: file, From: har})
	if status != 0 || err != nil || !strings.Contains(errs, "wrote ") || !strings.Contains(errs, "Cookie") {
		t.Fatalf("status %d, %v, %s", status, err, errs)
	}
	for _, want := range []string{"asks http://localhost:8080", "the body of POST /login?a=1 has a password"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not in\n%s", want, errs)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "sid=1") || !strings.Contains(string(text), `X-A: "b"`) || !strings.Contains(string(text), "/login?a=1") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestIsFile(t *testing.T) {
	for arg, want := range map[string]bool{"a.yaml": true, "a.YML": true, "http://h/a.yaml": false, "localhost:8080": false, "a.txt": false} {
		if got := flowverb.IsFile(arg); got != want {
			t.Errorf("%s: %t", arg, got)
		}
	}
}
