package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	childEnv = "API_TEST_CHILD"
	secret   = "a secret for tests of more than thirty-two bytes"
	long     = time.Minute // nothing takes as long, on however busy a machine
)

// TestMain is the service where a test has started itself as that.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// child is a running service.
type child struct {
	t          *testing.T
	cmd        *exec.Cmd
	api, admin string // URLs
	output     *bufio.Scanner
	client     *http.Client
}

// start starts the service with further settings, and returns when it serves.
func start(t *testing.T, settings map[string]string) *child {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: a service that is told to end: needs SIGTERM")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{childEnv: "1", "API_SECRET": secret, "API_ADDR": "127.0.0.1:0", "API_ADMIN": "127.0.0.1:0",
		"API_ORDERS": filepath.Join(t.TempDir(), "orders.db"), "API_DRAIN": "0s", "GORACE": os.Getenv("GORACE")}
	maps.Copy(env, settings)
	c := &child{t: t, cmd: exec.Command(self), client: &http.Client{Transport: &http.Transport{ExpectContinueTimeout: long}, Timeout: long}}
	for name, value := range env {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.client.CloseIdleConnections(); c.cmd.Process.Kill(); c.cmd.Wait() })
	c.output = bufio.NewScanner(out)
	var said struct{ Msg, API, Admin string }
	if !c.output.Scan() || json.Unmarshal(c.output.Bytes(), &said) != nil || said.Msg != "serving" {
		t.Fatalf("the service's first line is %q", c.output.Text())
	}
	c.api, c.admin = "http://"+said.API, "http://"+said.Admin
	return c
}

// end has the service end, and returns the lines that it has written.
func (c *child) end() (lines []map[string]any) {
	c.t.Helper()
	c.client.CloseIdleConnections()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	for c.output.Scan() {
		line := map[string]any{}
		if err := json.Unmarshal(c.output.Bytes(), &line); err != nil {
			c.t.Errorf("the line %q: %v", c.output.Text(), err)
		}
		lines = append(lines, line)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the service ended with %v", err)
	}
	return lines
}

// tokenOf returns a token of a customer, for the audience given.
func tokenOf(customer, audience string) string {
	text := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	signed := text(map[string]string{"alg": "HS256", "typ": "JWT"}) + "." +
		text(map[string]any{"sub": customer, "aud": audience, "exp": time.Now().Add(time.Hour).Unix()})
	mac := hmac.New(sha256.New, []byte(secret))
	io.WriteString(mac, signed)
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// ask sends a request with a token of ann's, unless fields has another, and returns the
// answer with its whole body.
func (c *child) ask(method, url, body string, fields ...string) (*http.Response, string) {
	c.t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokenOf("ann", "orders"))
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	res, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(text)
}

const oneOrder = `{"items": [{"sku": "apple", "count": 3}]}`

