// Package injected starts arms/injected, whose middlewares cost a known amount, for
// tests.
package injected

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a running arms/injected.
type Process struct {
	PID  int
	URL  string
	Stop func() // kills it; it ends with the test in any case
}

// built is the program, which is linked once in a test's process.
var built = sync.OnceValues(func() (program []byte, err error) {
	dir, err := os.MkdirTemp("", "injected")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "injected")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/tarehq/tare/arms/injected").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building arms/injected: %w\n%s", err, out)
	}
	return os.ReadFile(path)
})

// Build builds arms/injected, unless an earlier test has, and returns the path of the test's
// own copy of the program.
func Build(t testing.TB) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "injected")
	// A process that is forked meanwhile would hold the file open for writing, and nothing
	// can execute it then.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Start runs the program on one processor and waits until it answers.
func Start(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "TARE_ADDR="+addr, "GOMAXPROCS=1")
	cmd.Stderr = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	p := &Process{cmd.Process.Pid, "http://" + addr, func() {
		cmd.Process.Kill()
		<-ended
	}}
	t.Cleanup(p.Stop)
	for range 500 {
		res, err := http.Get(p.URL + "/")
		if err == nil {
			res.Body.Close()
			return p
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("arms/injected does not answer")
	return nil
}

// Spun returns the calls of the middleware that spins, and the CPU time in nanoseconds
// that it measured of itself.
func (p *Process) Spun(t testing.TB) (calls, ns float64) {
	t.Helper()
	res, err := http.Get(p.URL + "/truth")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var truth map[string]struct {
		Calls float64 `json:"calls"`
		CPU   float64 `json:"cpu_ns"`
	}
	if err := json.NewDecoder(res.Body).Decode(&truth); err != nil {
		t.Fatal(err)
	}
	return truth["spin"].Calls, truth["spin"].CPU
}

// Code returns the process's code as it is in memory: where there is a probe, there is
// a breakpoint. It skips the test if memory may not be read.
func (p *Process) Code(t testing.TB) []byte {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
	if err != nil {
		t.Fatal(err)
	}
	var from, to int64
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, " r-xp ") && strings.HasSuffix(line, "/injected\n") {
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				t.Fatalf("reading %q: %v", line, err)
			}
		}
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	code := make([]byte, to-from)
	if n, err := mem.ReadAt(code, from); err != nil || n == 0 {
		t.Fatalf("reading code: %d bytes, %v", n, err)
	}
	return code
}
