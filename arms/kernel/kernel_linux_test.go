package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// build builds the program, where namespaces can be made.
func build(t *testing.T) string {
	t.Helper()
	for _, need := range []string{"ip", "unshare"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("SKIPPED: %s is not installed", need)
		}
	}
	if out, err := exec.Command("unshare", "--net", "ip", "link", "add", "tare0", "type", "veth", "peer", "name", "tare1").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no network namespace can be made: %s", out)
	}
	program := filepath.Join(t.TempDir(), "kernel")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return program
}

// served is a program that runs.
type served struct {
	url, control string
	pid          int
}

func start(t *testing.T, program string, args ...string) served {
	t.Helper()
	var stderr bytes.Buffer
	s := served{control: filepath.Join(t.TempDir(), "control")}
	cmd := exec.Command(program, args...)
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "TARE_ADDR=127.0.0.1:1", "TARE_CONTROL="+s.control, "GOMAXPROCS=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		_ = cmd.Wait()
	})
	s.pid = cmd.Process.Pid
	s.url = "http://" + netip.AddrPortFrom(newLink(s.pid).inner, port).String()
	for range 1000 { // nothing is sent before the address is this machine's
		if c, err := net.Dial("unix", s.control); err == nil {
			c.Close()
			s.await(t)
			return s
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("it does not answer: %s", &stderr)
	return s
}

// await waits until the program accepts.
func (s served) await(t *testing.T) {
	t.Helper()
	for range 1000 {
		if c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
			c.Close()
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("it does not accept at %s", s.url)
}

// get returns the body and whether the server closes the connection.
func (s served) get(t *testing.T, path string) (body string, closes bool) {
	t.Helper()
	res, err := http.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s, %q, %v", path, res.Status, b, err)
	}
	return string(b), res.Close
}

func (s served) facts(t *testing.T) map[string]string {
	t.Helper()
	conn, err := net.Dial("unix", s.control)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintln(conn, `{"do":"facts"}`)
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var reply struct{ Facts map[string]string }
	if err := json.Unmarshal(line, &reply); err != nil {
		t.Fatal(err)
	}
	return reply.Facts
}

// fastOpened counts the connections that were accepted with data in their opening.
func (s served) fastOpened(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/netstat", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "TcpExt:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names {
			if name == "TCPFastOpenPassive" {
				n, err := strconv.Atoi(fields[i])
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	t.Skip("SKIPPED: this kernel does not count TCP fast open")
	return 0
}

func setHere(name string) string {
	value, _ := (setting{name: name}).read()
	return value
}

func TestSettingsArePrivate(t *testing.T) {
	program := build(t)
	const backlog = "net.core.somaxconn"
	before := setHere(backlog)
	plain, set := start(t, program), start(t, program, "-set", backlog+"=77", "-set", "net.ipv4.tcp_rmem=4096 87380 1048576", "-all-cpus")
	for _, s := range []served{plain, set} {
		for path, want := range map[string]struct {
			length int
			closes bool
		}{"/plain": {5, false}, "/page": {65536, false}, "/last": {5, true}, "/call": {5, false}} {
			if body, closes := s.get(t, path); len(body) != want.length || closes != want.closes {
				t.Errorf("%s: got %d bytes, closing %t; want %+v", path, len(body), closes, want)
			}
		}
	}
	one, other := plain.facts(t), set.facts(t)
	if one[backlog] == "77" || other[backlog] != "77" || other["net.ipv4.tcp_rmem"] != "4096 87380 1048576" {
		t.Errorf("got the settings %v of one and %v of the other", one, other)
	}
	if one["net.ipv4.tcp_congestion_control"] != "reno" || one["GOMAXPROCS"] != "1" {
		t.Errorf("got the settings %v, want Linux's own and GOMAXPROCS as told", one)
	}
	if got := setHere(backlog); got != before {
		t.Errorf("%s is %s here, %s before", backlog, got, before)
	}
}

func TestFastOpenNeedsItsSetting(t *testing.T) {
	program := build(t)
	for value, want := range map[string]bool{"1": false, "3": true} {
		s := start(t, program, "-set", "net.ipv4.tcp_fastopen="+value)
		for range 5 {
			s.get(t, "/call")
		}
		if n := s.fastOpened(t); (n > 0) != want {
			t.Errorf("tcp_fastopen=%s: %d of 5 connections opened with data, want some: %t", value, n, want)
		}
	}
}

func TestRefusedSettings(t *testing.T) {
	program := build(t)
	for arg, want := range map[string]string{
		"net.core.netdev_max_backlog=1000":       "a namespace of its own has no such setting",
		"net.ipv4.tcp_congestion_control=nobody": `setting net.ipv4.tcp_congestion_control to "nobody"`,
		"kernel.hostname=tare":                   "want NAME=VALUE",
		"net.core.somaxconn":                     "want NAME=VALUE",
		"net..core/../../etc=1":                  "want NAME=VALUE",
	} {
		out, err := exec.Command(program, "-set", arg).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("-set %s: got %q, %v; want %q", arg, out, err, want)
		}
	}
}
