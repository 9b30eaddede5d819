//go:build linux && amd64

package bpf_test

import (
	"debug/elf"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/internal/cgroup"
)

const look = 2 * time.Second

// TestOwners samples a service from outside: what its middleware spins away in a
// function without a frame must be charged to it. Frame pointers alone, which is
// what others offer, must not pass.
func TestOwners(t *testing.T) {
	service := serve(t, build(t), &syscall.SysProcAttr{})
	o := bpf.Options{PID: service.pid, Hz: 999}
	p := enough(t, o, bpf.Start)
	if seen, charged := spun(p); charged < 0.98*seen {
		t.Errorf("%v of %v stacks of burn are charged to its middleware, want 98 %%", charged, seen)
	}
	bare := enough(t, o, bpf.StartUnmended)
	if seen, charged := spun(bare); charged > 0.2*seen {
		t.Errorf("by frame pointers alone %v of %v stacks of burn are charged to its middleware: the repair is tested by nothing", charged, seen)
	}
	names := map[string]bool{}
	kernel := false
	for _, s := range p.Stacks {
		owner, _ := cost.Charge(s.Frames)
		names[owner.Name] = true
		kernel = kernel || strings.HasPrefix(s.Frames[0].Func, "[kernel] ") && strings.Contains(s.Frames[len(s.Frames)-1].Func, "runtime.")
	}
	for _, want := range []string{"service.Spin", "service.Alloc", "net/http: read and parse"} {
		if !names[want] {
			t.Errorf("no cost is charged to %q, only to %v", want, names)
		}
	}
	if !kernel {
		t.Error("no stack goes from the kernel down to the program's own root")
	}
}

// TestAccount has the stacks add up to the CPU that the kernel counted for the
// process: where those of a timer come to less, the rest is charged to where threads
// stopped running; where they come to more they are scaled down.
func TestAccount(t *testing.T) {
	service := serve(t, build(t), &syscall.SysProcAttr{})
	p := enough(t, bpf.Options{PID: service.pid, Hz: 1999}, bpf.Start)
	sum, unseen := 0.0, 0.0
	for _, s := range p.Stacks {
		sum += s.Value
		if s.Frames[0].Func == bpf.Unseen && !slices.ContainsFunc(s.Frames, func(f cost.Frame) bool { return f.Func == cost.SystemMonitor }) {
			unseen += s.Value // the monitor's is known otherwise
		}
	}
	if off := sum/float64(p.CPU) - 1; math.Abs(off) > 1e-6 {
		t.Errorf("stacks add up to %.0f ns of %d: %g off", sum, p.CPU, off)
	}
	for _, s := range p.Stacks { // what switched threads has the rest, not nobody
		if s.Frames[0].Func == bpf.Unseen && (len(s.Frames) < 3 || s.Frames[1].Func == bpf.Unseen) {
			t.Errorf("%.0f ns that were not sampled are charged to %v", s.Value, names(s.Frames))
		}
	}
	if most := float64(p.CPU - p.Sampled); p.Sampled > 0 && (unseen > max(0, 1.5*most) || unseen == 0 && most > 0.1*float64(p.CPU)) {
		t.Errorf("%.0f ns are said to be unseen, want about %.0f", unseen, most)
	}
	if r := p.Sampled.Seconds() / p.CPU.Seconds(); p.Sampled > 0 && (r < 0.4 || r > 1.6) {
		t.Errorf("samples stand for %s of CPU where the kernel counted %s", p.Sampled, p.CPU)
	}
	if p.Lost > 0 || len(p.Processes) != 1 || p.Processes[0].PID != service.pid || p.Processes[0].CPU != p.CPU {
		t.Errorf("%d lost, processes %v", p.Lost, p.Processes)
	}
	t.Logf("%d samples stand for %s of CPU where the kernel counted %s; taking them took %s", p.Seen, p.Sampled, p.CPU, p.Watching)
}

