//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
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

// writeFile writes a gateway's file and returns its path.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(folder(t), "proxy.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFewDescriptors has more clients than the process has descriptors. Each request is
// answered, by the service or in its place, and all are by the service once there are
// descriptors again.
func TestFewDescriptors(t *testing.T) {
	at := freeAddress(t)
	p := begin(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, filesVar+"=64") },
		writeFile(t, strings.Replace(file(`[{"address": "`+at+`"}]`, echo(t)), "{", `{"admin": "none", `, 1)))
	const clients = 150
	var served, refused atomic.Int64
	var all sync.WaitGroup
	open := make([]*client, clients)
	begun := time.Now()
	for i := range clients {
		all.Go(func() {
			for until := time.Now().Add(time.Second); time.Now().Before(until); {
				c := &client{at: at}
				err := c.send("GET", "")
				switch {
				case err == nil:
					served.Add(1)
				case strings.Contains(err.Error(), "got 502 "), strings.Contains(err.Error(), "got 503 "):
					refused.Add(1)
				}
				if err == nil && i%3 == 0 { // it stays, and does nothing
					open[i] = c
					return
				}
				c.close()
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("some request took %s", took)
	}
	for _, c := range open {
		if c != nil {
			c.close()
		}
	}
	t.Logf("%d answered, %d refused", served.Load(), refused.Load())
	if served.Load() == 0 {
		t.Errorf("no request was answered, %d refused:\n%s", refused.Load(), p.said)
	}
	await(t, func() bool { return (&client{at: at}).send("POST", "order") == nil }, func() string { return "nothing is answered any more:\n" + p.said.String() })
	for range 20 {
		c := &client{at: at}
		if err := c.send("POST", "order"); err != nil {
			t.Error(err)
		}
		c.close()
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.wait(t)
}

// TestIdleMemory has 10,000 connections that do nothing take little memory, and hold nobody
// else up.
func TestIdleMemory(t *testing.T) {
	const connections, kilobytes = 10_000, 20
	if raced {
		t.Skip("SKIPPED: the race detector takes memory of its own")
	}
	var most syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most); err != nil || most.Cur < connections+1000 {
		t.Skipf("SKIPPED: %d descriptors are too few (ulimit -n)", most.Cur)
	}
	at := freeAddress(t)
	p := begin(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "GODEBUG=madvdontneed=1") },
		writeFile(t, strings.Replace(file(`[{"address": "`+at+`"}]`, echo(t)), "{", `{"admin": "none", `, 1)))
	before := resident(t, p)
	idle := make([]*client, connections)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := i; k < connections; k += 8 {
				idle[k] = &client{at: at}
				if err := idle[k].send("GET", ""); err != nil {
					t.Errorf("connection %d: %v", k, err)
					return
				}
			}
		})
	}
	all.Wait()
	defer func() {
		for _, c := range idle {
			if c != nil {
				c.close()
			}
		}
	}()
	c := &client{at: at}
	defer c.close()
	begun := time.Now()
	for range 200 {
		if err := c.send("POST", "order"); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("200 requests beside them took %s", took)
	}
	for _, k := range []int{0, connections / 2, connections - 1} {
		if idle[k] == nil || idle[k].conn == nil {
			t.Errorf("connection %d was closed", k)
		} else if err := idle[k].send("POST", "order"); err != nil {
			t.Errorf("connection %d, after a while: %v", k, err)
		}
	}
	grown := (resident(t, p) - before) / connections
	t.Logf("%d idle connections take %.1f KiB each", connections, float64(grown)/1024)
	if grown > kilobytes<<10 {
		t.Errorf("a connection takes %d bytes, want at most %d KiB", grown, kilobytes)
	}
}

// resident returns how many bytes of memory a process has.
func resident(t *testing.T, p *process) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestNameGone has requests go on when the name server does not answer any more, and be
// answered 503 where it never did.
func TestNameGone(t *testing.T) {
	gone, err := net.ListenPacket("udp", "127.0.0.1:0") // asks are never answered
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	at := freeAddress(t)
	g := run(t)
	begun := time.Now()
	got := g.give(t, fmt.Sprintf(`{"grace": "1s", "listen": [{"address": %q}], "routes": [{"path": "/", "upstream": "x"}, {"path": "/gone", "upstream": "y"}],
		"upstreams": {"x": {"servers": [{"address": %q}]}, "y": {"dns": {"name": "gone.test.", "port": 80, "resolver": %q}}}}`, at, echo(t), gone.LocalAddr()))
	if len(got.Problems) > 0 || time.Since(begun) > 30*time.Second {
		t.Fatalf("got %+v after %s", got, time.Since(begun))
	}
	for path, want := range map[string]int{"/": http.StatusOK, "/gone": http.StatusServiceUnavailable} {
		res, err := http.Get("http://" + at + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, res.StatusCode, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	g.end(t)
}

// TestBusyAdmin has an admin socket on which another program listens stay there, also if that has
// many questions to answer, and one that a killed program has left give way.
func TestBusyAdmin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		c, err := net.Dial("unix", path)
		if err != nil {
			break // the queue is full
		}
		defer c.Close()
	}
	if l, err := listenAdmin(path); err == nil {
		l.Close()
		t.Error("took a socket away on which another program listens")
	}
	syscall.Close(fd)
	l, err := listenAdmin(path)
	if err != nil {
		t.Fatalf("a socket that nobody listens on: %v", err)
	}
	l.Close()
}
