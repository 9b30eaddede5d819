//go:build linux && amd64

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf"
)

// TestContainerFlameBySamplesNotUprobes draws a service that was prepared for
// nothing: stripped, in namespaces of processes, network and mounts and a control
// group of its own. What its middleware spins away is in the picture as the
// middleware's, by its name, and the kernel's part, too. It is what answers the
// claims P1.flame, whose uprobes it does without, and P3.container-flame.
func TestContainerFlameBySamplesNotUprobes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making namespaces needs root")
	}
	if s, err := bpf.Start(bpf.Options{PID: os.Getpid(), Hz: 1}); err != nil {
		t.Skip(err)
	} else if _, err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(t.TempDir(), "service")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe, ".")
	build.Dir, build.Env = "../../cost/bpf/testdata/service", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	pid := contain(t, exe)
	const owned = `data-o="service.Spin"><title>main.burn, of service.Spin: `
	dir := t.TempDir()
	for _, file := range []string{"flame.svg", "flame.html"} {
		path := filepath.Join(dir, file)
		drawn := ""
		for seconds := 1; seconds <= 8 && !strings.Contains(drawn, owned); seconds *= 2 { // the machine may be busy
			status, _, errs := tare(t, "flame", "--pid", strconv.Itoa(pid), "--hz", "999", "--for", strconv.Itoa(seconds)+"s", "-o", path)
			if status != 0 && seconds == 8 {
				t.Fatalf("tare flame: status %d: %s", status, errs)
			}
			content, err := os.ReadFile(path)
			if err != nil && status == 0 {
				t.Fatal(err)
			}
			drawn = string(content)
		}
		for _, want := range []string{owned, "[kernel] "} {
			if !strings.Contains(drawn, want) {
				t.Errorf("%s does not show %q", file, want)
			}
		}
	}
}

// contain starts a service on a Unix socket, contained as far as the kernel can
// without an image, and puts requests to it until the test ends.
func contain(t *testing.T, exe string) (pid int) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "socket")
	cmd := exec.Command(exe, socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("starting a service in namespaces of its own: %v", err)
	}
	stop := sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(stop)
	confine(t, cmd.Process.Pid, stop)
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	var loops sync.WaitGroup
	for range 2 {
		loops.Go(func() {
			for ctx.Err() == nil {
				res, err := client.Get("http://service/")
				if err != nil {
					time.Sleep(5 * time.Millisecond) // not up yet, or gone
					continue
				}
				_, _ = io.Copy(io.Discard, res.Body) // the next request shows it
				res.Body.Close()
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		loops.Wait()
		client.CloseIdleConnections()
	})
	return cmd.Process.Pid
}

// confine puts a process into a control group of its own, of version 2, or skips the
// test where none can be made.
func confine(t *testing.T, pid int, stop func()) {
	t.Helper()
	dir, err := "", errors.New("no control groups of version 2 are mounted")
	for _, above := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, missing := os.Stat(filepath.Join(above, "cgroup.controllers")); missing == nil {
			dir, err = os.MkdirTemp(above, "tare-test-")
			break
		}
	}
	if err != nil {
		t.Skipf("making a control group: %v", err)
	}
	t.Cleanup(func() {
		stop() // a group with processes cannot be removed
		if err := syscall.Rmdir(dir); err != nil {
			t.Errorf("removing %s: %v", dir, err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		t.Skipf("putting the service into a control group of its own: %v", err)
	}
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if own := "/" + filepath.Base(dir) + "\n"; err != nil || !strings.Contains(string(groups), own) {
		t.Fatalf("the service is in %q, %v, want it in %q", groups, err, own)
	}
}
