//go:build linux

package serve_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// A server in a process of its own is this test binary started again with
// outpostEnv set: descriptors and memory are then the server's alone.
const outpostEnv = "TARE_SERVE_OUTPOST"

// orders say what the server in the other process is like.
type orders struct {
	Files    uint64 // of descriptors, if not 0
	MaxConns int
	Reuse    bool
	TLS      bool
	H2C      bool
	Standard bool // http.Server's
}

// TestOutpost is the server's process.
func TestOutpost(t *testing.T) {
	text := os.Getenv(outpostEnv)
	if text == "" {
		t.Skip("this is the server's process of other tests")
	}
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	if err := o.obey(); err != nil {
		t.Fatal(err)
	}
}

func (o orders) obey() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	release := make(chan struct{})
	s := &serve.Server{Handler: outpostHandler(release), Reuse: o.Reuse, Limits: serve.Limits{MaxConns: o.MaxConns}}
	if o.H2C {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
	}
	served, server := make(chan error, 1), o.server(s)
	go func() {
		if o.TLS {
			s.TLSConfig = loopbackTLS()
			served <- s.ServeTLS(l, "", "")
			return
		}
		served <- server.Serve(l)
	}()
	fmt.Println("outpost", l.Addr())
	in := bufio.NewScanner(os.Stdin)
	if o.Files > 0 { // last, so that all the process needs itself is open
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: o.Files, Max: o.Files}); err != nil {
			return err
		}
		fmt.Println("outpost limited")
	}
	for in.Scan() {
		switch in.Text() {
		case "release":
			close(release)
		case "goroutines":
			fmt.Println("outpost", runtime.NumGoroutine())
		case "settle":
			fmt.Println("outpost", settled())
		}
	}
	select {
	case err := <-served:
		return fmt.Errorf("Serve returned %v", err)
	default:
		return server.Close()
	}
}

// settled returns memory() once a collection changes it by less than 1 %, or the
// last of 50: what connections that are still being read leave behind while a
// collection runs is found by the next one.
func settled() uint64 {
	debug.FreeOSMemory()
	last := memory()
	for range 50 {
		time.Sleep(20 * time.Millisecond)
		debug.FreeOSMemory()
		now := memory()
		if max(now, last)-min(now, last) < last/100 {
			return now
		}
		last = now
	}
	return last
}

// memory returns the bytes of the heap's objects and of stacks.
func memory() (sum uint64) {
	read := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(read)
	for _, m := range read {
		sum += m.Value.Uint64()
	}
	return sum
}

// outpostHandler answers "ok", to /hold only once release is closed, to /big
// with more than a connection holds, and to /body once it has read the body.
func outpostHandler(release <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hold":
			<-release
		case "/body":
			io.Copy(io.Discard, r.Body)
		case "/big":
			piece := make([]byte, 1<<10)
			for range 64 << 10 {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		}
		io.WriteString(w, "ok")
	})
}

// outpost is the other process as a test sees it.
type outpost struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	addr string
	log  record
}

// found starts a server in a process of its own, which ends with the test.
func found(t *testing.T, o orders) *outpost {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &outpost{t: t, cmd: exec.Command(os.Args[0], "-test.run=^TestOutpost$", "-test.timeout=300s")}
	p.cmd.Env = append(os.Environ(), outpostEnv+"="+string(text))
	p.cmd.Stderr = &p.log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.abandon)
	p.addr = p.hear()
	if o.Files > 0 {
		p.hear()
	}
	return p
}

// abandon has the process end and demands that its server was still serving.
func (p *outpost) abandon() {
	p.in.Close()
	rest := ""
	for p.out.Scan() {
		rest += p.out.Text() + "\n"
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the server's process: %v\n%s%s", err, rest, p.log.text())
	}
}

// hear returns the process's next word.
func (p *outpost) hear() string {
	p.t.Helper()
	for p.out.Scan() {
		if word, ok := strings.CutPrefix(p.out.Text(), "outpost "); ok {
			return word
		}
	}
	p.t.Fatalf("the server's process is silent: %v", p.out.Err())
	return ""
}

func (p *outpost) tell(order string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, order+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *outpost) goroutines() int {
	p.t.Helper()
	p.tell("goroutines")
	n, err := strconv.Atoi(p.hear())
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// memory returns the bytes of the process's heap and stacks after a collection.
func (p *outpost) memory() int {
	p.t.Helper()
	p.tell("settle")
	n, err := strconv.Atoi(p.hear())
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// resident returns the process's resident memory after a collection.
func (p *outpost) resident() int {
	p.t.Helper()
	p.memory()
	return p.status("VmRSS:")
}

// status returns the bytes of a line of /proc/PID/status.
func (p *outpost) status(line string) int {
	p.t.Helper()
	return statusOf(p.t, strconv.Itoa(p.cmd.Process.Pid), line)
}

func statusOf(t *testing.T, pid, line string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), line)
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// descriptors returns how many files and sockets the process has open.
func (p *outpost) descriptors() int { return descriptorsOf(p.t, strconv.Itoa(p.cmd.Process.Pid)) }

func descriptorsOf(t *testing.T, pid string) int {
	t.Helper()
	open, err := os.ReadDir("/proc/" + pid + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

func (p *outpost) dial() net.Conn { return call(p.t, p.addr) }

// call connects to addr.
func call(t testing.TB, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(2 * long))
	return nc
}
