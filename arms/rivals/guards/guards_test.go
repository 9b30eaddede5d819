package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/trace"

	"github.com/tarehq/tare/arms/weights/plan"
)

const ownerEnv = "GUARDS_TEST_OWNER"

// TestMain is a process that owns a Redis where TestRedisEndsWithItsOwner asks for one.
func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) == "" {
		os.Exit(m.Run())
	}
	addr, err := startRedis()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(addr)
	time.Sleep(time.Minute) // the test kills it before
}

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skipf("SKIPPED: limits in Redis: %v", err)
	}
}

// targets are the requests of the study: paths and fields.
func targets(t *testing.T) []*http.Request {
	t.Helper()
	b, err := os.ReadFile("../../../studies/guards.yaml")
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`Authorization: &token (Bearer \S+)`).FindSubmatch(b)
	if token == nil {
		t.Fatal("studies/guards.yaml has no token")
	}
	var all []*http.Request
	for _, m := range regexp.MustCompile(`{path: (/orders/\d+), .*X-Forwarded-For: ([\d.]+)}`).FindAllSubmatch(b, -1) {
		r := httptest.NewRequest(http.MethodGet, string(m[1]), nil)
		r.Header.Set("Authorization", string(token[1]))
		r.Header.Set("X-Forwarded-For", string(m[2]))
		all = append(all, r)
	}
	if len(all) < 20 {
		t.Fatalf("studies/guards.yaml has %d requests of clients, want 20", len(all))
	}
	return all
}

// arms are the layers of the study's arms.
func arms(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("../../../studies/guards.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile(`rival: guards,?\s+args: \[--layer, "?([\w,-]+)"?\]`).FindAllSubmatch(b, -1) {
		all = append(all, string(m[1]))
	}
	if len(all) < 10 {
		t.Fatalf("studies/guards.yaml has %q, want ten arms", all)
	}
	return all
}

// TestLayers has each layer alone, and those of each arm, answer the study's requests.
func TestLayers(t *testing.T) {
	requests, layers := targets(t), append(slices.Sorted(maps.Keys(makers)), arms(t)...)
	t.Chdir(t.TempDir())
	for _, layer := range layers {
		t.Run(layer, func(t *testing.T) {
			if layer != "guards" && strings.Contains(layer, "limit") && !strings.Contains(layer, "limit-memory") {
				needRedis(t)
			}
			_, h, err := newService(layer)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range requests {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r.Clone(t.Context()))
				if w.Code != http.StatusOK || w.Body.Len() != 1024 {
					t.Fatalf("%s: %d, %d bytes", r.URL, w.Code, w.Body.Len())
				}
			}
		})
	}
	for _, layer := range []string{"", "magic", "jwt,magic"} {
		if names, _, err := newService(layer); err == nil {
			t.Errorf("%q: got the layers %q, no error", layer, names)
		}
	}
}

// TestContrib has layers of others than gin do what they are there for: tokens that are
// missing or forged are refused, a site's script may read the answer, requests are traced.
func TestContrib(t *testing.T) {
	ask := func(layer string, r *http.Request) *httptest.ResponseRecorder {
		_, h, err := newService(layer)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	none, forged, script := targets(t)[0], targets(t)[0], targets(t)[0]
	none.Header.Del("Authorization")
	forged.Header.Set("Authorization", forged.Header.Get("Authorization")+"A")
	script.Header.Set("Origin", plan.Origin)
	for _, layer := range []string{"jwt", "jwt-contrib"} {
		for what, r := range map[string]*http.Request{"no token": none, "a forged one": forged} {
			if w := ask(layer, r.Clone(t.Context())); w.Code != http.StatusUnauthorized {
				t.Errorf("%s: %s: got %d, want 401", layer, what, w.Code)
			}
		}
	}
	if w := ask("cors", script); w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") != plan.Origin {
		t.Errorf("cors: got %d, %q", w.Code, w.Header())
	}
	for layer, want := range map[string]bool{"tracing": false, "tracing-sampled": true} {
		f, err := makers[layer]()
		if err != nil {
			t.Fatal(err)
		}
		engine, sampled := gin.New(), false
		engine.Use(f)
		engine.GET("/", func(c *gin.Context) { sampled = trace.SpanContextFromContext(c.Request.Context()).IsSampled() })
		engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		if sampled != want {
			t.Errorf("%s: sampled: got %t, want %t", layer, sampled, want)
		}
	}
}

// TestLog finds the line of a request in the file, at once and on the disk or later.
func TestLog(t *testing.T) {
	r := targets(t)[0]
	for layer, atOnce := range map[string]bool{"log": true, "log-fsync": true, "log-async": false} {
		t.Chdir(t.TempDir())
		_, h, err := newService(layer)
		if err != nil {
			t.Fatal(err)
		}
		lines := func() int {
			b, err := os.ReadFile("access.log")
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(string(b), `"`+r.URL.Path+`"`)
		}
		h.ServeHTTP(httptest.NewRecorder(), r.Clone(t.Context()))
		if got := lines() == 1; got != atOnce {
			t.Errorf("%s: a line at once: %v, want %v", layer, got, atOnce)
		}
		for range 100 {
			if lines() == 1 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := lines(); n != 1 {
			t.Errorf("%s: %d lines of one request", layer, n)
		}
	}
}

// TestRefusals asks a gateway, and a service without guards, for what a gateway refuses.
func TestRefusals(t *testing.T) {
	needRedis(t)
	gateway := map[string]string{"without a token": "401", "with a forged token": "401", "from a denied address": "403", "above the limit": "429"}
	for layer, want := range map[string]map[string]string{
		"deny,jwt,limit": gateway, "deny,jwt,limit-tare": gateway, "deny,jwt,limit-tare-batch": gateway,
		"none": {"without a token": "200", "with a forged token": "200", "from a denied address": "200", "above the limit": "200"},
	} {
		_, h, err := newService(layer)
		if err != nil {
			t.Fatal(err)
		}
		if got := refusals(h); !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", layer, got, want)
		}
	}
}

// TestRedisEndsWithItsOwner kills a process that has started Redis.
func TestRedisEndsWithItsOwner(t *testing.T) {
	needRedis(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.CommandContext(ctx, self)
	owner.Env, owner.Dir = append(os.Environ(), ownerEnv+"=1"), t.TempDir()
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", addr, err)
	}
	addr = strings.TrimSpace(addr)
	if conn, err := net.Dial("tcp", addr); err != nil {
		t.Errorf("while the owner lives: %v", err)
	} else {
		conn.Close()
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // it was killed
	for range 100 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("Redis lives 5 s after its owner was killed")
}