// TestService places and reads orders, reads metrics and the log, and ends the service.
func TestService(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	c := start(t, map[string]string{"API_ORDERS": file})
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ok\n"} {
		if res, text := c.ask("GET", c.admin+path, ""); res.StatusCode != http.StatusOK || text != want {
			t.Errorf("%s: %s %q", path, res.Status, text)
		}
	}
	asked := 0
	want := func(status int, method, path, body string, fields ...string) (*http.Response, string) {
		t.Helper()
		asked++
		res, text := c.ask(method, c.api+path, body, fields...)
		if res.StatusCode != status {
			t.Errorf("%s %s: %s %q, want %d", method, path, res.Status, text, status)
		}
		if res.Header.Get("X-Request-Id") == "" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: the fields %v", method, path, res.Header)
		}
		return res, text
	}
	want(401, "GET", "/orders", "", "Authorization", "")
	want(401, "GET", "/orders", "", "Authorization", "Bearer "+tokenOf("ann", "invoices"))
	want(400, "POST", "/orders", `{"items": []}`)
	want(400, "POST", "/orders", oneOrder+oneOrder)
	want(400, "POST", "/orders", `{"items": [{"sku": "apple", "count": 3, "price": 0}]}`)
	want(413, "POST", "/orders", strings.Repeat(" ", 2<<20), "Expect", "100-continue")
	want(404, "GET", "/nothing", "")
	res, _ := want(201, "POST", "/orders", oneOrder)
	place := res.Header.Get("Location")
	if _, text := want(200, "GET", place, ""); !strings.Contains(text, `"customer":"ann"`) || !strings.Contains(text, `"sku":"apple"`) {
		t.Errorf("the order is %s", text)
	}
	want(404, "GET", place, "", "Authorization", "Bearer "+tokenOf("bob", "orders"))
	for range 20 {
		want(201, "POST", "/orders", oneOrder)
	}
	res, text := want(200, "GET", "/orders", "", "Accept-Encoding", "gzip")
	if n := countOrders(t, res, text); n != 21 {
		t.Errorf("%d orders in the list, want 21", n)
	}
	_, page := c.ask("GET", c.admin+"/metrics", "")
	for _, line := range []string{`http_route="/orders/{id}"`, `jwt_refused_total{service_name="orders"} 2`,
		`limit_refused_total{service_name="orders"} 1`, "go_sched_latencies_seconds"} {
		if !strings.Contains(page, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	checkLog(t, c.end(), asked)

	c = start(t, map[string]string{"API_ORDERS": file})
	want(200, "GET", place, "")
	want(201, "POST", "/orders", oneOrder)
	if err := errors.Join(c.cmd.Process.Kill(), c.output.Err()); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	c = start(t, map[string]string{"API_ORDERS": file})
	if _, text := want(200, "GET", "/orders", ""); strings.Count(text, `"id"`) != 22 {
		t.Errorf("after a restart, one order more and a crash, the list is %s", text)
	}
	c.end()
}

func countOrders(t *testing.T, res *http.Response, text string) int {
	t.Helper()
	if got := res.Header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("the list is encoded as %q, want gzip", got)
	}
	plain, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var list []order
	if err := json.NewDecoder(plain).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// checkLog finds a line for each request, with its identifier and customer. The traces
// of lines are those of spans.
func checkLog(t *testing.T, lines []map[string]any, asked int) {
	t.Helper()
	spans, traced, requests, customers := map[any]bool{}, []any{}, 0, 0
	for _, line := range lines {
		switch {
		case line["msg"] == "span":
			spans[line["trace_id"]] = true
		case line["status"] != nil:
			requests++
			if line["id"] == nil {
				t.Errorf("no identifier in %v", line)
			}
			if line["user"] == "ann" {
				customers++
			}
			if id := line["trace_id"]; id != nil {
				traced = append(traced, id)
			}
		}
	}
	if requests != asked || customers < 20 {
		t.Errorf("the log has %d requests, %d of them ann's, want %d and 20 or more", requests, customers, asked)
	}
	if len(traced) == 0 || slices.ContainsFunc(traced, func(id any) bool { return !spans[id] }) {
		t.Errorf("the log has the traces %v, and spans of %v", traced, spans)
	}
}

// TestSheds asks too often, from two addresses behind a proxy, and has the service hold
// more requests than it may.
func TestSheds(t *testing.T) {
	c := start(t, map[string]string{"API_RATE": "3", "API_PROXIES": "127.0.0.0/8", "API_IN_FLIGHT": "1"})
	var refused *http.Response
	for range 20 {
		if res, _ := c.ask("GET", c.api+"/orders", "", "X-Forwarded-For", "192.0.2.1"); res.StatusCode == http.StatusTooManyRequests {
			refused = res
		}
	}
	if refused == nil || refused.Header.Get("Retry-After") != "1" || refused.Header.Get("RateLimit-Policy") != `"default";q=3;w=1` ||
		refused.Header.Get("RateLimit") != `"default";r=0;t=1` {
		t.Errorf("of 20 requests at 3 a second none is refused as it should be: %v", refused)
	}
	if res, text := c.ask("GET", c.api+"/orders", "", "X-Forwarded-For", "192.0.2.2"); res.StatusCode != http.StatusOK {
		t.Errorf("another client: %s %s", res.Status, text)
	}

	nc, err := net.Dial("tcp", strings.TrimPrefix(c.api, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprintf(nc, "POST /orders HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", tokenOf("ann", "orders"), len(oneOrder))
	for i := range 250 { // each from another address, so that no rate is in the way
		res, text := c.ask("GET", c.api+"/orders", "", "X-Forwarded-For", "198.51.100."+strconv.Itoa(i))
		if res.StatusCode == http.StatusServiceUnavailable {
			if res.Header.Get("Retry-After") != "1" {
				t.Errorf("a request too many: %v", res.Header)
			}
			break
		}
		if res.StatusCode != http.StatusOK || i == 249 {
			t.Fatalf("beside a request that goes on: %s %s, want 503", res.Status, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
	io.WriteString(nc, oneOrder)
	if res, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil || res.StatusCode != http.StatusCreated {
		t.Errorf("the request that went on: %v, %v, want 201", res, err)
	}
	c.end()
}

// layerFrame is a layer of the stack, in a traceback.
var layerFrame = regexp.MustCompile(`(?m)^github\.com/tarehq/tare/serve/((?:middleware/)?\w+)\.\(\*handler\)\.ServeHTTP\(`)

// TestFrames looks at the stack of a request that goes on: each layer has one frame, named by
// its folder. So profiles show what each costs, and tare cost has a row for each.
func TestFrames(t *testing.T) {
	c := start(t, nil)
	nc, err := net.Dial("tcp", strings.TrimPrefix(c.api, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprintf(nc, "POST /orders HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", tokenOf("ann", "orders"), len(oneOrder))
	var got []string
	for begun := time.Now(); got == nil && time.Since(begun) < long; time.Sleep(20 * time.Millisecond) {
		_, all := c.ask("GET", c.admin+"/debug/pprof/goroutine?debug=2", "")
		for goroutine := range strings.SplitSeq(all, "\n\n") {
			if !strings.Contains(goroutine, ".servePlace(") {
				continue
			}
			for _, frame := range layerFrame.FindAllStringSubmatch(goroutine, -1) {
				got = append(got, frame[1])
			}
		}
	}
	want := []string{"compress", "middleware/jwt", "middleware/timeout", "middleware/ratelimit", "middleware/limit", "middleware/secure",
		"middleware/metrics", "middleware/accesslog", "tracing", "middleware/clientaddr", "middleware/requestid", "middleware/recovery"}
	if !slices.Equal(got, want) {
		t.Errorf("got the frames %q, want %q", got, want)
	}
	for _, folder := range got {
		if _, err := os.Stat(filepath.Join("../../serve", folder)); err != nil {
			t.Error(err)
		}
	}
	io.WriteString(nc, oneOrder)
	if res, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil || res.StatusCode != http.StatusCreated {
		t.Errorf("the request: %v, %v, want 201", res, err)
	}
	c.end()
}

// TestRestarts restarts the service under clients that ask without pause. Each request
// that a service took is answered.
func TestRestarts(t *testing.T) {
	restarts := 50
	if testing.Short() {
		restarts = 5
	}
	dir := t.TempDir()
	settings := map[string]string{"API_ORDERS": filepath.Join(dir, "orders.db"), "API_RATE": "1000000", "API_TRACES": "1"}
	c := start(t, settings)
	settings["API_ADDR"] = strings.TrimPrefix(c.api, "http://") // the same each time
	res, _ := c.ask("POST", c.api+"/orders", oneOrder)
	path := res.Header.Get("Location")
	var stop atomic.Bool
	var answered atomic.Int64
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop.Store(true)
	for range 8 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: long}
			defer client.CloseIdleConnections()
			for !stop.Load() {
				switch err := read(client, settings["API_ADDR"], path); {
				case err == nil:
					answered.Add(1)
				case errors.Is(err, syscall.ECONNREFUSED): // nobody has taken it
					time.Sleep(5 * time.Millisecond)
				default:
					t.Error(err)
				}
			}
		})
	}
	for range restarts {
		before := answered.Load()
		for deadline := time.Now().Add(long); answered.Load() < before+50; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no requests are answered")
			}
		}
		c.end()
		c = start(t, settings)
	}
	stop.Store(true)
	clients.Wait()
	c.end()
	t.Logf("%d restarts, %d requests answered", restarts, answered.Load())
}

// read reads an order.
func read(client *http.Client, addr, path string) error {
	r, err := http.NewRequest("GET", "http://"+addr+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+tokenOf("ann", "orders"))
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"customer":"ann"`)) {
		return fmt.Errorf("%s %s", res.Status, body)
	}
	return nil
}

// TestSettings has settings that are wrong: the error names each, and what to do.
func TestSettings(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"API_SECRET", "short", "set 32 or more"},
		{"API_RATE", "0", "set a number from 1"},
		{"API_IN_FLIGHT", "many", "set a number from 1"},
		{"API_DRAIN", "2", "set a duration"},
		{"API_PROXIES", "10.0.0.0/8,10.0.0.1", "set networks"},
	} {
		_, err := readSettings(func(name string) string {
			if name == c.name {
				return c.value
			}
			return map[string]string{"API_SECRET": secret}[name]
		})
		if err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %q in it", c.name, c.value, err, c.want)
		}
	}
	if set, err := readSettings(func(name string) string { return map[string]string{"API_SECRET": secret}[name] }); err != nil || set.rate != 100 {
		t.Errorf("without others: %+v, %v", set, err)
	}
	path := filepath.Join(t.TempDir(), "orders.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("nonsense\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openOrders(path); err == nil || !strings.Contains(err.Error(), "move the file away") {
		t.Errorf("a file of something else: %v", err)
	}
}
