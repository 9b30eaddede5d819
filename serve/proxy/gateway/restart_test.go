//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A gateway in a process of its own is this test binary started again with these set.
const (
	roleVar     = "GATEWAY_TEST_ROLE"
	filesVar    = "GATEWAY_TEST_FILES"    // descriptors that it may have
	patienceVar = "GATEWAY_TEST_PATIENCE" // handoverPatience
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) == "" {
		os.Exit(m.Run())
	}
	if most, err := strconv.ParseUint(os.Getenv(filesVar), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			panic(err)
		}
	}
	if d, err := time.ParseDuration(os.Getenv(patienceVar)); err == nil {
		handoverPatience = d
	}
	main()
	os.Exit(0)
}

// process is a gateway in a process of its own.
type process struct {
	cmd   *exec.Cmd
	ended chan error
	said  said
}

// said is the file of what a process and those that it starts write to standard error.
type said string

func (s said) String() string {
	text, err := os.ReadFile(string(s))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// begin starts a gateway, and waits until it serves.
func begin(t *testing.T, prepare func(*exec.Cmd), args ...string) *process {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "said")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := &process{cmd: exec.Command(os.Args[0], args...), ended: make(chan error, 1), said: said(file.Name())}
	p.cmd.Env = append(os.Environ(), roleVar+"=gateway", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = file
	if prepare != nil {
		prepare(p.cmd)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it has ended by then, if all went well
	p.serves(t, 1)
	return p
}

// serves waits until the process, or one that it has started, has begun to serve n times.
func (p *process) serves(t *testing.T, n int) {
	t.Helper()
	await(t, func() bool { return strings.Count(p.said.String(), "gateway: serving") == n }, func() string { return "a gateway does not serve:\n" + p.said.String() })
}

func await(t *testing.T, ok func() bool, otherwise func() string) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(otherwise())
}

// wait has the process end of itself, with status 0.
func (p *process) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("a gateway ended with %v:\n%s", err, p.said)
		}
	case <-time.After(60 * time.Second):
		t.Errorf("a gateway does not end:\n%s", p.said)
	}
}

// folder is one whose path is short enough for sockets.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tare")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// echo upgrades to a protocol that sends back what comes, and answers other requests.
func echo(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s", r.Method, body)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(c, rw)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// upgraded is a connection that speaks another protocol.
type upgraded struct {
	net.Conn
	in *bufio.Reader
}

func upgrade(t *testing.T, at string) *upgraded {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	fmt.Fprint(c, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade got %v, %v", res, err)
	}
	return &upgraded{c, in}
}

// say sends a line and returns what comes back.
func (c *upgraded) say(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	return c.in.ReadString('\n')
}

// client sends requests on one connection, and opens another one only when it is told to:
// nothing that fails is sent again.
type client struct {
	at   string
	tls  *tls.Config // nil: without TLS
	conn net.Conn
	in   *bufio.Reader
}

func (c *client) send(method, body string) error {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.at)
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if c.tls != nil {
			conn = tls.Client(conn, c.tls)
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	fmt.Fprintf(c.conn, "%s / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", method, len(body), body)
	res, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		return err
	}
	got, err := io.ReadAll(res.Body)
	res.Body.Close()
	if want := method + " " + body; err != nil || res.StatusCode != http.StatusOK || string(got) != want {
		return fmt.Errorf("got %s %q, %v; want %q", res.Status, got, err, want)
	}
	if res.Close {
		c.close()
	}
	return nil
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
	}
	c.conn = nil
}

// sender sends requests, whose answers must be method and body.
type sender interface {
	send(method, body string) error
	close()
}

// load sends requests of several clients all the time. What it returns ends it.
func load(at string) (end func() (sent int64, failed error)) {
	var all []sender
	for range 6 {
		all = append(all, &client{at: at})
	}
	return loadBy(all)
}

// loadBy is load by these senders, of which no two send the same.
func loadBy(senders []sender) (end func() (sent int64, failed error)) {
	var n atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	failures := make([]error, len(senders))
	for i, c := range senders {
		all.Go(func() {
			defer c.close()
			for k := 0; !over.Load(); k++ {
				if err := c.send([]string{"POST", "PUT", "PATCH"}[k%3], fmt.Sprintf("order %d of client %d", k, i)); err != nil {
					failures[i] = fmt.Errorf("request %d of client %d: %w", k, i, err)
					return
				}
				n.Add(1)
				time.Sleep(time.Duration(k%4) * time.Millisecond)
			}
		})
	}
	return func() (int64, error) {
		over.Store(true)
		all.Wait()
		return n.Load(), errors.Join(failures...)
	}
}

