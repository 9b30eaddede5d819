//go:build unix

package arm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// The test binary plays the programs that the tests start: with this variable
// set it is one of them.
const roleVar = "ARM_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); role {
	case "":
		goleak.VerifyTestMain(m)
	case "parent":
		parent()
	case "builder":
		_, err := new(arm.Builder).Build(context.Background(), study.Arm{Name: "slow", Go: os.Args[1]})
		fmt.Println(err)
	case "dies":
		fmt.Fprintln(os.Stderr, "reading config.yaml: no such file")
		os.Exit(3)
	case "counts":
		for i := range 3 {
			fmt.Println(os.Getenv("TARE_ADDR"), i)
			time.Sleep(20 * time.Millisecond) // long enough for its memory to be read
		}
		spend := make([]byte, 32<<20)
		for begun := own(); own() < begun+50*time.Millisecond; {
			spend[len(spend)-1]++
			for i := 0; i < len(spend); i += 4096 {
				spend[i]++
			}
		}
		fmt.Fprintln(os.Stderr, "counted")
		os.Exit(len(os.Args) - 1)
	case "deaf":
		time.Sleep(time.Minute)
	case "hands over": // to a child, which serves
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleVar+"=any port")
		fmt.Fprintln(os.Stderr, child.Run())
		os.Exit(1)
	default:
		serve(role)
	}
}

// serve is an HTTP server that answers questions about itself.
func serve(role string) {
	switch role {
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "leaves": // its group, as timeout(1) does
		signal.Ignore(syscall.SIGTERM)
		if err := syscall.Setpgid(0, 0); err != nil {
			panic(err)
		}
	case "forks", "sends away":
		child := exec.Command("sleep", "60")
		child.SysProcAttr = &syscall.SysProcAttr{Setpgid: role == "sends away"}
		if err := child.Start(); err != nil {
			panic(err)
		}
		http.HandleFunc("/child", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, child.Process.Pid) })
	case "chatty":
		line := strings.Repeat("x", 1023) + "\n"
		for range 1024 { // far more than a pipe holds
			fmt.Print(line)
		}
	case "several ports":
		otherPorts()
	}
	http.HandleFunc("/ping", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "pong") })
	http.HandleFunc("/env", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, os.Getenv(r.FormValue("name"))) })
	http.HandleFunc("/args", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Join(os.Args[1:], " ")) })
	http.HandleFunc("/wd", func(w http.ResponseWriter, _ *http.Request) { wd, _ := os.Getwd(); io.WriteString(w, wd) })
	http.HandleFunc("/stdout", func(w http.ResponseWriter, _ *http.Request) {
		to, _ := os.Readlink("/proc/self/fd/1")
		io.WriteString(w, to)
	})
	http.HandleFunc("/gomaxprocs", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, runtime.GOMAXPROCS(0)) })
	http.HandleFunc("/exit", func(http.ResponseWriter, *http.Request) { os.Exit(7) })
	http.HandleFunc("/spin", func(w http.ResponseWriter, _ *http.Request) {
		for until := own() + 50*time.Millisecond; own() < until; {
		}
		fmt.Fprint(w, int64(own()))
	})
	http.HandleFunc("/touch", func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 32<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		fmt.Fprint(w, len(block))
	})
	http.HandleFunc("/free", func(http.ResponseWriter, *http.Request) { debug.FreeOSMemory() })
	s := &http.Server{}
	s.SetKeepAlivesEnabled(role != "closes")
	l, err := listen(role)
	if err == nil {
		err = s.Serve(l)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// listen listens where a role does.
func listen(role string) (net.Listener, error) {
	switch role {
	case "any port", "several ports":
		return net.Listen("tcp", "127.0.0.1:0")
	case "IPv6 alone":
		return net.Listen("tcp6", "[::]:0")
	case "shares":
		return listenShared(os.Getenv("TARE_ADDR"))
	}
	return net.Listen("tcp", os.Getenv("TARE_ADDR"))
}

// listenShared lets others that want that listen on the same address.
func listenShared(addr string) (net.Listener, error) {
	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		controlled := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(controlled, err)
	}}
	return sharing.Listen(context.Background(), "tcp", addr)
}

// otherPorts opens ports that have no answers: one is mute, one greets as mail servers do,
// one knows no path.
func otherPorts() {
	held := make(chan net.Conn, 1000) // so that none is closed
	accept := func(l net.Listener, greeting string) {
		for {
			c, err := l.Accept()
			if err != nil {
				panic(err)
			}
			io.WriteString(c, greeting)
			held <- c
		}
	}
	for _, serve := range []func(net.Listener){
		func(l net.Listener) { accept(l, "") },
		func(l net.Listener) { accept(l, "220 mail\r\n") },
		func(l net.Listener) { panic(http.Serve(l, http.NotFoundHandler())) },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		go serve(l)
	}
}

// own is the CPU that this process has used, by its own account.
func own() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// parent plays tare: it starts an arm that has a child, says where, and waits
// for its end.
func parent() {
	os.Setenv(roleVar, "forks")
	wd, err := os.MkdirTemp("", "parent-")
	var a *arm.Process
	if err == nil {
		a, err = arm.Start(context.Background(), arm.Program{Path: os.Args[0]}, arm.StartOptions{Dir: wd})
	}
	if err == nil {
		_, err = a.Ready(context.Background(), func(ctx context.Context) error { _, err := get(ctx, a.URL()+"/ping"); return err })
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	child, err1 := get(context.Background(), a.URL()+"/child")
	dir, err2 := get(context.Background(), a.URL()+"/env?name=TARE_DIR")
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(a.PID(), child, a.Addr(), dir, wd)
	time.Sleep(time.Minute)
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

// begin starts the role and waits until it answers.
func begin(t *testing.T, role string, p arm.Program, o arm.StartOptions) *arm.Process {
	t.Helper()
	a := launch(t, role, p, o)
	_, err := a.Ready(t.Context(), func(ctx context.Context) error { _, err := get(ctx, a.URL()+"/ping"); return err })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// launch starts the role and stops it after the test.
func launch(t *testing.T, role string, p arm.Program, o arm.StartOptions) *arm.Process {
	t.Helper()
	p.Path = os.Args[0]
	p.Env = append(p.Env, roleVar+"="+role)
	a, err := arm.Start(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return a
}

// asks returns what the arm answers at the path.
func asks(t *testing.T, a *arm.Process, path string) string {
	t.Helper()
	body, err := get(t.Context(), a.URL()+path)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return body
}

// gone waits until the process is no more, or a zombie that its parent has yet
// to wait for.
func gone(t *testing.T, pid string) {
	t.Helper()
	var state string
	for range 1000 {
		line, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return
		}
		if state = string(line[strings.LastIndex(string(line), ")")+2:]); state[0] == 'Z' {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %s is still there: %.20s", pid, state)
}

// free waits until the port is: a process may be a zombie while its other threads
// still end, and its files are open until then.
func free(t *testing.T, addr string) {
	t.Helper()
	var err error
	for range 1000 {
		var l net.Listener
		if l, err = net.Listen("tcp", addr); err == nil {
			l.Close()
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("the port is not free: %v", err)
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatalf("got %q, want a number", s)
	}
	return n
}
