//go:build linux && amd64

package probe_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
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

// builtVar says where TestMain has the target built; programs are kept there by their
// flags.
const builtVar = "PROBE_TEST_BUILT"

func TestMain(m *testing.M) {
	if pid := os.Getenv(crashVar); pid != "" {
		crash(pid)
	}
	dir, err := os.MkdirTemp("", "probe")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv(builtVar, dir)
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// build builds the target with flags, unless an earlier test has.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '=' || r == ' ' {
			return '_'
		}
		return r
	}, "target"+strings.Join(flags, ""))
	path := filepath.Join(os.Getenv(builtVar), name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	args := append([]string{"build", "-o", path}, flags...)
	out, err := exec.Command("go", append(args, "./testdata/target")...).CombinedOutput()
	if err != nil {
		t.Fatalf("building the target: %v\n%s", err, out)
	}
	return path
}

// start runs a target until the test ends.
func start(t testing.TB, path string, args ...string) *server {
	t.Helper()
	cmd := exec.Command(path, args...)
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
	if status := get(http.DefaultClient, s.url+"/fast"); status != http.StatusOK {
		t.Fatalf("the target answers %d", status)
	}
}

func get(c *http.Client, url string) int {
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
func (s *server) load(t testing.TB, clients int, paths ...string) (stop func()) {
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
					get(c, s.url+paths[n%len(paths)])
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

func (s *server) truth(t testing.TB) saw {
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
func open(t testing.TB, pid int) *probe.Target {
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
func skip(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, cost.ErrNotSupported) {
		t.Skip(err)
	}
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
