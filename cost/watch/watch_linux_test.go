//go:build linux && amd64

package watch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/watch"
	"github.com/tarehq/tare/cost/watch/total"
)

// build builds the program of testdata/service.
func build(t *testing.T, version string) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "watched")
	cmd := exec.Command("go", "build", "-o", exe, "-ldflags=-X main.version="+version, "main.go")
	cmd.Dir = "testdata/service"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return exe
}

// run runs a program until the test ends, or it is killed.
func run(t *testing.T, exe, service string) (pid int, kill func()) {
	t.Helper()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "OTEL_SERVICE_NAME="+service)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return cmd.Process.Pid, kill
}

// start begins to watch, or skips the test where processes cannot be sampled.
func start(t *testing.T, o watch.Options) *watch.Watcher {
	t.Helper()
	w, err := watch.Start(t.Context(), o)
	if errors.Is(err, cost.ErrNotSupported) {
		t.Skipf("SKIPPED: no sampling here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// await watches until a service is as wanted, or for too long.
func await(t *testing.T, w *watch.Watcher, totals *total.Totals, name string, as func(*watch.Service) bool) *watch.Service {
	t.Helper()
	for range 20 {
		i, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		totals.Add(i)
		var s *watch.Service
		if k := slices.IndexFunc(i.Services, func(s watch.Service) bool { return s.Name == name }); k >= 0 {
			s = &i.Services[k]
		}
		if as(s) {
			return s
		}
	}
	t.Fatalf("%s was never as wanted", name)
	return nil
}

// TestReplaced watches all Go programs while a service comes, is replaced by another build,
// begins anew, and goes.
func TestReplaced(t *testing.T) {
	name := fmt.Sprintf("watched-%d", os.Getpid())
	a, b := build(t, "a"), build(t, "b")
	w := start(t, watch.Options{AllGo: true, Every: time.Second, Hz: 99, NoCount: true, Budget: 1})
	var totals total.Totals
	await(t, w, &totals, name, func(s *watch.Service) bool { return s == nil })
	first, kill := run(t, a, name)
	s := await(t, w, &totals, name, func(s *watch.Service) bool {
		return s != nil && owner(s, "auth") != nil && owner(s, "auth").Kind == "middleware" && owner(s, "orders") != nil
	})
	old := s.Builds[0]
	if len(s.Builds) != 1 || !slices.Equal(old.PIDs, []int{first}) || old.ID == "" || !strings.HasPrefix(old.Go, "go1.") || s.CPU == 0 {
		t.Errorf("got %+v, want one process of one build", s)
	}
	kill()
	second, kill := run(t, b, name)
	s = await(t, w, &totals, name, func(s *watch.Service) bool { return s != nil && len(s.Builds) == 1 && s.Builds[0].ID != old.ID })
	if !slices.Equal(s.Builds[0].PIDs, []int{second}) {
		t.Errorf("got processes %v, want %d", s.Builds[0].PIDs, second)
	}
	now := s.Builds[0].ID
	kill()
	third, kill := run(t, b, name)
	s = await(t, w, &totals, name, func(s *watch.Service) bool {
		return s != nil && len(s.Builds) == 1 && slices.Equal(s.Builds[0].PIDs, []int{third})
	})
	if s.Builds[0].ID != now {
		t.Errorf("the same build has the ID %q, and then %q", now, s.Builds[0].ID)
	}
	kill()
	await(t, w, &totals, name, func(s *watch.Service) bool { return s == nil })
	for _, all := range totals.All() {
		if all.Service != name {
			continue
		}
		var sum float64
		for _, r := range all.Rows {
			sum += r.CPU
		}
		if all.CPU <= 0 || sum < 0.98*all.CPU || sum > 1.02*all.CPU || all.Processes != 0 {
			t.Errorf("got %.3f s in rows, %.3f s in all, %d processes, want the same, and none", sum, all.CPU, all.Processes)
		}
		return
	}
	t.Error("the totals have forgotten a service that has just gone")
}

// owner is one of a service's owners, by a part of its name.
func owner(s *watch.Service, part string) *cost.Item {
	for k := range s.Bill.Items {
		if strings.Contains(s.Bill.Items[k].Owner, part) {
			return &s.Bill.Items[k]
		}
	}
	return nil
}

// TestCounted counts the requests of a process, and times its answers.
func TestCounted(t *testing.T) {
	pid, kill := run(t, build(t, "c"), "")
	w := start(t, watch.Options{PIDs: []int{pid}, Every: 2 * time.Second, Hz: 99, Answers: 1, Budget: 1})
	var totals total.Totals
	s := await(t, w, &totals, "watched", func(s *watch.Service) bool {
		return s != nil && s.Bill.Requests > 0 && len(s.Answers) > 0
	})
	var answers uint64
	for _, b := range s.Answers {
		answers += b.Count
	}
	// A window has some dozens of requests.
	if r := s.Bill.Requests; r < 0.3*float64(answers) || r > 3*float64(answers) {
		t.Errorf("got %.0f requests and %d answers, want about as many", r, answers)
	}
	if p50, p99 := watch.Quantile(s.Answers, 0.5), watch.Quantile(s.Answers, 0.99); p50 <= 0 || p99 < p50 {
		t.Errorf("got p50 %s and p99 %s", p50, p99)
	}
	if s.Bill.Per != "request" || s.Bill.CPU < 10e3 {
		t.Errorf("got %.0f ns a %s, want what burns 150,000 steps", s.Bill.CPU, s.Bill.Per)
	}
	kill()
	for range 3 { // the interval in which it ended, at the latest the next
		_, err := w.Next(t.Context())
		if errors.Is(err, bpf.ErrEnded) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the only process has ended: want to be told")
}

// TestGone refuses a process that is not there, and one that is no Go program.
func TestGone(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		sleep.Process.Kill()
		sleep.Wait()
	}()
	for _, pid := range []int{1 << 30, sleep.Process.Pid} {
		if w, err := watch.Start(context.Background(), watch.Options{PIDs: []int{pid}}); err == nil {
			w.Close()
			t.Errorf("process %d: no error", pid)
		}
	}
}

// TestPods watches the pods of a node whose kubelet left the logs of one, and finds a
// process in that one's control group by its namespace, workload and container.
func TestPods(t *testing.T) {
	const uid, id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "0411a2a82311fbc65b137ca550d5f7e6b6863bc734759be2f515b0b67062d49a"
	logs := t.TempDir()
	for _, dir := range []string{"pods/shop_web-7d4b9c6f5-x2x4z_" + uid + "/server", "containers/web-7d4b9c6f5-x2x4z_shop_server-" + id + ".log"} {
		if err := os.MkdirAll(filepath.Join(logs, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	exe := build(t, "p")
	inside, kill := run(t, exe, "by-another-name")
	run(t, exe, "in no pod")
	group := podGroup(t, uid, id, kill)
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(fmt.Sprint(inside)), 0o600); err != nil {
		t.Skipf("SKIPPED: no control group can be had: %v", err)
	}
	w := start(t, watch.Options{Pods: true, Logs: logs, Every: time.Second, Hz: 99, NoCount: true, Budget: 1})
	var totals total.Totals
	s := await(t, w, &totals, "shop/web/server", func(s *watch.Service) bool { return s != nil && s.CPU > 0 })
	if b := s.Builds; len(b) != 1 || !slices.Equal(b[0].PIDs, []int{inside}) || !slices.Equal(b[0].Pods, []string{"shop/web-7d4b9c6f5-x2x4z"}) {
		t.Errorf("got %+v, want one process of one pod", b)
	}
	for _, all := range totals.All() {
		if all.Service != "shop/web/server" {
			t.Errorf("%s is in no pod of this node, want it left alone", all.Service)
		}
	}
	if _, err := watch.Start(t.Context(), watch.Options{Pods: true, Logs: t.TempDir()}); err == nil {
		t.Error("a machine without a kubelet: no error")
	}
}

// podGroup makes the control group of a container of a pod, and removes it once what runs
// there was killed.
func podGroup(t *testing.T, uid, id string, kill func()) string {
	t.Helper()
	root := ""
	for _, dir := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			root = dir
			break
		}
	}
	top := filepath.Join(root, fmt.Sprintf("tare-test-%d", os.Getpid()))
	pod := filepath.Join(top, "pod"+uid)
	group := filepath.Join(pod, id)
	if err := os.MkdirAll(group, 0o755); root == "" || err != nil {
		t.Skipf("SKIPPED: no control group can be had: %v", err)
	}
	t.Cleanup(func() {
		kill()
		for _, dir := range []string{group, pod, top} {
			for tries := 0; os.Remove(dir) != nil && tries < 100; tries++ { // the kernel has yet to see it empty
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	return group
}