// TestMonitor has the row of Go's system monitor be what the kernel counted for its thread,
// and the others the rest, in proportion.
func TestMonitor(t *testing.T) {
	spin, monitor := []cost.Frame{{Func: "main.spin"}}, []cost.Frame{{Func: "[kernel] do_nanosleep"}, {Func: cost.SystemMonitor}}
	of := func(frames []cost.Frame, v float64) cost.Stack { return cost.Stack{Frames: frames, Value: v} }
	for name, tc := range map[string]struct {
		monitor time.Duration
		stacks  []cost.Stack
		want    []float64
	}{
		"seen too little":  {20, []cost.Stack{of(spin, 60), of(monitor, 5), of(spin, 30), of(monitor, 5)}, []float64{160. / 3, 10, 80. / 3, 10}},
		"not seen":         {20, []cost.Stack{of(spin, 100)}, []float64{80, 20}},
		"not known":        {0, []cost.Stack{of(spin, 95), of(monitor, 5)}, []float64{95, 5}},
		"nothing else":     {120, []cost.Stack{of(monitor, 50)}, []float64{50}},
		"not Go's":         {60, []cost.Stack{of(spin, 98), of(monitor, 2)}, []float64{98, 2}},
		"more than all":    {120, []cost.Stack{of(spin, 50), of(monitor, 50)}, []float64{0, 100}},
		"nothing was seen": {100, nil, nil},
	} {
		got := bpf.Settle(100, tc.monitor, tc.stacks)
		same := slices.EqualFunc(got, tc.want, func(s cost.Stack, v float64) bool { return math.Abs(s.Value-v) < 1e-9 })
		if !same {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// TestContainer samples a stripped, position-independent service that has its own
// root, its own namespaces of processes, network and mounts, and its own control
// group, from outside and by that group.
func TestContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making namespaces needs root")
	}
	exe := build(t, "-buildmode=pie", "-ldflags=-s -w", "-trimpath")
	root := t.TempDir()
	furnish(t, root, exe)
	service := serve(t, exe, &syscall.SysProcAttr{
		Chroot:     root,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS,
	})
	group := controlGroup(t, service)
	id := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(group), "docker-"), ".scope")
	if dir, err := cgroup.Container(id[:len(id)-2]); err != nil || dir != group {
		t.Errorf("Container(%q) = %q, %v, want %q", id[:len(id)-2], dir, err, group)
	}
	for name, o := range map[string]bpf.Options{
		"by process": {PID: service.pid, Hz: 999},
		"by group":   {Cgroup: group, Hz: 999},
	} {
		t.Run(name, func(t *testing.T) {
			p := enough(t, o, bpf.Start)
			if seen, charged := spun(p); charged < 0.98*seen {
				t.Errorf("%v of %v stacks of burn are charged to its middleware, want 98 %%", charged, seen)
			}
			if len(p.Processes) != 1 || p.Processes[0].Name != "service" || !strings.HasPrefix(p.Processes[0].Go, "go1.") {
				t.Errorf("processes: %v, want the service alone", p.Processes)
			}
			for _, w := range p.Warnings {
				t.Logf("warning: %v", w)
			}
		})
	}
}

// furnish puts a program into a root, as /service, with the loader that it names.
func furnish(t *testing.T, root, exe string) {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string]string{"/service": exe}
	if s := f.Section(".interp"); s != nil {
		name, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		loader := strings.TrimRight(string(name), "\x00")
		files[loader] = loader
	}
	for to, from := range files {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Skipf("furnishing a root: %v", err)
		}
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// controlGroup puts a service into a group of its own.
func controlGroup(t *testing.T, service *running) string {
	t.Helper()
	for _, above := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		dir, err := os.MkdirTemp(above, "docker-7a9e*.scope") // as Docker would name it
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			service.kill() // a group with processes cannot be removed
			if err := syscall.Rmdir(dir); err != nil {
				t.Errorf("removing %s: %v", dir, err)
			}
		})
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(service.pid)), 0o600); err == nil {
			return dir
		}
	}
	t.Skip("no control group can be made here")
	return ""
}

// TestInsideNamespace samples from within a PID namespace of its own, where
// processes have other numbers than the kernel's.
func TestInsideNamespace(t *testing.T) {
	if exe := os.Getenv("TARE_SERVICE"); exe != "" {
		private := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, "")
		if err := errors.Join(private, syscall.Mount("proc", "/proc", "proc", 0, "")); err != nil {
			t.Skipf("mounting /proc: %v", err)
		}
		service := serve(t, exe, &syscall.SysProcAttr{})
		p := enough(t, bpf.Options{PID: service.pid, Hz: 999}, bpf.Start)
		if seen, charged := spun(p); charged < 0.98*seen || service.pid > 100 {
			t.Errorf("of process %d, %v of %v stacks of burn are charged to its middleware", service.pid, charged, seen)
		}
		inner := serve(t, exe, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID})
		if s, err := bpf.Start(bpf.Options{PID: inner.pid}); !errors.Is(err, cost.ErrNotSupported) {
			t.Errorf("of a process in a namespace inside this one: got %v, want ErrNotSupported, for nothing of it is seen", err)
			if err == nil {
				s.Stop()
			}
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("making namespaces needs root")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestInsideNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), "TARE_SERVICE="+build(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("inside: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("inside:\n%s", out)
	case !strings.Contains(string(out), "--- PASS: TestInsideNamespace"):
		t.Errorf("inside nothing was tested:\n%s", out)
	}
}

