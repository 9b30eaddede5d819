package arm_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/internal/sockets"
)

// The test binary is the arm, too: it is started again with this set.
const roleVar = "ARM_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "handler":
		arm.Main(arm.Options{
			Handler: handler(),
			Facts:   func() map[string]string { return map[string]string{"colour": "blue"} },
			Metrics: func() map[string]float64 { return map[string]float64{"pool/takes": 7} },
		})
	case "loop":
		arm.Main(arm.Options{
			Serve: (&http.Server{Handler: handler()}).Serve,
			Loop: func(q arm.LoopRequest) func() arm.Answer {
				body := []byte(q.Target)
				return func() arm.Answer { return arm.Answer{Status: 201, Body: body} }
			},
		})
	case "mute":
		arm.Main(arm.Options{Serve: (&http.Server{Handler: handler()}).Serve})
	}
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "pong") })
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.PathValue("id")) })
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%s %s %d ", r.Host, r.Header.Get("X-Colour"), r.ContentLength)
		io.Copy(w, r.Body)
	})
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("no") })
	mux.HandleFunc("GET /sleep", func(http.ResponseWriter, *http.Request) { time.Sleep(2 * time.Millisecond) })
	mux.HandleFunc("GET /allocate", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 4096)) })
	root := http.NewServeMux()
	root.Handle("/", mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/noop" {
			root.ServeHTTP(w, r)
		}
	})
}

type process struct {
	cmd     *exec.Cmd
	addr    string
	control string
}

// start runs the test binary as an arm and waits until it answers.
func start(t *testing.T, role string, env ...string) *process {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p := &process{cmd: exec.Command(os.Args[0]), addr: l.Addr().String(), control: sockets.Path(t)}
	p.cmd.Env = append(os.Environ(), append([]string{roleVar + "=" + role, "TARE_ADDR=" + p.addr, "TARE_CONTROL=" + p.control}, env...)...)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	p.ready(t)
	return p
}

func (p *process) ready(t *testing.T) {
	t.Helper()
	for range 1000 {
		res, err := http.Get("http://" + p.addr + "/ping")
		if err == nil {
			res.Body.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("arm does not answer")
}

// ask sends lines on one connection and returns the replies, and the raw bytes
// that followed each.
func (p *process) ask(t *testing.T, lines ...string) (replies []map[string]any, raws []string) {
	t.Helper()
	c, err := net.Dial("unix", p.control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for _, line := range lines {
		if _, err := io.WriteString(c, line+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("asking %.100s: %v", line, err)
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(answer), &m); err != nil {
			t.Fatalf("asking %.100s: got %.100q: %v", line, answer, err)
		}
		n, _ := m["bytes"].(float64)
		raw := make([]byte, int(n))
		if _, err := io.ReadFull(r, raw); err != nil {
			t.Fatal(err)
		}
		replies, raws = append(replies, m), append(raws, string(raw))
	}
	return replies, raws
}

func TestServesWhereToldAndEndsOnSIGTERM(t *testing.T) {
	p := start(t, "handler")
	res, err := http.Get("http://" + p.addr + "/users/7")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); string(body) != "7" {
		t.Errorf("GET /users/7: got %q, want %q", body, "7")
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: got %v, want exit status 0", err)
	}
	if _, err := os.Stat(p.control); !os.IsNotExist(err) {
		t.Errorf("control socket after the end: got %v, want it gone", err)
	}
}

func TestInheritsListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=handler", "TARE_FD=3")
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	f.Close()
	p := &process{addr: l.Addr().String()}
	l.Close()
	p.ready(t)
}

func TestRefusesToStart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for env, want := range map[string]string{
		"TARE_ADDR=" + l.Addr().String(): "address already in use",
		"TARE_FD=4":                      `TARE_FD is "4": only 3 is known`,
		"TARE_CONTROL=/nowhere/c":        "listening on the control socket",
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVar+"=handler", env)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: got %v and %q, want a failure that says %q", env, err, out, want)
		}
	}
}

func TestControlAnswers(t *testing.T) {
	p := start(t, "handler")
	replies, raws := p.ask(t,
		`{"do":"metrics"}`, `{"do":"facts"}`, `{"do":"gc"}`, `{"do":"metrics"}`,
		`{"do":"heap"}`, `{"do":"goroutines"}`, `{"do":"cpu","for_ns":1000000,"rate":250}`, `{"do":"trace","for_ns":1000000}`)
	before, after := replies[0]["metrics"].(map[string]any), replies[3]["metrics"].(map[string]any)
	for _, name := range []string{"/gc/heap/allocs:bytes", "/sched/goroutines:goroutines", "/sched/pauses/total/gc:seconds:p99", "/sched/latencies:seconds:max"} {
		if _, ok := before[name].(float64); !ok {
			t.Errorf("metrics: %s is %v, want a number", name, before[name])
		}
	}
	if got := before["pool/takes"]; got != 7.0 {
		t.Errorf("metrics: pool/takes is %v, want the arm's own 7", got)
	}
	const forced = "/gc/cycles/forced:gc-cycles"
	if got := after[forced].(float64) - before[forced].(float64); got != 2 {
		t.Errorf("forced GC cycles after asking: got %v, want 2", got)
	}
	if facts := replies[1]["facts"].(map[string]any); facts["colour"] != "blue" || facts["go"] == nil || facts["GOMAXPROCS"] == nil {
		t.Errorf("facts: got %v, want the arm's own, go and GOMAXPROCS", facts)
	}
	for i, magic := range []string{4: "\x1f\x8b", 5: "\x1f\x8b", 6: "\x1f\x8b", 7: "go 1."} {
		if !strings.HasPrefix(raws[i], magic) {
			t.Errorf("profile %d: got %d bytes beginning %.10q, want them to begin %q", i, len(raws[i]), raws[i], magic)
		}
	}
}

func TestControlRefuses(t *testing.T) {
	p := start(t, "handler")
	tests := map[string]string{
		`{"do":"dance"}`:                     `unknown question "dance"`,
		`{"do":`:                             "reading the question",
		`{"do":"cpu"}`:                       "for_ns is 0",
		`{"do":"cpu","for_ns":1,"rate":501}`: "rate is 501: want 0 for the usual one, or at most 500",
		`{"do":"loop","for_ns":60000000001,"requests":[{"target":"/"}]}`: "at most 60000000000",
		`{"do":"loop","for_ns":1000}`:                                    "no requests",
		`{"do":"loop","for_ns":1000,"requests":[{"target":"/panic"}]}`:   "answering GET /panic: panic: no",
		`{"do":"loop","for_ns":1000,"requests":[{"target":"::"}]}`:       `answering GET ::: panic: parse "::"`,
		strings.Repeat("x", 1<<20+1):                                     "question longer than 1048576 bytes",
	}
	for line, want := range tests {
		replies, _ := p.ask(t, line)
		if got, _ := replies[0]["error"].(string); !strings.Contains(got, want) {
			t.Errorf("asking %.100s: got error %q, want %q", line, got, want)
		}
	}
	replies, _ := start(t, "mute").ask(t, `{"do":"loop","for_ns":1000,"requests":[{"target":"/"}]}`)
	if got := replies[0]["error"]; got != "this arm has no in-process loop" {
		t.Errorf("loop without a handler: got error %v", got)
	}
}
