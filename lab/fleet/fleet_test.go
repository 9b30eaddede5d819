package fleet_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/fleet/agent"
	"github.com/tarehq/tare/lab/fleet/certs"
	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// Eight agents make the load that one would have made, and begin together.
func TestEightAgents(t *testing.T) {
	dir, mine := makeCerts(t)
	url, place := startServer(t)
	var agents []string
	for range 8 {
		agents = append(agents, startAgent(t, mine, agent.Config{Allow: []string{place}}))
	}
	f := mustConnect(t, dir, agents...)
	o := constant(url, 400, 2*time.Second)
	var marks []bool
	var shown atomic.Uint64
	o.Mark = func(begin bool) { marks = append(marks, begin) }
	o.Progress = func(s load.Snapshot) { shown.Store(s.Response.Count()) }
	rep, err := f.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	res := rep.Result
	if res.Counts.Scheduled != 800 || res.Counts.Answered() != 800 || res.Response.Count() != 800 {
		t.Errorf("scheduled %d, answered %d, %d times; want 800 each", res.Counts.Scheduled, res.Counts.Answered(), res.Response.Count())
	}
	if len(marks) != 2 || !marks[0] || marks[1] {
		t.Errorf("marks %v, want the beginning and the end", marks)
	}
	if shown.Load() == 0 {
		t.Error("no answer was shown while the load ran")
	}
	var answered uint64
	for _, sl := range res.Series {
		answered += sl.Answered
	}
	if answered != 800 || len(res.Series) != 2 {
		t.Errorf("%d slices with %d answers, want 2 with 800", len(res.Series), answered)
	}
	for _, a := range rep.Agents {
		if a.Result.Counts.Scheduled != 100 {
			t.Errorf("agent %s was given %d requests, want 100", a.Name, a.Result.Counts.Scheduled)
		}
	}
	skew := rep.Skew
	for range 9 { // the machine may be busy
		if skew <= 10*time.Millisecond {
			break
		}
		again, err := f.Run(t.Context(), constant(url, 400, 100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		skew = min(skew, again.Skew)
	}
	if skew < 0 || skew > 10*time.Millisecond {
		t.Errorf("of ten loads the agents began best within %v, want 10ms", skew)
	}
	t.Logf("skew %v, p50 %v, p99 %v, unfit %q", rep.Skew, time.Duration(res.Response.Quantile(.5)), time.Duration(res.Response.Quantile(.99)), rep.Unfit)
}

// Agents make one load after the other, warm-ups and closed loops among them.
func TestLoadsInTurn(t *testing.T) {
	dir, mine := makeCerts(t)
	url, place := startServer(t)
	allowed := agent.Config{Allow: []string{place}}
	f := mustConnect(t, dir, startAgent(t, mine, allowed), startAgent(t, mine, allowed), startAgent(t, mine, allowed))
	kept := 0
	f.Keep(func(*fleet.Report) error { kept++; return nil })
	for what, o := range map[string]load.Options{
		"closed, by number": {Connections: 4, Requests: 100},
		"closed, by time":   {Connections: 3, Duration: 300 * time.Millisecond, WarmUp: 100 * time.Millisecond},
		"random":            {Schedule: pace.Poisson(500, 7), Duration: 300 * time.Millisecond, WarmUp: 200 * time.Millisecond, Slice: 100 * time.Millisecond},
	} {
		o.Targets = []load.Target{{URL: url}}
		res, err := f.Load(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := res.Counts.Answered(); n == 0 || o.Requests > 0 && n != 100 {
			t.Errorf("%s: %d answers of %d", what, n, res.Counts.Scheduled)
		}
		if o.WarmUp > 0 && res.WarmUp.Answered() == 0 {
			t.Errorf("%s: no answer in the warm-up", what)
		}
	}
	if kept != 3 {
		t.Errorf("%d reports were kept, want 3", kept)
	}
}

// An interruption ends all agents, and what was measured is kept.
func TestInterrupted(t *testing.T) {
	dir, mine := makeCerts(t)
	url, place := startServer(t)
	allowed := agent.Config{Allow: []string{place}}
	f := mustConnect(t, dir, startAgent(t, mine, allowed), startAgent(t, mine, allowed))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, cancel)
	rep, err := f.Run(ctx, constant(url, 200, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if res := rep.Result; res.Ended != "interrupted" || res.Counts.Answered() == 0 {
		t.Errorf("ended %q with %d answers, want interrupted with some", res.Ended, res.Counts.Answered())
	}
}

// A coordinator that goes leaves no load behind.
func TestCoordinatorGone(t *testing.T) {
	dir, mine := makeCerts(t)
	url, place := startServer(t)
	addr := startAgent(t, mine, agent.Config{Allow: []string{place}})
	f := mustConnect(t, dir, addr)
	began := make(chan struct{})
	o := constant(url, 100, time.Hour)
	var once atomic.Bool
	o.Progress = func(load.Snapshot) {
		if once.CompareAndSwap(false, true) {
			close(began)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := f.Run(t.Context(), o)
		ended <- err
	}()
	select {
	case <-began:
	case err := <-ended:
		t.Fatalf("the load ended at once: %v", err)
	}
	if _, err := connect(t, dir, addr); !errors.Is(err, fleet.ErrBusy) || !strings.Contains(err.Error(), "has it") {
		t.Errorf("a second coordinator: %v, want that the agent is busy and with whom", err)
	}
	fleet.HangUp(f)
	if err := <-ended; !errors.Is(err, fleet.ErrLost) {
		t.Errorf("the load ended with %v, want ErrLost", err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		again, err := connect(t, dir, addr) // once the load has ended
		if err == nil {
			again.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the agent is still busy: %v", err)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir, mine := makeCerts(t)
	url, place := startServer(t)
	addr := startAgent(t, mine, agent.Config{Allow: []string{place}, Rate: 50, Message: 4096})
	security, err := certs.Coordinator(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fleet.Connect(t.Context(), fleet.Options{Agents: []string{addr}, TLS: security, Version: "v9.9.9"})
	if !errors.Is(err, fleet.ErrVersion) || !strings.Contains(err.Error(), version) || !strings.Contains(err.Error(), "v9.9.9") {
		t.Errorf("another version: %v, want both named", err)
	}
	f := mustConnect(t, dir, addr)
	if _, err := f.Run(t.Context(), constant("http://127.0.0.1:1/", 10, time.Second)); !errors.Is(err, fleet.ErrNotAllowed) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("another target: %v, want ErrNotAllowed and the target", err)
	}
	if _, err := f.Run(t.Context(), constant(url, 60, time.Second)); !errors.Is(err, fleet.ErrNotAllowed) {
		t.Errorf("too high a rate: %v, want ErrNotAllowed", err)
	}
	large := constant(url, 10, time.Second)
	large.Targets[0].Body = make([]byte, 8<<10)
	if _, err := f.Run(t.Context(), large); !errors.Is(err, fleet.ErrNotAllowed) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a large message: %v, want ErrNotAllowed", err)
	}
	if _, err := f.Run(t.Context(), load.Options{Targets: []load.Target{{URL: url}}, Connections: 1, Unix: "/tmp/x"}); !errors.Is(err, fleet.ErrUnshared) {
		t.Errorf("a Unix socket: %v, want ErrUnshared", err)
	}
	if rep, err := f.Run(t.Context(), constant(url, 40, 200*time.Millisecond)); err != nil || rep.Result.Counts.Answered() == 0 {
		t.Errorf("a load within bounds, after those: %v", err)
	}
}

// A certificate of another authority, or an agent's own, opens nothing.
func TestWrongCertificate(t *testing.T) {
	dir, mine := makeCerts(t)
	other, _ := makeCerts(t)
	addr := startAgent(t, mine, agent.Config{Allow: []string{"127.0.0.1:*"}})
	security, err := certs.Coordinator(dir)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := certs.Coordinator(other)
	if err != nil {
		t.Fatal(err)
	}
	agents, err := certs.Agent(mine)
	if err != nil {
		t.Fatal(err)
	}
	unknown, role, none := security.Clone(), security.Clone(), security.Clone()
	unknown.Certificates, role.Certificates, none.Certificates = foreign.Certificates, agents.Certificates, nil
	for what, c := range map[string]*fleet.Options{
		"of another authority": {TLS: unknown}, "of an agent": {TLS: role}, "none": {TLS: none}, "another authority trusted": {TLS: foreign},
	} {
		c.Agents, c.Version = []string{addr}, version
		if _, err := fleet.Connect(t.Context(), *c); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("certificate %s: got %v, want an error about it", what, err)
		}
	}
}

// speak connects to an agent and sends it bytes as they are. It returns the kind and the text
// of the agent's answer, or the error instead.
func speak(addr string, security *tls.Config, raw []byte) (kind, text string, err error) {
	conn, err := tls.Dial("tcp", addr, security)
	if err != nil {
		return "", "", err
	}
	l := wire.NewLink(conn, wire.MostFrame)
	defer l.Close()
	if _, err := conn.Write(raw); err != nil {
		return "", "", err
	}
	m, err := l.Receive()
	if err != nil {
		return "", "", err
	}
	return m.Kind, m.Text, nil
}

// Frames that are too large, or none, end the connection. The agent goes on.
func TestHostileFrames(t *testing.T) {
	dir, mine := makeCerts(t)
	addr := startAgent(t, mine, agent.Config{Allow: []string{"127.0.0.1:*"}, Message: 4096})
	security, err := certs.Coordinator(dir)
	if err != nil {
		t.Fatal(err)
	}
	frame := func(whole, text uint32, body string) []byte {
		b := binary.BigEndian.AppendUint32(nil, whole)
		return append(binary.BigEndian.AppendUint32(b, text), body...)
	}
	for what, raw := range map[string][]byte{
		"oversize":              frame(5000, 10, strings.Repeat("x", 4996)),
		"of the largest length": frame(1<<32-1, 1<<32-1, ""),
		"shorter than a length": frame(1, 0, ""),
		"longer than itself":    frame(10, 20, "{}{}{}"),
		"no JSON":               frame(4+5, 5, "hello"),
	} {
		if kind, text, err := speak(addr, security, raw); err == nil {
			t.Errorf("a frame %s: got %s %q, want the connection closed", what, kind, text)
		}
	}
	job := `{"kind":"job"}`
	if kind, text, err := speak(addr, security, frame(uint32(4+len(job)), uint32(len(job)), job)); err != nil || kind != "refuse" || !strings.Contains(text, "hello") {
		t.Errorf("a job without a greeting: %s %q, %v; want it refused", kind, text, err)
	}
	mustConnect(t, dir, addr)
}

// Connections of a host that begin no handshake keep no coordinator on another host out.
func TestStalledHandshakes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: needs 127.0.0.2 to be this host, as it is on Linux")
	}
	dir, mine := makeCerts(t)
	addr := startAgent(t, mine, agent.Config{Allow: []string{"127.0.0.1:*"}})
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 100 {
		conn, err := from.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	mustConnect(t, dir, addr)
}

// An agent that cannot reach what it is to load is reported; so is a fleet that cannot.
func TestNothingAnswers(t *testing.T) {
	dir, mine := makeCerts(t)
	f := mustConnect(t, dir, startAgent(t, mine, agent.Config{Allow: []string{"127.0.0.1:1"}}))
	rep, err := f.Run(t.Context(), load.Options{Targets: []load.Target{{URL: "http://127.0.0.1:1/"}}, Connections: 1, Requests: 3})
	if err == nil || !strings.Contains(err.Error(), "no request was answered") || rep == nil || rep.Result.Counts.Refused != 3 {
		t.Errorf("got %v, want a result with 3 refused and why", err)
	}
}

func TestNames(t *testing.T) {
	got, err := fleet.Names([]string{"load1", "10.0.0.5:80", "::1", "[::1]:9"})
	if want := "[load1:7411 10.0.0.5:80 [::1]:7411 [::1]:9]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
	for _, wrong := range [][]string{{""}, {":80"}, {"a", "a:7411"}} {
		if got, err := fleet.Names(wrong); err == nil {
			t.Errorf("%q: got %q, want an error", wrong, got)
		}
	}
}

func TestCerts(t *testing.T) {
	dir, mine := makeCerts(t)
	if info, err := os.Stat(keyOf(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v: the key has mode %v, want 0600", err, info.Mode())
	}
	if _, err := certs.Make(dir, []string{"127.0.0.1"}); err == nil {
		t.Error("a second certificate for a host replaced the first")
	}
	for _, host := range []string{"", "../x", "a b", "-", "*", "*.", "a.*.b"} {
		if _, err := certs.Make(dir, []string{host}); err == nil {
			t.Errorf("host %q: no error", host)
		}
	}
	more, err := certs.Make(dir, []string{"localhost", "::1"})
	if err != nil || len(more) != 2 {
		t.Fatalf("further hosts: %q, %v", more, err)
	}
	url, place := startServer(t) // the authority is the same as before
	addr := startAgent(t, more[0], agent.Config{Allow: []string{place}})
	f := mustConnect(t, dir, strings.Replace(addr, "127.0.0.1", "localhost", 1), startAgent(t, mine, agent.Config{Allow: []string{place}}))
	if _, err := f.Run(t.Context(), constant(url, 50, 100*time.Millisecond)); err != nil {
		t.Error(err)
	}
	domain, err := certs.Make(dir, []string{"*.try.ns.svc"})
	if err != nil || !strings.HasSuffix(domain[0], "any.try.ns.svc") {
		t.Fatalf("all hosts of a domain: got %q, %v", domain, err)
	}
	security, err := certs.Agent(domain[0])
	if err != nil {
		t.Fatal(err)
	}
	if leaf := security.Certificates[0].Leaf; leaf.VerifyHostname("try-agent-7.try.ns.svc") != nil || leaf.VerifyHostname("try.ns.svc") == nil {
		t.Errorf("the certificate is for %q, want all hosts of the domain", leaf.DNSNames)
	}
	if err := os.Chmod(keyOf(dir), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := certs.Coordinator(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others may read: %v, want the remedy", err)
	}
}
