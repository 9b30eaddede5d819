//go:build linux && amd64

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
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

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/internal/sockets"
)

// TestContainerFlameBySamplesNotUprobes draws a service that was prepared for
// nothing: stripped, in namespaces of processes, network and mounts and a control
// group of its own. What its middleware spins away is in the picture as the
// middleware's, by its name, and the kernel's part, too. It is what answers the
// claims P1.flame, whose uprobes it does without, and P3.container-flame.
func TestContainerFlameBySamplesNotUprobes(t *testing.T) {
	pid, _ := contain(t)
	const owned = `data-o="service.Spin"><title>main.burn, of service.Spin: `
	dir := t.TempDir()
	for _, file := range []string{"flame.svg", "flame.html"} {
		path := filepath.Join(dir, file)
		drawn := longer(t, owned, func(seconds string) (string, error) {
			status, _, errs := tare(t, "flame", "--pid", pid, "--hz", "999", "--for", seconds, "-o", path)
			if status != 0 {
				return "", fmt.Errorf("tare flame: status %d: %s", status, errs)
			}
			content, err := os.ReadFile(path)
			return string(content), err
		})
		if !strings.Contains(drawn, "[kernel] ") {
			t.Errorf("%s does not show the kernel", file)
		}
	}
}

// What a contained service costs is told by its control group, as it is mounted and
// by its name, by the beginning of its container's ID, and by its process, which can
// also be compared with itself.
func TestContainerCost(t *testing.T) {
	pid, group := contain(t)
	name, id := filepath.Base(group), strings.TrimPrefix(filepath.Base(group), "docker-")[:12]
	const row, object = "  service.Spin", `"owner": "service.Spin"`
	for _, tt := range []struct {
		flags []string
		title string
		owner string // the text of diff has room for what is nearest to a difference alone
	}{
		{[]string{"cost", "--cgroup", group, "--hz", "999"}, "\ncost of group " + group, row},
		{[]string{"cost", "--cgroup", strings.TrimPrefix(group, "/sys/fs/cgroup/"), "--hz", "999"}, "\ncost of group ", row},
		{[]string{"cost", "--container", id, "--hz", "999"}, "\ncost of container " + id, row},
		{[]string{"cost", "--pid", pid, "--hz", "999"}, "\ncost of process " + pid, row},
		{[]string{"diff", "--repeat", "1", "pid:" + pid, "pid:" + pid}, "\nCPU per request", ""},
		{[]string{"diff", "--json", "--repeat", "1", "pid:" + pid, "pid:" + pid}, `"captures_a": 1`, object},
	} {
		told := longer(t, tt.owner, func(seconds string) (string, error) {
			status, out, errs := tare(t, append(tt.flags, "--for", seconds)...)
			if status != 0 {
				return "", fmt.Errorf("tare %s: status %d: %s", strings.Join(tt.flags, " "), status, errs)
			}
			return "\n" + out, nil
		})
		if !strings.Contains(told, tt.title) {
			t.Errorf("tare %s, want %q in it:\n%s", strings.Join(tt.flags, " "), strings.TrimSpace(tt.title), told)
		}
	}
	status, _, errs := tare(t, "cost", "--container", name)
	if status != cli.ExitFailed || !strings.Contains(errs, "it takes the ID, not the name") {
		t.Errorf("by the group's name for the ID: status %d: %s", status, errs)
	}
}

// longer watches for 1, 2, 4 and 8 s, until what it looks for is told: the machine
// may be busy.
func longer(t *testing.T, want string, watch func(seconds string) (string, error)) string {
	t.Helper()
	var told string
	var err error
	for seconds := 1; seconds <= 8; seconds *= 2 {
		if told, err = watch(strconv.Itoa(seconds) + "s"); err == nil && strings.Contains(told, want) {
			return told
		}
	}
	t.Fatalf("in 8 s: %v, want %q in it:\n%s", err, want, told)
	return ""
}

// contain starts a stripped service on a Unix socket, contained as far as the kernel
// can without an image, and puts requests to it until the test ends.
func contain(t *testing.T) (pid, group string) {
	t.Helper()
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
	socket := sockets.Path(t)
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
	group = confine(t, cmd.Process.Pid, stop)
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
	return strconv.Itoa(cmd.Process.Pid), group
}

// confine puts a process into a control group of its own, of version 2, that is named
// as Docker names a container's, or skips the test where none can be made.
func confine(t *testing.T, pid int, stop func()) (dir string) {
	t.Helper()
	id := sha256.Sum256([]byte(t.Name() + strconv.Itoa(pid)))
	dir, err := "", errors.New("no control groups of version 2 are mounted")
	for _, above := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, missing := os.Stat(filepath.Join(above, "cgroup.controllers")); missing == nil {
			dir = filepath.Join(above, fmt.Sprintf("docker-%x.scope", id))
			err = os.Mkdir(dir, 0o755)
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
	own := "/" + filepath.Base(dir) + "\n"
	if err != nil || !strings.Contains(string(groups), own) {
		t.Fatalf("the service is in %q, %v, want it in %q", groups, err, own)
	}
	return dir
}
