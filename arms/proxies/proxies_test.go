package main_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/engine/answers"
)

// start runs the arm with a proxy and returns its URL; end ends it.
func start(t *testing.T, program, kind string, secure bool) (url string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(program, "-proxy", kind, fmt.Sprint("-tls=", secure))
	cmd.Dir, cmd.Stderr = t.TempDir(), os.Stderr
	cmd.Env = append(os.Environ(), "TARE_ADDR="+addr, "TARE_CONTROL=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		_ = cmd.Wait()
	}
	for range 500 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			if secure {
				return "https://" + addr, end
			}
			return "http://" + addr, end
		}
		time.Sleep(10 * time.Millisecond)
	}
	end()
	t.Fatalf("%s does not accept", kind)
	return "", nil
}

func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "proxies")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return program
}

// TestScript has our proxy hide each fault that can be hidden, run nothing twice, and the
// tutorials' one, which has no other upstream than the second, see none of the first's.
func TestScript(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the script ends proxies by a signal")
	}
	var out, complaints bytes.Buffer
	cmd := exec.Command(build(t), "-script", "ours,reverse,tutorial", "-second", "200ms")
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &complaints)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2+5*6+2 || lines[0] != "| upstream | second | ours | reverse | tutorial |" {
		t.Fatalf("got %d lines:\n%s", len(lines), &out)
	}
	bad := 0 // of reverse
	for _, line := range lines[2:32] {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(cells[2], "0 / ") && !strings.HasPrefix(line, "| stalls") { // whose try takes longer than these clients wait
			t.Errorf("bad requests that may be repeated: %s", line)
		}
		if !strings.HasPrefix(cells[3], "0 / 0 / ") {
			bad++
		}
		if !strings.HasPrefix(cells[4], "0 / 0 / ") {
			t.Errorf("the upstream that is well fails: %s", line)
		}
	}
	if bad < 10 || !strings.HasPrefix(lines[33], "| POST run twice | | 0 | ") {
		t.Errorf("%d lines of reverse show failures, want 10 or more; no POST of ours may be run twice:\n%s", bad, &out)
	}
}

// TestProxies has each proxy pass the same answers on, and the upstreams end with it.
func TestProxies(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the upstreams need a process group of their own")
	}
	program := build(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for _, secure := range []bool{false, true} {
		for _, kind := range []string{"ours", "no-retry", "steered", "reverse", "reverse-serve", "tutorial", "nginx", "haproxy", "envoy", "traefik", "caddy"} {
			if secure && (kind == "no-retry" || kind == "steered") {
				continue // ours
			}
			t.Run(fmt.Sprint(kind, "/tls=", secure), func(t *testing.T) {
				if strings.Contains("nginx haproxy envoy traefik caddy", kind) {
					if _, err := exec.LookPath(kind); err != nil {
						t.Skipf("SKIPPED: %v", err)
					}
				}
				url, end := start(t, program, kind, secure)
				defer end()
				passes(t, client, url)
			})
		}
	}
}

// passes has a proxy pass the upstreams' answers on.
func passes(t *testing.T, client *http.Client, url string) {
	t.Helper()
	for path, want := range map[string]string{answers.JSONPath: string(answers.Object()), answers.PagePath: string(answers.Page()), "/unsteady": "hello"} {
		body, kindOf := "", ""
		for range 200 { // one may come at a bad moment, or before the route is there
			res, err := client.Get(url + path)
			if err != nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if body, kindOf = string(text), res.Header.Get("Content-Type"); err == nil && res.StatusCode == http.StatusOK {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if body != want || kindOf == "" {
			t.Errorf("%s: got %d bytes of type %q, want %d", path, len(body), kindOf, len(want))
		}
	}
}