func TestProcessEnds(t *testing.T) {
	service := serve(t, build(t), &syscall.SysProcAttr{})
	s := begin(t, bpf.Options{PID: service.pid, Hz: 499})
	time.Sleep(look)
	service.kill()
	select {
	case <-s.Ended():
	case <-time.After(20 * time.Second):
		t.Error("the sampler does not notice that its process has ended")
	}
	p, err := s.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if seen, charged := spun(p); seen == 0 || charged < 0.9*seen {
		t.Errorf("%v of %v stacks of burn are charged to its middleware", charged, seen)
	}
	if len(p.Warnings) == 0 || !errors.Is(p.Warnings[len(p.Warnings)-1], bpf.ErrEnded) {
		t.Errorf("warnings: %v, want one that the process has ended", p.Warnings)
	}
	if _, err := bpf.Start(bpf.Options{PID: service.pid}); !errors.Is(err, bpf.ErrEnded) {
		t.Errorf("starting on a process that has ended: %v, want ErrEnded", err)
	}
}

// TestAnew has a process run its own program anew, which then lies elsewhere in
// memory: what is seen of it afterwards has names too, but for what the sampler saw
// before it noticed.
func TestAnew(t *testing.T) {
	service := serve(t, build(t, "-buildmode=pie"), &syscall.SysProcAttr{})
	s := begin(t, bpf.Options{PID: service.pid, Hz: 499})
	time.Sleep(look)
	if err := syscall.Kill(service.pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p := finish(t, s, 4*time.Second)
	var nameless float64
	for _, s := range p.Stacks {
		if owner, _ := cost.Charge(s.Frames); owner.Name == "[unknown]" {
			nameless += s.Count
		}
	}
	if nameless > float64(p.Seen)/3 {
		t.Errorf("%v of %v stacks are of functions without a name", nameless, p.Seen)
	}
}

// TestTwoSamplers has two watch one service; neither may disturb the other.
func TestTwoSamplers(t *testing.T) {
	service := serve(t, build(t), &syscall.SysProcAttr{})
	one := begin(t, bpf.Options{PID: service.pid, Hz: 499})
	two := begin(t, bpf.Options{PID: service.pid, Hz: 999})
	p, q := finish(t, one, look), finish(t, two, 0)
	for _, p := range []*bpf.Profile{p, q} {
		if seen, charged := spun(p); seen == 0 || charged < 0.9*seen {
			t.Errorf("%v of %v stacks of burn are charged to its middleware", charged, seen)
		}
	}
	if q.Seen < p.Seen {
		t.Errorf("at 999 Hz %d samples, at 499 Hz %d", q.Seen, p.Seen)
	}
}

func TestRefused(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		sleep.Process.Kill()
		sleep.Wait()
	}()
	_, err := bpf.Start(bpf.Options{PID: sleep.Process.Pid})
	if !errors.Is(err, cost.ErrNotSupported) {
		t.Errorf("a program in C: %v, want ErrNotSupported", err)
	}
	for _, o := range []bpf.Options{{}, {PID: -1}, {PID: 1, Cgroup: "/"}, {PID: 1, Hz: -1}, {PID: 1, Hz: bpf.MaxHz + 1}} {
		if s, err := bpf.Start(o); err == nil {
			s.Stop()
			t.Errorf("Start(%+v): no error", o)
		}
	}
	if _, err := bpf.Start(bpf.Options{Cgroup: t.TempDir()}); err == nil {
		t.Error("a directory that is no control group: no error")
	}
}

// TestUnprivileged asks as a user without rights.
func TestUnprivileged(t *testing.T) {
	if pid := os.Getenv("TARE_WATCH"); pid != "" {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		_, err = bpf.Start(bpf.Options{PID: n})
		if !errors.Is(err, cost.ErrNotSupported) {
			t.Fatalf("got %v, want ErrNotSupported", err)
		}
		for _, want := range []string{"root", "CAP_BPF", "CAP_PERFMON"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestUnprivileged$", "-test.v")
	cmd.Env = append(os.Environ(), "TARE_WATCH="+strconv.Itoa(os.Getpid()))
	cmd.Dir = "/"
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestUnprivileged") {
		t.Errorf("as nobody nothing was tested:\n%s", out)
	}
}

// A thread of the kernel looks like a process that is ending, and is none.
func TestKernelThread(t *testing.T) {
	const first = 2 // kthreadd, unless this is a namespace of its own
	if name, err := os.ReadFile("/proc/2/comm"); err != nil || string(name) != "kthreadd\n" {
		t.Skipf("process 2 is %q here (%v), not kthreadd", name, err)
	}
	if bpf.OfKernel(os.Getpid()) || !bpf.OfKernel(first) {
		t.Errorf("of the kernel are this test: %t, kthreadd: %t; want false, true", bpf.OfKernel(os.Getpid()), bpf.OfKernel(first))
	}
	if s, err := bpf.Start(bpf.Options{PID: first, Hz: 1}); err == nil || errors.Is(err, bpf.ErrEnded) {
		t.Errorf("sampling kthreadd: %v, want an error, and not that it has ended", err)
		if s != nil {
			s.Stop()
		}
	}
}
