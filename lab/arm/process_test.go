//go:build linux

package arm_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

func TestStartGivesWhatWasPromised(t *testing.T) {
	a := begin(t, "serves", arm.Program{
		Args: []string{"-listen=${TARE_ADDR}", "${TARE_HOST}", "${TARE_PORT}", "$TARE_ADDR"},
		Env:  []string{"COLOUR=blue", "WHERE=on ${TARE_PORT}"},
	}, arm.StartOptions{})
	host, port, _ := strings.Cut(a.Addr(), ":")
	for path, want := range map[string]string{
		"/args":                   "-listen=" + a.Addr() + " " + host + " " + port + " $TARE_ADDR",
		"/env?name=COLOUR":        "blue",
		"/env?name=WHERE":         "on " + port,
		"/env?name=TARE_ADDR":     a.Addr(),
		"/env?name=TARE_PORT":     port,
		"/env?name=TARE_CONTROL":  asks(t, a, "/env?name=TARE_DIR") + "/control",
		"/wd":                     asks(t, a, "/env?name=TARE_DIR"),
		"/env?name=NOT_SET":       "",
		"/env?name=" + roleVar:    "serves",
		"/env?name=TARE_FD":       "",
		"/env?name=GOMAXPROCS":    os.Getenv("GOMAXPROCS"),
		"/env?name=ARM_TEST_NONE": "",
	} {
		if got := asks(t, a, path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if want := "http://" + a.Addr(); a.URL() != want {
		t.Errorf("URL: got %q, want %q", a.URL(), want)
	}
}

func TestStartInDirectoryAtAddress(t *testing.T) {
	dir, err := os.MkdirTemp("", "wd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	first := begin(t, "serves", arm.Program{}, arm.StartOptions{})
	addr := first.Addr()
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := begin(t, "serves", arm.Program{Dir: "/"}, arm.StartOptions{Dir: dir, Addr: addr})
	if got := asks(t, a, "/wd"); got != dir || a.Addr() != addr {
		t.Errorf("got %s at %s, want %s at %s", got, a.Addr(), dir, addr)
	}
	b := begin(t, "serves", arm.Program{Dir: "/"}, arm.StartOptions{})
	if got := asks(t, b, "/wd"); got != "/" {
		t.Errorf("program's directory: got %s, want /", got)
	}
}

func TestStartRefuses(t *testing.T) {
	tests := []struct {
		p    arm.Program
		o    arm.StartOptions
		want string
	}{
		{arm.Program{Path: "/no/such/program"}, arm.StartOptions{}, "starting program: fork/exec /no/such/program: no such file"},
		{arm.Program{Path: os.Args[0], Sink: "drain"}, arm.StartOptions{}, `no sink is named "drain": there are discard, file and pipe`},
		{arm.Program{Path: os.Args[0]}, arm.StartOptions{CPUs: []int{1000}}, "pinning to CPUs [1000]"},
		{arm.Program{Path: os.Args[0]}, arm.StartOptions{Addr: "localhost"}, "missing port in address"},
	}
	for _, tt := range tests {
		if _, err := arm.Start(t.Context(), tt.p, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v, %+v: got %v, want an error that says %q", tt.p, tt.o, err, tt.want)
		}
	}
}

// What a user builds anew under the name of an arm's command, while a run goes on, is
// another program; the same bytes are not, whenever they were written.
func TestStartRefusesAnotherProgram(t *testing.T) {
	path := filepath.Join(tree(t, "server", "#!/bin/sh\nexec sleep 60\n"), "server")
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	write("#!/bin/sh\nexec sleep 60\n")
	p := build(t, &arm.Builder{}, study.Arm{Command: []string{path}})
	for _, tt := range []struct{ text, want string }{
		{"#!/bin/sh\nexec sleep 60\n", ""},
		{"#!/bin/sh\nexec sleep 61\n", "server is another program by now (build ID "},
		{"#!/bin/sh\nexec sleep 60\n", ""},
	} {
		write(tt.text)
		a, err := arm.Start(t.Context(), *p, arm.StartOptions{})
		if err == nil {
			err = a.Stop(t.Context())
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.text, err, tt.want)
		}
	}
}

// Where no control socket can be, no arm could be asked in any trial.
func TestStartRefusesLongPaths(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	_, err := arm.Start(t.Context(), arm.Program{Path: "/bin/true"}, arm.StartOptions{})
	if want := "set TMPDIR to a folder with a shorter one"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error that says %q", err, want)
	}
	if left, err := os.ReadDir(long); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestCPUs(t *testing.T) {
	var before, set, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !before.IsSet(cpu) {
		cpu++
	}
	a := begin(t, "serves", arm.Program{}, arm.StartOptions{CPUs: []int{cpu}})
	if err := unix.SchedGetaffinity(a.PID(), &set); err != nil {
		t.Fatal(err)
	}
	if set.Count() != 1 || !set.IsSet(cpu) {
		t.Errorf("CPUs of the arm: got %v, want %d alone", set, cpu)
	}
	if got := asks(t, a, "/gomaxprocs"); got != "1" {
		t.Errorf("GOMAXPROCS of an arm on one CPU: got %s, want 1", got)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("CPUs of this process: got %v, %v after the start, want %v", after, err, before)
	}
}

func TestSinks(t *testing.T) {
	for sink, want := range map[string]string{"": "/dev/null", "discard": "/dev/null", "file": "/stdout", "pipe": "pipe:", arm.SinkErrors: "pipe:"} {
		a := begin(t, "chatty", arm.Program{Sink: sink}, arm.StartOptions{})
		got := asks(t, a, "/stdout")
		if !strings.Contains(got, want) {
			t.Errorf("sink %q: standard output is %s, want %s", sink, got, want)
		}
		if sink == "file" {
			if fi, err := os.Stat(got); err != nil || fi.Size() != 1<<20 {
				t.Errorf("sink file: got %v, %v, want the 1 MiB that was written", fi, err)
			}
		}
		dir := asks(t, a, "/env?name=TARE_DIR")
		if err := a.Stop(t.Context()); err != nil {
			t.Errorf("sink %q: stopping: %v", sink, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("sink %q: %s after the stop: got %v, want it gone", sink, dir, err)
		}
	}
}

// A program that listens where TARE_ADDR says is asked there alone, by TLS if by nothing else:
// what else answers in its processes is not the arm.
func TestLocateWhereTold(t *testing.T) {
	a := begin(t, "serves", arm.Program{}, arm.StartOptions{})
	plain := errors.New("it answers with status 400")
	err := a.Locate(t.Context(), func(_ context.Context, base string) error {
		if base == "https://"+a.Addr() {
			return errors.New("no TLS either")
		}
		return plain
	})
	if err != plain {
		t.Errorf("a program that is not as asked: got %v, want %v", err, plain)
	}
	err = a.Locate(t.Context(), func(_ context.Context, base string) error {
		if base == "https://"+a.Addr() {
			return nil
		}
		return plain
	})
	if want := "https://" + a.Addr(); err != nil || a.URL() != want {
		t.Errorf("a program that speaks TLS: got %v, %s, want %s", err, a.URL(), want)
	}
}

// Where a program listens is found out, also on one of several ports, and in a child.
func TestLocate(t *testing.T) {
	anywhere := arm.Program{Service: study.Service{Listen: "any"}}
	ping := func(ctx context.Context, base string) error {
		body, err := get(ctx, base+"/ping")
		if err == nil && body != "pong" {
			err = fmt.Errorf("it answers %q", body)
		}
		return err
	}
	roles := []string{"serves", "any port", "several ports", "hands over"}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil { // else there is no IPv6 here
		l.Close()
		roles = append(roles, "IPv6 alone")
	}
	for _, role := range roles {
		t.Run(role, func(t *testing.T) {
			a := launch(t, role, anywhere, arm.StartOptions{})
			if _, err := a.Ready(t.Context(), func(ctx context.Context) error { return a.Locate(ctx, ping) }); err != nil {
				t.Fatal(err)
			}
			if got := asks(t, a, "/ping"); got != "pong" {
				t.Errorf("at %s it answers %q", a.Addr(), got)
			}
		})
	}
	a := begin(t, "serves", anywhere, arm.StartOptions{})
	err := a.Locate(t.Context(), func(ctx context.Context, base string) error {
		if strings.HasPrefix(base, "http:") {
			return errors.New("it answers with status 500")
		}
		return ping(ctx, base)
	})
	if want := "asking http://" + a.Addr() + ": it answers with status 500"; err == nil || err.Error() != want {
		t.Errorf("a program with errors alone: got %v, want %s", err, want)
	}
	b := begin(t, "serves", arm.Program{Service: study.Service{Listen: "1"}}, arm.StartOptions{})
	if err := b.Locate(t.Context(), ping); err == nil || !strings.Contains(err.Error(), "and not on port 1") {
		t.Errorf("another port: got %v, want an error that says so", err)
	}
}

// An arm that shares its port with another process would have some of its requests answered
// by that one.
func TestListeningShared(t *testing.T) {
	l, err := listenShared("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := launch(t, "shares", arm.Program{}, arm.StartOptions{Addr: l.Addr().String()})
	var got []string
	for deadline := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		got, err = a.Listening()
	}
	if want := l.Addr().String() + ": address already in use"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, %v, want an error with %q", got, err, want)
	}
}

// An interruption does not wait for a command before the start.
func TestBeforeInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := arm.Start(ctx, arm.Program{Path: os.Args[0], Service: study.Service{Before: "exec sleep 60"}}, arm.StartOptions{})
	if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 30*time.Second {
		t.Errorf("got %v after %v, want the start to end with its context", err, took)
	}
}

// A command before the start is expanded as arguments are.
func TestBefore(t *testing.T) {
	a := begin(t, "serves", arm.Program{Service: study.Service{Before: "echo '${TARE_PORT}' >'${TARE_DIR}/seed'"}}, arm.StartOptions{})
	_, port, _ := strings.Cut(a.Addr(), ":")
	if got, err := os.ReadFile(filepath.Join(asks(t, a, "/env?name=TARE_DIR"), "seed")); err != nil || string(got) != port+"\n" {
		t.Errorf("got %q, %v, want the port %s", got, err, port)
	}
}

func TestReadyFailsWhenTheArmDies(t *testing.T) {
	a := launch(t, "dies", arm.Program{}, arm.StartOptions{})
	_, err := a.Ready(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	want := "waiting for the first correct answer: the arm ended: exit status 3; it wrote:\nreading config.yaml: no such file"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	<-a.Exited()
	if err := a.Failure(nil); err == nil || !strings.Contains(err.Error(), "reading config.yaml") {
		t.Errorf("failure of an arm that died: got %v, want what it wrote", err)
	}
	if _, err := a.Usage(false); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("usage of an arm that died: got %v, want an error that says so", err)
	}
}

func TestReadyFailsInTime(t *testing.T) {
	a := launch(t, "deaf", arm.Program{}, arm.StartOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	probes := 0
	_, err := a.Ready(ctx, func(ctx context.Context) error {
		if probes++; probes == 1 {
			return errors.New("connection refused")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.HasPrefix(err.Error(), "no correct answer within") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v, want the time and the probe's last error", err)
	}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Ready(given, func(ctx context.Context) error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: got %v, want %v", err, context.Canceled)
	}
}

func TestReadyWaitsForACorrectAnswer(t *testing.T) {
	a := launch(t, "serves", arm.Program{}, arm.StartOptions{})
	wrong := 3
	startup, err := a.Ready(t.Context(), func(ctx context.Context) error {
		if _, err := get(ctx, a.URL()+"/ping"); err != nil {
			return err
		}
		if wrong--; wrong >= 0 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || wrong != -1 || startup <= 0 {
		t.Errorf("got %v, %v with %d wrong answers left, want a positive time after all of them", startup, err, wrong)
	}
}

func TestStopKillsWhatIgnoresIt(t *testing.T) {
	for _, role := range []string{"stubborn", "leaves"} {
		a := begin(t, role, arm.Program{}, arm.StartOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // no second of grace: the test would only wait for it
		if err := a.Stop(ctx); err != nil {
			t.Fatalf("%s: %v", role, err)
		}
		<-a.Exited()
		free(t, a.Addr())
		if err := a.Stop(ctx); err != nil {
			t.Errorf("%s: stopping again: %v", role, err)
		}
	}
}

func TestStopEndsChildren(t *testing.T) {
	for _, role := range []string{"forks", "sends away"} {
		a := begin(t, role, arm.Program{}, arm.StartOptions{})
		child := asks(t, a, "/child")
		if u, err := a.Usage(false); err != nil || u.Processes != 2 {
			t.Errorf("%s: usage: got %d processes, %v, want the arm and its child", role, u.Processes, err)
		}
		if err := a.Stop(t.Context()); err != nil {
			t.Fatalf("%s: %v", role, err)
		}
		gone(t, fmt.Sprint(a.PID()))
		gone(t, child)
		free(t, a.Addr())
	}
}

func TestStopAfterTheArmDied(t *testing.T) {
	a := begin(t, "forks", arm.Program{}, arm.StartOptions{})
	child := asks(t, a, "/child")
	get(t.Context(), a.URL()+"/exit")
	<-a.Exited()
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone(t, child)
}

// However tare ends, the arm and its children end with it.
func TestNothingSurvivesTheParent(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVar+"=parent")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var pid, child, addr, dir, wd string
		if _, err := fmt.Sscan(line, &pid, &child, &addr, &dir, &wd); err != nil {
			t.Fatalf("parent says %q: %v", line, err)
		}
		cmd.Process.Signal(how)
		cmd.Wait()
		gone(t, pid)
		gone(t, child)
		free(t, addr)
		for _, d := range []string{dir, wd} {
			if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%v: the arm's directory %s: got %v, want it gone", how, d, err)
			}
		}
	}
}

// So do a build and the compilers that it has started.
func TestNoBuildSurvivesTheParent(t *testing.T) {
	const slowGo = "#!/bin/sh\nsleep 60 &\necho $$ $! >\"$PIDS.new\"\nmv \"$PIDS.new\" \"$PIDS\"\nwait\n"
	dir := tree(t, "go.mod", "module example.com/mine\n\ngo 1.26\n", "main.go", prints("one"), "bin/go", slowGo)
	if err := os.Chmod(filepath.Join(dir, "bin/go"), 0o755); err != nil {
		t.Fatal(err)
	}
	pids, cache := filepath.Join(dir, "pids"), t.TempDir()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), roleVar+"=builder", "PIDS="+pids, "XDG_CACHE_HOME="+cache, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var line []byte
	for range 1000 {
		if line, _ = os.ReadFile(pids); len(line) > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	cmd.Process.Kill()
	cmd.Wait()
	var build, compiler string
	if _, err := fmt.Sscan(string(line), &build, &compiler); err != nil {
		t.Fatalf("no build has begun: %v; %s", err, out.String())
	}
	gone(t, build)
	gone(t, compiler)
	if left, err := filepath.Glob(filepath.Join(cache, "tare/bin/*/new-*")); err != nil || len(left) > 0 {
		t.Errorf("left of the build: %v, %v, want nothing", left, err)
	}
}

func TestURL(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	a, err := arm.Start(t.Context(), arm.Program{URL: s.URL}, arm.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a.URL() != s.URL || "http://"+a.Addr() != s.URL || a.PID() != 0 {
		t.Errorf("got %s, %s, process %d, want %s and no process", a.URL(), a.Addr(), a.PID(), s.URL)
	}
	if _, err := a.Ready(t.Context(), func(ctx context.Context) error { _, err := get(ctx, a.URL()); return err }); err != nil {
		t.Error(err)
	}
	_, uerr := a.Usage(true)
	_, serr := a.Sockets()
	for _, err := range []error{uerr, serr} {
		if !errors.Is(err, arm.ErrNotSupported) {
			t.Errorf("got %v, want it to wrap ErrNotSupported", err)
		}
	}
	if _, err := a.Metrics(t.Context()); !errors.Is(err, arm.ErrNoControl) {
		t.Errorf("metrics: got %v, want ErrNoControl", err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWait(t *testing.T) {
	for _, args := range [][]string{nil, {"one"}} {
		var out, errs strings.Builder
		a := launch(t, "counts", arm.Program{Args: args}, arm.StartOptions{Addr: "127.0.0.1:7", Stdout: &out, Stderr: &errs})
		e, err := a.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "127.0.0.1:7 0\n127.0.0.1:7 1\n127.0.0.1:7 2\n"; got != want {
			t.Errorf("standard output: got %q, want %q", got, want)
		}
		if got, want := errs.String(), "counted\n"; got != want {
			t.Errorf("standard error: got %q, want %q", got, want)
		}
		if failed := e.Err != nil; failed != (args != nil) || failed && !strings.Contains(e.Err.Error(), "exit status 1; it wrote:\ncounted") {
			t.Errorf("with arguments %q: got %v", args, e.Err)
		}
		if e.CPU < 50*time.Millisecond || e.Elapsed < 60*time.Millisecond || e.PeakRSS < 32<<20 {
			t.Errorf("got %+v, want at least 50 ms of CPU, 60 ms, 32 MiB", e)
		}
	}
	a := launch(t, "deaf", arm.Program{}, arm.StartOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := a.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up: got %v, want %v", err, context.DeadlineExceeded)
	}
}
