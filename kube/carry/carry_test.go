package carry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/carry"
	"github.com/tarehq/tare/kube/parcel"
	"github.com/tarehq/tare/lab/fleet/agent"
	"github.com/tarehq/tare/lab/fleet/certs"
)

// secret makes a folder as a Secret is mounted, with files and a command line, and returns it beside
// the folder that the coordinator's certificate is in.
func secret(t *testing.T, files parcel.Files, command ...string) (dir, coordinator string) {
	t.Helper()
	dir, coordinator = t.TempDir(), filepath.Join(t.TempDir(), "certs")
	made, err := certs.Make(coordinator, []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string][]byte{carry.FilesKey: text, carry.CommandKey: line}
	for _, name := range []string{"agent.pem", "agent.key", "ca.pem"} {
		if content[name], err = os.ReadFile(filepath.Join(made[0], name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return dir, coordinator
}

func needsShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: programs are scripts of a Unix shell")
	}
}

// options are those of a pod below a folder.
func options(t *testing.T, secret string) carry.Options {
	dir := t.TempDir()
	o := carry.Options{Secret: secret, Certs: filepath.Join(dir, "certs"), Work: filepath.Join(dir, "work"), Keep: filepath.Join(dir, "outcome"), Within: time.Minute}
	if err := os.Mkdir(o.Work, 0o755); err != nil {
		t.Fatal(err)
	}
	return o
}

func read(t *testing.T, path string) *parcel.Outcome {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o, err := parcel.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRunAndOffer has a program run in a pod's folders, and fetches what it came to.
func TestRunAndOffer(t *testing.T) {
	needsShell(t)
	dir, coordinator := secret(t, parcel.Files{"mine.yaml": []byte("name: mine\n")}, "run", "mine.yaml")
	o := options(t, dir)
	var log bytes.Buffer
	script := `echo "$@"; cat mine.yaml; echo late >&2; echo page > runs/r.html; exit 5`
	agent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	o.Agents, o.ArmOn, o.Folders = []string{agent.Addr().String(), agent.Addr().String()}, "10.0.0.1", []string{"runs"}
	if err := carry.Run(t.Context(), o, []string{"sh", "-c", script, "tare"}, &log); err != nil {
		t.Fatal(err)
	}
	security, err := certs.Agent(o.Certs)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- carry.Offer(ctx, l, security, o.Keep, time.Minute) }()
	client, err := certs.Coordinator(coordinator)
	if err != nil {
		t.Fatal(err)
	}
	mine := &http.Client{Transport: &http.Transport{TLSClientConfig: client}}
	for range 2 { // as often as it is asked for
		res, err := mine.Get("https://" + l.Addr().String() + carry.Path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parcel.Read(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		want := "run --certs=" + o.Certs + " --on=" + o.Agents[0] + " --on=" + o.Agents[1] + " --arm-on=10.0.0.1 mine.yaml\nname: mine\n"
		if got.Status != 5 || string(got.Output) != want || string(got.Errors) != "late\n" || log.String() != "late\n" ||
			len(got.Files) != 1 || string(got.Files["runs/r.html"]) != "page\n" {
			t.Errorf("got %+v and the log %q; want status 5, both outputs and the page alone", got, log.String())
		}
	}
	client.Certificates = nil
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: client}}
	if res, err := stranger.Get("https://" + l.Addr().String() + carry.Path); err == nil {
		res.Body.Close()
		t.Error("whoever shows no certificate gets the outcome")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the offer ended with %v", err)
	}
}

// TestOfferEnds leaves an outcome that nobody fetches.
func TestOfferEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := secret(t, nil)
	to := filepath.Join(t.TempDir(), "certs")
	if err := carry.CopyCerts(dir, to); err != nil {
		t.Fatal(err)
	}
	security, err := certs.Agent(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := carry.Offer(t.Context(), l, security, "none", time.Millisecond); err != nil {
		t.Errorf("got %v, want the offer to end by itself", err)
	}
}

func TestRunFails(t *testing.T) {
	needsShell(t)
	dir, _ := secret(t, nil, "load")
	for name, c := range map[string]struct {
		argv   []string
		status int
		want   string
	}{
		"not there": {[]string{filepath.Join(dir, "none")}, 1, "none"},
		"killed":    {[]string{"sh", "-c", "kill -9 $$"}, 1, "signal: killed"},
		"fails":     {[]string{"sh", "-c", "exit 2"}, 2, ""},
	} {
		o := options(t, dir)
		if err := carry.Run(t.Context(), o, c.argv, io.Discard); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := read(t, o.Keep); got.Status != c.status || !strings.Contains(string(got.Errors), c.want) {
			t.Errorf("%s: got %d and %q, want %d and %q", name, got.Status, got.Errors, c.status, c.want)
		}
	}
}

// TestRunTooLong has a program interrupted at its deadline, which keeps what it has.
func TestRunTooLong(t *testing.T) {
	needsShell(t)
	dir, _ := secret(t, nil, "load")
	o := options(t, dir)
	o.Within = 200 * time.Millisecond
	script := "trap 'echo half; exit 130' INT\nwhile :; do sleep 0.05; done\n"
	if err := carry.Run(t.Context(), o, []string{"sh", "-c", script}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := read(t, o.Keep); got.Status != 130 || string(got.Output) != "half\n" || !strings.Contains(string(got.Errors), "the deadline of 200ms is over") {
		t.Errorf("got %d, %q and %q; want what there is, and why", got.Status, got.Output, got.Errors)
	}
}

// TestRunWithoutAgents is stopped while it waits for an agent that does not come.
func TestRunWithoutAgents(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody answers there
	dir, _ := secret(t, nil, "load")
	o := options(t, dir)
	o.Agents = []string{l.Addr().String()}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := carry.Run(ctx, o, []string{"none"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := read(t, o.Keep); got.Status != 1 || !strings.Contains(string(got.Errors), "waiting for agent "+o.Agents[0]) {
		t.Errorf("got %d and %q, want 1 and which agent is missing", got.Status, got.Errors)
	}
}

// TestAgent has a script stand for tare, which keeps what it is given.
func TestAgent(t *testing.T) {
	needsShell(t)
	dir, _ := secret(t, nil)
	place := t.TempDir()
	tare := filepath.Join(place, "tare")
	if err := os.WriteFile(tare, []byte("#!/bin/sh\necho \"$@\"\ntrap 'exit 0' INT\nwhile :; do sleep 0.05; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := carry.AgentOptions{Secret: dir, Certs: filepath.Join(place, "certs"), Config: filepath.Join(place, "agent.yaml"), Allow: []string{"svc.ns:80"}, Arms: "127.0.0.1"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, log := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- carry.Agent(ctx, o, tare, log)
		log.Close()
	}()
	buffer := make([]byte, 1000)
	n, err := said.Read(buffer)
	if want := "agent serve --config " + o.Config + " --certs " + o.Certs + "\n"; err != nil || string(buffer[:n]) != want {
		t.Errorf("tare was given %q, %v; want %q", buffer[:n], err, want)
	}
	config, err := agent.ReadConfig(o.Config)
	if want := []string{"svc.ns:80", "127.0.0.1:20000-31999"}; err != nil || !slices.Equal(config.Allow, want) || config.Duration != 168*time.Hour {
		t.Errorf("got %+v, %v; want the places %q", config, err, want)
	}
	if _, err := certs.Agent(o.Certs); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("an agent that was told to end succeeded: its pod would not be made again")
	}
}
