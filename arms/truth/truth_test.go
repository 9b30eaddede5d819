package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
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
)

// TestMain is the program itself when a test starts it.
func TestMain(m *testing.M) {
	if os.Getenv("TRUTH_IS_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a running truth.
type program struct {
	addr string
	cmd  *exec.Cmd
	out  bytes.Buffer
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{addr: free.Addr().String(), cmd: exec.Command(os.Args[0], args...)}
	free.Close()
	p.cmd.Env = append(os.Environ(), "TRUTH_IS_MAIN=1", "TARE_ADDR="+p.addr)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	for range 1000 {
		if c, err := net.Dial("tcp", p.addr); err == nil {
			c.Close()
			return p
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("nothing listens on %s", p.addr)
	return nil
}

// stop ends the program and returns what it printed.
func (p *program) stop(t *testing.T) string {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("the program ended: %v", err)
	}
	return p.out.String()
}

func (p *program) get(t *testing.T, path, seq string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+p.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if seq != "" {
		r.Header.Set("X-Tare-Seq", seq)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("GET %s: %s, %v", path, res.Status, err)
	}
	return string(body)
}

// row is a line of the log.
type row struct {
	arrival, work, departure time.Duration
	seq                      string
}

func readLog(t *testing.T, path string) []row {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(lines[0], ","), "arrival_unix_ns,work_ns,departure_unix_ns,seq"; got != want {
		t.Fatalf("the log begins with %q, want %q", got, want)
	}
	var rows []row
	for _, l := range lines[1:] {
		r := row{seq: l[3]}
		for i, to := range []*time.Duration{&r.arrival, &r.work, &r.departure} {
			ns, err := strconv.ParseInt(l[i], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			*to = time.Duration(ns)
		}
		rows = append(rows, r)
	}
	return rows
}

// TestLog loads the program and holds its log against what was sent: each
// request once, none answered before its time, none but within the test.
func TestLog(t *testing.T) {
	const workers, each = 8, 50
	path := filepath.Join(t.TempDir(), "log.csv")
	before := time.Now()
	p := start(t, "--log", path, "--work", "2ms", "--slow-share", "0.2", "--slow", "10ms", "--stall", "50ms", "--every", "200ms")
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				if got := p.get(t, "/", strconv.Itoa(w*each+i)); got != "ok\n" {
					t.Errorf("GET / = %q, want ok", got)
				}
			}
		})
	}
	wg.Wait()
	after := time.Now()
	if got := p.get(t, "/count", ""); got != fmt.Sprintln(workers*each) {
		t.Errorf("GET /count = %q, want %d", got, workers*each)
	}
	if got := p.stop(t); got != fmt.Sprintf("%d requests\n", workers*each) {
		t.Errorf("printed %q, want %d requests", got, workers*each)
	}
	rows := readLog(t, path)
	seen := map[string]bool{}
	slow, last := 0, time.Duration(0)
	for _, r := range rows {
		seen[r.seq] = true
		if r.work == 10*ms {
			slow++
		} else if r.work != 2*ms {
			t.Errorf("request %s was to be held %v, want 2ms or 10ms", r.seq, r.work)
		}
		if r.departure-r.arrival < r.work {
			t.Errorf("request %s was held %v, want at least %v", r.seq, r.departure-r.arrival, r.work)
		}
		if r.departure < last {
			t.Errorf("request %s left at %d, before the one above it", r.seq, r.departure)
		}
		last = r.departure
		if int64(r.arrival) < before.UnixNano() || int64(r.departure) > after.UnixNano() {
			t.Errorf("request %s came and went at %d and %d, outside the test's %d to %d", r.seq, r.arrival, r.departure, before.UnixNano(), after.UnixNano())
		}
	}
	if len(rows) != workers*each || len(seen) != workers*each {
		t.Errorf("the log has %d requests with %d numbers, want %d", len(rows), len(seen), workers*each)
	}
	if slow == 0 || slow == len(rows) {
		t.Errorf("%d of %d requests were slow", slow, len(rows))
	}
}

// TestLogIsKept kills the program once its log has been written.
func TestLogIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.csv")
	p := start(t, "--log", path)
	p.get(t, "/", "")
	for range 1000 {
		if rows := readLogIfAny(t, path); len(rows) == 1 {
			if rows[0].seq != "" {
				t.Errorf("a request without a number is logged with %q", rows[0].seq)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the log stays empty while the program runs")
}

func readLogIfAny(t *testing.T, path string) []row {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil
	}
	return readLog(t, path)
}

// TestProtocol speaks to the program as different clients do.
func TestProtocol(t *testing.T) {
	p := start(t)
	const okay = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: "
	for _, c := range []struct{ name, in, want string }{
		{"kept", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			okay + "keep-alive\r\n\r\nok\n" + okay + "close\r\n\r\nok\n"},
		{"old", "GET / HTTP/1.0\r\n\r\n", okay + "close\r\n\r\nok\n"},
		{"old but kept", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
			okay + "keep-alive\r\n\r\nok\n" + okay + "close\r\n\r\nok\n"},
		{"head", "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", okay + "close\r\n\r\n"},
		{"body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			okay + "keep-alive\r\n\r\nok\n" + okay + "close\r\n\r\nok\n"},
		{"no HTTP", "hello\r\n\r\n", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"count", "GET /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			strings.Replace(okay, "3", "2", 1) + "close\r\n\r\n8\n"},
	} {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(conn, c.in); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(bufio.NewReader(conn))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: sent %q, got %q, %v, want %q", c.name, c.in, got, err, c.want)
		}
		conn.Close()
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"--stall", "1s", "--every", "1s"}, {"--slow-share", "2"}, {"--nonsense"}} {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), "TRUTH_IS_MAIN=1", "TARE_ADDR=127.0.0.1:0")
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("truth %v: %v, exit status %d, want 2\n%s", args, err, cmd.ProcessState.ExitCode(), out)
		}
	}
}