// TestRestarts has the gateway be replaced by another process 20 times under a load whose
// requests nobody repeats. None fails, and an upgraded connection lives through all of it.
func TestRestarts(t *testing.T) {
	const restarts = 20
	dir, at := folder(t), freeAddress(t)
	socket, path := filepath.Join(dir, "admin"), filepath.Join(dir, "proxy.json")
	text := strings.Replace(file(`[{"address": "`+at+`"}]`, echo(t)), "{", fmt.Sprintf(`{"admin": %q, "linger": "1m", `, socket), 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	first := begin(t, nil, path)
	ws := upgrade(t, at)
	end := load(at)
	begun := time.Now()
	all := []*process{first}
	for i := range restarts {
		time.Sleep(100 * time.Millisecond) // requests come between
		all = append(all, begin(t, nil, "-replace", socket, path))
		if i > 0 { // the first one has the upgraded connection
			all[i].wait(t)
		}
	}
	took := time.Since(begun)
	n, failed := end()
	if failed != nil || n == 0 {
		t.Fatalf("%d requests, failed: %v", n, failed)
	}
	t.Logf("%d restarts in %.1f s, %d requests, 0 failed", restarts, took.Seconds(), n)
	if got, err := ws.say("still there"); got != "still there\n" || err != nil {
		t.Errorf("the upgraded connection got %q, %v", got, err)
	}
	ws.Close()
	first.wait(t)
	if _, page := ask(t, socket, "GET", "/status"); !strings.Contains(page, `"upstreams"`) {
		t.Errorf("the last gateway's state is %q", page)
	}
	last := all[restarts]
	_ = last.cmd.Process.Signal(syscall.SIGTERM)
	last.wait(t)
	for _, path := range []string{socket, at} {
		network := "unix"
		if path == at {
			network = "tcp"
		}
		if c, err := net.Dial(network, path); err == nil {
			c.Close()
			t.Errorf("%s is listened on yet", path)
		}
	}
}

// TestRestartSignal has SIGUSR2 start the program again, by the path that it had, and the new
// process go on.
func TestRestartSignal(t *testing.T) {
	dir, at := folder(t), freeAddress(t)
	socket, path := filepath.Join(dir, "admin"), filepath.Join(dir, "proxy.json")
	text := strings.Replace(file(`[{"address": "`+at+`"}]`, echo(t)), "{", fmt.Sprintf(`{"admin": %q, `, socket), 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	first := begin(t, func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }, path)
	group := -first.cmd.Process.Pid
	t.Cleanup(func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	end := load(at)
	if err := os.WriteFile(path, []byte(strings.Replace(text, `"routes"`, `"roads"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(group, syscall.SIGUSR2)
	await(t, func() bool { return strings.Contains(first.said.String(), `no key "roads"`) }, func() string { return "no mistake is shown:\n" + first.said.String() })
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(first.cmd.Process.Pid, syscall.SIGUSR2)
	first.serves(t, 2)
	first.wait(t)
	if n, failed := end(); failed != nil || n == 0 {
		t.Errorf("%d requests, failed: %v", n, failed)
	}
	if status, page := ask(t, socket, "GET", "/status"); status != http.StatusOK {
		t.Errorf("the new gateway's state: got %d %q", status, page)
	}
	_ = syscall.Kill(group, syscall.SIGTERM)
	await(t, func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
		}
		return err != nil
	}, func() string { return "the new gateway does not end:\n" + first.said.String() })
}

// TestLinger has an upgraded connection end once the time for it is over.
func TestLinger(t *testing.T) {
	dir, at := folder(t), freeAddress(t)
	socket, path := filepath.Join(dir, "admin"), filepath.Join(dir, "proxy.json")
	text := strings.Replace(file(`[{"address": "`+at+`"}]`, echo(t)), "{", fmt.Sprintf(`{"admin": %q, "linger": "1s", `, socket), 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	first := begin(t, nil, path)
	ws := upgrade(t, at)
	next := begin(t, nil, "-replace", socket, path)
	if got, err := ws.say("still there"); got != "still there\n" || err != nil {
		t.Errorf("the upgraded connection got %q, %v", got, err)
	}
	first.wait(t)
	if got, err := ws.say("gone"); err == nil {
		t.Errorf("after its time the connection got %q", got)
	}
	_ = next.cmd.Process.Signal(syscall.SIGTERM)
	next.wait(t)
}

// TestReplaceFails has a gateway go on where the one that is to replace it has a file with a
// mistake, is not one, or finds nobody.
func TestReplaceFails(t *testing.T) {
	dir, at := folder(t), freeAddress(t)
	socket, path := filepath.Join(dir, "admin"), filepath.Join(dir, "proxy.json")
	text := strings.Replace(file(`[{"address": "`+at+`"}]`, echo(t)), "{", fmt.Sprintf(`{"admin": %q, `, socket), 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	first := begin(t, nil, path)
	for _, c := range []struct{ text, socket, want string }{
		{strings.Replace(text, `"routes"`, `"roads"`, 1), socket, `no key "roads"`},
		{strings.Replace(text, at, "203.0.113.1:80", 1), socket, "listen[0].address: listen tcp"},
		{text, socket + ".gone", "taking over from the gateway at " + socket + ".gone: dial unix"},
		{text, at, "taking over from the gateway at " + at},
	} {
		wrong := filepath.Join(dir, "wrong.json")
		if err := os.WriteFile(wrong, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-replace", c.socket, wrong)
		cmd.Env = append(os.Environ(), roleVar+"=gateway", "GORACE=atexit_sleep_ms=0")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("got %v, want %q:\n%s", err, c.want, out)
		}
		one := &client{at: at}
		if err := one.send("POST", "order"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		one.close()
	}
	if status, page := ask(t, socket, "POST", "/handover"); status != http.StatusBadRequest || !strings.Contains(page, "gateway -replace") {
		t.Errorf("a handover without an upgrade got %d %q", status, page)
	}
	_ = first.cmd.Process.Signal(syscall.SIGTERM)
	first.wait(t)
}

// TestActivated has the service manager keep the socket while the gateway is started anew:
// what comes meanwhile waits, and is answered.
func TestActivated(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	at := l.Addr().String()
	path := filepath.Join(folder(t), "proxy.json")
	if err := os.WriteFile(path, []byte(file(`[{"address": "`+at+`"}]`, echo(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	pass := func(cmd *exec.Cmd) {
		cmd.ExtraFiles = []*os.File{socket}
		cmd.Env = append(cmd.Env, "LISTEN_FDS=1")
	}
	for range 3 {
		p := begin(t, pass, path)
		waiting := make(chan error)
		one := &client{at: at}
		if err := one.send("POST", "order"); err != nil {
			t.Error(err)
		}
		one.close()
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		p.wait(t)
		go func() { waiting <- one.send("POST", "an order that waits") }()
		p = begin(t, pass, path)
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		one.close()
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		p.wait(t)
	}
	p := begin(t, func(cmd *exec.Cmd) {
		pass(cmd)
		cmd.Env = append(cmd.Env, "LISTEN_PID=1") // they are another process's
		other := strings.Replace(file(`[{"address": "`+freeAddress(t)+`"}]`, at), "{", `{"admin": "none", `, 1)
		if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
	}, path)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.wait(t)
}

// TestListensOn is the table of which socket is that of an address in a file.
func TestListensOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	port, allPort := l.Addr().(*net.TCPAddr).Port, all.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		l       net.Listener
		address string
		want    bool
	}{
		{l, fmt.Sprintf("127.0.0.1:%d", port), true},
		{l, fmt.Sprintf("127.0.0.1:%d", port+1), false},
		{l, fmt.Sprintf(":%d", port), false},
		{l, fmt.Sprintf("127.0.0.2:%d", port), false},
		{all, fmt.Sprintf(":%d", allPort), true},
		{all, fmt.Sprintf("0.0.0.0:%d", allPort), true},
		{all, fmt.Sprintf("127.0.0.1:%d", allPort), false},
		{l, "nowhere", false},
	} {
		if got := listensOn(c.l, "tcp", c.address); got != c.want {
			t.Errorf("%s for %q: got %t", c.l.Addr(), c.address, got)
		}
	}
}
