package rivals_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

// tablesOf names the tables that a rival is asked to serve: those that all can,
// and those of which a study asks it.
func tablesOf(rival string) []string {
	tables := []string{"ping", "ten", "github"}
	switch rival {
	case "gin", "echo", "httprouter", "bunrouter":
		tables = append(tables, "service:50", "static:20", "parameter:20", "wildcard:20")
	case "chi", "mux":
		tables = append(tables, "service:50", "static:20", "parameter:20", "wildcard:20", "regexp:20", "constrained:50")
	}
	return tables
}

// misses are paths that no table has a route for, near to some that have.
var misses = []string{
	"/nowhere", "/pin", "/pingg", "/users/1/nowhere", "/repos/a/b/nowhere", "/users/1/posts/2/3",
	"/orders/7/nothing", "/orders/nothing/42",
}

// programs is the folder of the built rivals, "" before a test has asked for one.
var programs string

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(programs)
	os.Exit(status)
}

// buildAll builds every rival, unless an earlier test has, and returns their folder.
func buildAll(t *testing.T) string {
	t.Helper()
	if programs != "" {
		return programs
	}
	dir, err := os.MkdirTemp("", "rivals")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir, "./...").CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		t.Fatalf("building the rivals: %v\n%s", err, out)
	}
	programs = dir
	return dir
}

// build builds every rival and returns the directory of the programs and the
// names of those whose source holds the text.
func build(t *testing.T, text string) (dir string, names []string) {
	t.Helper()
	dir = buildAll(t)
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("looking for mains: got %d, %v", len(mains), err)
	}
	for _, main := range mains {
		src, err := os.ReadFile(main)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(src), text) {
			names = append(names, filepath.Dir(main))
		}
	}
	if len(names) == 0 {
		t.Fatalf("no rival's source holds %q", text)
	}
	return dir, names
}

// rival is a running program.
type rival struct {
	cmd            *exec.Cmd
	url, control   string
	stdout, stderr bytes.Buffer // complete after stop
	client         *http.Client
}

// start runs a program and waits until it accepts.
func start(t *testing.T, program string, args ...string) *rival {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	inherited, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	dir, err := os.MkdirTemp("", "rival") // t.TempDir can be too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	r := &rival{cmd: exec.Command(program, args...), url: "http://" + addr, control: filepath.Join(dir, "control")}
	r.client = &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       10 * time.Second,
	}
	r.cmd.Env = append(os.Environ(), "TARE_FD=3", "TARE_CONTROL="+r.control)
	r.cmd.ExtraFiles = []*os.File{inherited}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop(); os.RemoveAll(dir) })
	for range 1000 {
		if c, err := net.Dial("unix", r.control); err == nil {
			c.Close()
			return r
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.stop()
	t.Fatalf("%s does not answer: %s", program, &r.stderr)
	return nil
}

// stop ends the program and collects its output.
func (r *rival) stop() {
	if r.cmd.ProcessState == nil {
		r.client.CloseIdleConnections()
		_ = r.cmd.Process.Kill() // it may have ended by itself
		_ = r.cmd.Wait()
	}
}

// answer is what is compared of an answer.
type answer struct {
	status            int
	contentType, body string
	length            string // the header Content-Length
}

// ask sends one request and reads the answer whole.
func (r *rival) ask(t *testing.T, method, path, body string) answer {
	t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header.Get("Content-Type"), string(got), res.Header.Get("Content-Length")}
}

// loopAnswer is an answer as the in-process loop reports it.
type loopAnswer struct {
	Status int
	SHA256 string
	Length int
}

func (a answer) inLoop() loopAnswer {
	sum := sha256.Sum256([]byte(a.body))
	return loopAnswer{a.status, hex.EncodeToString(sum[:]), len(a.body)}
}

// loop has the requests answered by the in-process loop.
func (r *rival) loop(t *testing.T, requests []arm.LoopRequest) []loopAnswer {
	t.Helper()
	c, err := net.Dial("unix", r.control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	question := map[string]any{"do": "loop", "for_ns": time.Millisecond, "requests": requests}
	if err := json.NewEncoder(c).Encode(question); err != nil {
		t.Fatal(err)
	}
	var reply struct {
		Loop  struct{ Answers []loopAnswer }
		Error string
	}
	if err := json.NewDecoder(bufio.NewReader(c)).Decode(&reply); err != nil || reply.Error != "" {
		t.Fatalf("running the loop: %v %s", err, reply.Error)
	}
	return reply.Loop.Answers
}

func TestRivalsAnswerAlike(t *testing.T) {
	dir, names := build(t, "routes.Flag()")
	for _, name := range names {
		for _, routing := range tablesOf(name) {
			t.Run(name+"/"+routing, func(t *testing.T) {
				var table routes.Table
				if err := table.Set(routing); err != nil {
					t.Fatal(err)
				}
				r := start(t, filepath.Join(dir, name), "--routes", routing)
				var requests []arm.LoopRequest
				var want []answer
				for _, route := range table {
					e := route.Example()
					requests = append(requests, arm.LoopRequest{Method: e.Method, Target: e.Path})
					want = append(want, answer{http.StatusOK, e.ContentType, e.Body, fmt.Sprint(len(e.Body))})
				}
				for _, path := range misses {
					requests = append(requests, arm.LoopRequest{Target: path})
					want = append(want, answer{http.StatusNotFound, routes.Text, routes.NotFound, fmt.Sprint(len(routes.NotFound))})
				}
				looped := r.loop(t, requests)
				for i, q := range requests {
					if got := r.ask(t, q.Method, q.Target, ""); got != want[i] {
						t.Errorf("%s %s: got %v, want %v", q.Method, q.Target, got, want[i])
					}
					if got := looped[i]; got != want[i].inLoop() {
						t.Errorf("%s %s in the loop: got %v, want %v", q.Method, q.Target, got, want[i].inLoop())
					}
				}
				r.stop()
				if r.stdout.Len() > 0 || r.stderr.Len() > 0 {
					t.Errorf("output: got %q and %q, want none", &r.stdout, &r.stderr)
				}
			})
		}
	}
	t.Run("gin/middleware", func(t *testing.T) { testGinMiddleware(t, filepath.Join(dir, "gin")) })
}

func testGinMiddleware(t *testing.T, gin string) {
	for middleware, lines := range map[string]int{"none": 0, "logger": 2, "recovery": 0, "logger+recovery": 2} {
		r := start(t, gin, "--middleware", middleware)
		want := answer{http.StatusOK, routes.JSON, routes.Pong, "18"}
		for range 2 {
			if got := r.ask(t, http.MethodGet, "/ping", ""); got != want {
				t.Errorf("middleware %s: got %v, want %v", middleware, got, want)
			}
		}
		r.stop()
		if got := strings.Count(r.stdout.String(), `"/ping"`); got != lines {
			t.Errorf("middleware %s: got %d lines, want %d: %q", middleware, got, lines, &r.stdout)
		}
	}
	out, err := exec.Command(gin, "--middleware", "cache").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `no middleware "cache"`) {
		t.Errorf("middleware cache: got %v, %q", err, out)
	}
}

func TestEveryMainNamesItsModule(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mains, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	required := strings.Fields(string(mod))
	for _, main := range mains {
		src, err := os.ReadFile(main)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(src), "\n")
		module, ok := strings.CutPrefix(first, "//tare:module ")
		if !ok || !slices.Contains(required, module) {
			t.Errorf("%s: first line is %q, want it to name a module that go.mod requires", main, first)
		}
	}
}
