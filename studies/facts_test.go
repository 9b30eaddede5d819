package studies_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/lab/arm"
)

// P1.dispatch: what http.Handle registers, the mux calls through the table of
// methods of its interface.
func TestServeMuxCallsThroughTable(t *testing.T) {
	const mux, pointer = "net/http.(*ServeMux).ServeHTTP", "main.(*closed).ServeHTTP"
	program := filepath.Join(t.TempDir(), "dispatch")
	if out, err := exec.Command("go", "build", "-C", "../arms", "-o", program, "./dispatch").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	code, err := arm.Disassemble(t.Context(), program, []string{mux, pointer})
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{} // whether the call of the next handler names it
	for _, c := range code {
		for _, i := range c.Instructions {
			if i.Calls() && strings.Contains(sourceAt(t, i.At), ".ServeHTTP(w, r)") {
				direct[c.Func] = strings.Contains(i.Text, "(SB)")
			}
		}
	}
	if got, ok := direct[mux]; !ok || got {
		t.Errorf("call by the mux: found %t, direct %t; want it found and not direct", ok, got)
	}
	if got, ok := direct[pointer]; !ok || !got {
		t.Errorf("call by a pointer of known type: found %t, direct %t; want it found and direct", ok, got)
	}
}

// sourceAt is the line of source at a place such as server.go:12, of net/http or
// of the arm.
func sourceAt(t *testing.T, at string) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, number, _ := strings.Cut(at, ":")
	for _, dir := range []string{filepath.Join(strings.TrimSpace(string(root)), "src/net/http"), "../arms/dispatch"} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.Base(file)))
		if err != nil {
			continue
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			if n++; fmt.Sprint(n) == number {
				return line
			}
		}
	}
	return ""
}

// P1.echo: Echo stands on net/http. Fiber, which does stand on fasthttp, shows
// that the test would see it.
func TestEchoStandsOnNetHTTP(t *testing.T) {
	const fasthttp = "github.com/valyala/fasthttp"
	for pkg, want := range map[string]bool{
		"github.com/labstack/echo/v4": false,
		"github.com/labstack/echo/v5": false,
		"github.com/gofiber/fiber/v2": true,
	} {
		list := exec.Command("go", "list", "-deps", pkg)
		list.Dir = "../arms/rivals"
		out, err := list.Output()
		if err != nil {
			t.Fatalf("listing what %s stands on: %v", pkg, err)
		}
		deps := strings.Fields(string(out))
		if got := slices.Contains(deps, fasthttp); got != want || !slices.Contains(deps, "net/http") && !want {
			t.Errorf("%s stands on fasthttp: got %t, want %t", pkg, got, want)
		}
	}
}

// P1.metrics-api: a sample of runtime/metrics has a name and a value, no labels,
// and no metric is of net/http's requests.
func TestRuntimeMetricsHaveNoLabels(t *testing.T) {
	var fields []string
	for f := range reflect.TypeFor[metrics.Sample]().Fields() {
		fields = append(fields, f.Name)
	}
	if want := []string{"Name", "Value"}; !slices.Equal(fields, want) {
		t.Errorf("a sample has the fields %v, want %v", fields, want)
	}
	names := map[string]bool{}
	for _, d := range metrics.All() {
		names[strings.Split(d.Name, ":")[0]] = true
	}
	if names["/net/http/server/req/duration"] || !names["/sched/latencies"] {
		t.Errorf("metrics of requests: %t, of scheduling: %t; want only the latter", names["/net/http/server/req/duration"], names["/sched/latencies"])
	}
}

// P5.idle-default: without IdleTimeout and ReadTimeout a kept connection stays
// open; with one of a minute it is closed after that.
func TestIdleConnectionsStayOpen(t *testing.T) {
	for limit, want := range map[time.Duration]bool{0: true, time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			listener := &single{conns: make(chan net.Conn, 1)}
			listener.conns <- server
			s := &http.Server{IdleTimeout: limit, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
			go s.Serve(listener)
			defer s.Close()
			defer client.Close()
			r := bufio.NewReader(client)
			ask := func() error {
				if _, err := fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
					return err
				}
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					return err
				}
				return resp.Body.Close()
			}
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(24 * time.Hour)
			if err := ask(); (err == nil) != want {
				t.Errorf("IdleTimeout %s: a day later got %v, want an answer: %t", limit, err, want)
			}
		})
	}
}

// single is a listener of the connections that it is given.
type single struct{ conns chan net.Conn }

func (l *single) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l *single) Close() error   { close(l.conns); return nil }
func (l *single) Addr() net.Addr { return &net.TCPAddr{} }

// P5.h2c: GODEBUG=http2server=1 does not turn on HTTP/2 in clear text, Protocols does.
func TestDebugSettingDoesNotEnableClearHTTP(t *testing.T) {
	t.Setenv("GODEBUG", "http2server=1")
	for _, on := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		if on {
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
		}
		s.Start()
		defer s.Close()
		var client http.Client
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		client.Transport = transport
		resp, err := client.Get(s.URL)
		if got := err == nil && resp.ProtoMajor == 2; got != on {
			t.Errorf("UnencryptedHTTP2 %t: answered in HTTP/2: %t (%v)", on, got, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		transport.CloseIdleConnections()
	}
}

// P2.order: a cache before the authentication stores what was answered to a client without
// a token, and hands a member's answer to one. Behind it, the cache does neither. The report
// is of the pattern, so the cache is the shortest that there is: one answer a path.
func TestCacheBeforeAuthenticationStoresForAll(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(app http.Handler) http.Handler
		first string // token of the request that fills the cache
		want  []int  // statuses: of that, of one with a token, of one without
	}{
		{"cache first, filled without a token", func(app http.Handler) http.Handler { return newCache(authenticate(app)) }, "", []int{401, 401, 401}},
		{"cache first, filled by a member", func(app http.Handler) http.Handler { return newCache(authenticate(app)) }, "member", []int{200, 200, 200}},
		{"cache last, filled without a token", func(app http.Handler) http.Handler { return authenticate(newCache(app)) }, "", []int{401, 200, 401}},
		{"cache last, filled by a member", func(app http.Handler) http.Handler { return authenticate(newCache(app)) }, "member", []int{200, 200, 401}},
	} {
		h := c.build(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "salaries") }))
		var got []int
		for _, token := range []string{c.first, "member", ""} {
			r := httptest.NewRequest("GET", "/salaries", nil)
			r.Header.Set("Authorization", token)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			got = append(got, w.Code)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: statuses %v, want %v", c.name, got, c.want)
		}
	}
}

func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "member" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func newCache(next http.Handler) http.Handler {
	stored := map[string]*httptest.ResponseRecorder{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := stored[r.URL.Path]
		if answer == nil {
			answer = httptest.NewRecorder()
			next.ServeHTTP(answer, r)
			stored[r.URL.Path] = answer
		}
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
	})
}
