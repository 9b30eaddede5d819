//go:build linux && amd64

package probe_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
)

// server is a program under probes.
type server struct {
	pid  int
	url  string
	proc *os.Process
	done chan error
}

// build builds the target with flags, once a test.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target")
	args := append([]string{"build", "-o", path}, flags...)
	out, err := exec.Command("go", append(args, "./testdata/target")...).CombinedOutput()
	if err != nil {
		t.Fatalf("building the target: %v\n%s", err, out)
	}
	return path
}

// start runs a target until the test ends.
func start(t *testing.T, path string) *server {
	t.Helper()
	cmd := exec.Command(path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = io.Discard // net/http logs panics
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{pid: cmd.Process.Pid, proc: cmd.Process, done: make(chan error, 1)}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + strings.TrimSpace(line)
	go func() { s.done <- cmd.Wait() }()
	t.Cleanup(func() {
		s.proc.Kill()
		<-s.done
	})
	return s
}

// alive fails the test if the target has ended by itself.
func (s *server) alive(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.done:
		s.done <- err
		t.Fatalf("the target ended: %v", err)
	default:
	}
	if status := get(t, http.DefaultClient, s.url+"/fast"); status != http.StatusOK {
		t.Fatalf("the target answers %d", status)
	}
}

func get(t *testing.T, c *http.Client, url string) int {
	res, err := c.Get(url)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// load asks for paths in turn, by so many clients, until the test ends or the
// function returned is called.
func (s *server) load(t *testing.T, clients int, paths ...string) (stop func()) {
	t.Helper()
	end := make(chan struct{})
	var all sync.WaitGroup
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	c := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	for i := range clients {
		all.Go(func() {
			for n := i; ; n++ {
				select {
				case <-end:
					return
				default:
					get(t, c, s.url+paths[n%len(paths)])
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		close(end)
		all.Wait()
		transport.CloseIdleConnections()
	})
	t.Cleanup(stop)
	return stop
}

// saw is what the target measured of itself.
type saw map[string]struct{ Calls, Nanos float64 }

func (s *server) truth(t *testing.T) saw {
	t.Helper()
	res, err := http.Get(s.url + "/truth")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var v saw
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// open prepares probes on a target, or skips the test where there can be none.
func open(t *testing.T, pid int) *probe.Target {
	t.Helper()
	p, err := probe.Open(pid)
	if err != nil {
		skip(t, err)
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// skip skips the test if an error says that something is missing here.
func skip(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, cost.ErrNotSupported) {
		t.Skip(err)
	}
}

// watch watches everything for a while.
func watch(t *testing.T, p *probe.Target, names []string, o probe.Options) *probe.Measurement {
	t.Helper()
	price, err := probe.Calibrate(t.Context())
	skip(t, err)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := p.Owners(t.Context(), names, 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.NewWatch(owners, price)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f, err := w.Look(t.Context(), 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("price %+v, forecast %+v", price, f)
	m, err := w.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, wall := range m.Walls {
		t.Logf("%-24s calls %.0f seen %.0f self %.2f p50 %.2f p99 %.2f total %.2f µs", wall.Owner.Name, wall.Calls, wall.Seen,
			wall.Self/wall.Seen/1e3, wall.P50/1e3, wall.P99/1e3, wall.Total/wall.Seen/1e3)
	}
	t.Logf("attached %s, requests %.0f, hits %.0f, marks %d, share %.3f, warnings %v", m.Attached, m.Requests, m.Hits, m.Marks, m.Share(price), m.Warnings)
	return m
}

// wallOf finds an owner by its name.
func wallOf(t *testing.T, m *probe.Measurement, name string) cost.Wall {
	t.Helper()
	for _, w := range m.Walls {
		if w.Owner.Name == name {
			return w
		}
	}
	t.Fatalf("no %s among %v", name, m.Walls)
	return cost.Wall{}
}

func TestWatch(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, 3, "/", "/deep")
	before := s.truth(t)
	m := watch(t, p, nil, probe.Options{For: 2 * time.Second})
	after := s.truth(t)
	_, _, _ = before, after, m
	s.alive(t)
}
