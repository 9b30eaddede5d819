package main_test

import (
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
func start(t *testing.T, program, kind string) (url string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(program, "-proxy", kind)
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
			return "http://" + addr, end
		}
		time.Sleep(10 * time.Millisecond)
	}
	end()
	t.Fatalf("%s does not accept", kind)
	return "", nil
}

// TestProxies has each proxy pass the same answers on, and the upstreams end with it.
func TestProxies(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the upstreams need a process group of their own")
	}
	program := filepath.Join(t.TempDir(), "proxies")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	for _, kind := range []string{"ours", "no-retry", "steered", "reverse", "reverse-serve", "tutorial", "nginx", "haproxy", "envoy", "traefik"} {
		t.Run(kind, func(t *testing.T) {
			if strings.Contains("nginx haproxy envoy traefik", kind) {
				if _, err := exec.LookPath(kind); err != nil {
					t.Skipf("SKIPPED: %v", err)
				}
			}
			url, end := start(t, program, kind)
			defer end()
			for path, want := range map[string]string{answers.JSONPath: string(answers.Object()), answers.PagePath: string(answers.Page()), "/unsteady": "hello"} {
				body, kindOf := "", ""
				for range 200 { // one may come at a bad moment, or before the route is there
					res, err := http.Get(url + path)
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
		})
	}
}
