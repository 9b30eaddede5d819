//go:build linux && amd64

package bpf_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/internal/sockets"
)

// programs is the folder of the built services, "" before a test has asked for one.
var programs string

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(programs)
	os.Exit(status)
}

// build builds the program of testdata/service with flags, unless an earlier test has.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	if programs == "" {
		dir, err := os.MkdirTemp("", "bpf")
		if err != nil {
			t.Fatal(err)
		}
		programs = dir
	}
	exe := filepath.Join(programs, "service"+strings.NewReplacer(" ", "_", "=", "_").Replace(strings.Join(flags, "")), "service")
	if _, err := os.Stat(exe); err == nil {
		return exe
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", exe}, flags...), "main.go")...)
	cmd.Dir = "testdata/service"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return exe
}

// running is a service that is loaded until the test ends.
type running struct {
	pid      int
	kill     func()
	answered *atomic.Int64
}

// serve runs a service, in a root and namespaces of its own if attr says so, and
// puts requests to it.
func serve(t testing.TB, exe string, attr *syscall.SysProcAttr, args ...string) *running {
	t.Helper()
	socket := sockets.Path(t)
	inside, path := socket, exe
	if attr.Chroot != "" {
		socket, inside, path = filepath.Join(attr.Chroot, "socket"), "/socket", "/service"
	}
	cmd := exec.Command(exe, append([]string{inside}, args...)...)
	cmd.Path, cmd.Stderr, cmd.SysProcAttr = path, os.Stderr, attr
	if attr.Chroot != "" {
		cmd.Dir = "/"
	}
	attr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		t.Skipf("starting a service: %v", err)
	}
	var once sync.Once
	kill := func() {
		once.Do(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
	t.Cleanup(kill)
	return &running{cmd.Process.Pid, kill, load(t, socket)}
}

// load puts requests to a service until the test ends, two at a time, and counts
// the answers.
func load(t testing.TB, socket string) *atomic.Int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	answered := new(atomic.Int64)
	up := make(chan struct{})
	var first sync.Once
	var loops sync.WaitGroup
	for range 2 {
		loops.Go(func() {
			for ctx.Err() == nil {
				if ask(ctx, client) != nil {
					time.Sleep(time.Millisecond) // not up yet, or gone
					continue
				}
				answered.Add(1)
				first.Do(func() { close(up) })
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		loops.Wait()
		client.CloseIdleConnections()
	})
	select {
	case <-up:
	case <-time.After(30 * time.Second):
		t.Fatal("the service answers nothing")
	}
	return answered
}

func ask(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service/", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// begin starts a sampler, or skips the test where the system has none.
func begin(t testing.TB, o bpf.Options) *bpf.Sampler {
	t.Helper()
	s, err := bpf.Start(o)
	return started(t, s, err)
}

func started(t testing.TB, s *bpf.Sampler, err error) *bpf.Sampler {
	t.Helper()
	if errors.Is(err, cost.ErrNotSupported) {
		t.Skipf("no sampling here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// finish samples for a while and returns the profile.
func finish(t *testing.T, s *bpf.Sampler, d time.Duration) *bpf.Profile {
	t.Helper()
	time.Sleep(d)
	p, err := s.Stop()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// enough samples a service for longer and longer, as the machine may be busy, until
// a profile has enough stacks of burn to judge by, and returns it.
func enough(t *testing.T, o bpf.Options, start func(bpf.Options) (*bpf.Sampler, error)) *bpf.Profile {
	t.Helper()
	for d := time.Second; ; d *= 2 {
		s, err := start(o)
		p := finish(t, started(t, s, err), d)
		if seen, _ := spun(p); seen >= 100 {
			return p
		}
		if d > 16*time.Second {
			t.Fatalf("burn was hardly seen in %s: %d samples of %s of CPU", d, p.Seen, p.CPU)
		}
	}
}

// spun returns how often burn was seen innermost, and how often it was charged to
// the middleware that calls it.
func spun(p *bpf.Profile) (seen, charged float64) {
	for _, s := range p.Stacks {
		for _, f := range s.Frames {
			if strings.HasPrefix(f.Func, "[kernel]") {
				continue
			}
			if f.Func != "main.burn" {
				break
			}
			seen += s.Count
			if owner, _ := cost.Charge(s.Frames); strings.HasSuffix(owner.Name, ".Spin") {
				charged += s.Count
			}
			break
		}
	}
	return seen, charged
}
