package proxyverb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/companion"
	"github.com/tarehq/tare/docs"
	"github.com/tarehq/tare/internal/shape"

	"github.com/google/jsonschema-go/jsonschema"
)

// output is a buffer for several goroutines.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// write writes a file and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// needGo skips a test that builds the proxy.
func needGo(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: builds the proxy")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED: the go command is not installed")
	}
}

// TestMistakes has each mistake be given by line and column, all of them at once.
func TestMistakes(t *testing.T) {
	needGo(t)
	path := filepath.Join(t.TempDir(), "proxy.yaml")
	for _, c := range []struct{ text, want string }{
		{"listen:\n  - address: 8080\nroutes:\n  - path: /\n    upstrem: api\n",
			"FILE:2:14: address: got the number 8080; want host:port, such as 127.0.0.1:8080 or :8080\n" +
				"FILE:4:5: routes[0]: want one of upstream, split and redirect\n" +
				"FILE:5:14: upstrem: there is no key \"upstrem\"; allowed: host, path, method, header, cookie, region, strip, prepend, upstream, split, redirect, guard, shadow"},
		{"listen:\n  - address: \":80\"\nupstreams:\n  a:\n    servers: [{address: \"a:1\"}]\n    connections:\n      most: 2\n      warm: 3\nroutes:\n  - path: /\n    upstream: a\n",
			"FILE:8:13: warm: 3 are more than most, which is 2"},
		{"listen: [\n", "FILE:1:9: not YAML: "},
		{"listen: []\nlisten: []\n", "FILE:2:1: listen is there twice"},
		{"", "FILE:1:1: the file is empty"},
	} {
		write(t, path, c.text)
		var out output
		err := (&Command{File: path, Check: true}).Run(t.Context(), &cli.Terminal{Out: &out, Err: &out})
		var f *cli.Failure
		var mistakes shape.Mistakes
		if !errors.As(err, &f) || f.Status != cli.ExitUsage || !errors.As(err, &mistakes) || !strings.HasPrefix(err.Error(), strings.ReplaceAll(c.want, "FILE", path)) {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestTaken has an address that another program has be no mistake of the file, and be explained.
func TestTaken(t *testing.T) {
	needGo(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	path := write(t, filepath.Join(t.TempDir(), "proxy.yaml"), fmt.Sprintf("admin: none\nlisten:\n  - address: %s\nroutes:\n  - {path: /, redirect: {to: /a}}\n", l.Addr()))
	var out output
	err = (&Command{File: path}).Run(t.Context(), &cli.Terminal{Out: &out, Err: &out})
	var f *cli.Failure
	if !errors.As(err, &f) || f.Status != cli.ExitFailed || !strings.Contains(f.Hint, "set listen[0].address to another address") {
		t.Errorf("got %v: %+v", err, f)
	}
}

// resolve returns what says whether the schema accepts a file.
func resolve(t *testing.T) func(text string) error {
	t.Helper()
	var s jsonschema.Schema
	if err := s.UnmarshalJSON([]byte(schema)); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		f, err := (&Command{File: "proxy.yaml"}).parse([]byte(text))
		if err != nil {
			return err
		}
		var v any
		if err := json.Unmarshal(f.json, &v); err != nil {
			return err
		}
		return resolved.Validate(v)
	}
}

var update = flag.Bool("update", false, "write schema.json anew")

// TestSchema has the embedded schema be what the proxy's program makes, be printed, and
// refuse mistakes.
func TestSchema(t *testing.T) {
	needGo(t)
	var out, notices output // the first start says that it builds
	terminal := &cli.Terminal{Out: &out, Err: &notices}
	program, err := companion.Proxy.Find(t.Context(), terminal)
	if err != nil {
		t.Fatal(err)
	}
	want, err := exec.CommandContext(t.Context(), program, "-schema").Output()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		write(t, "schema.json", string(want))
	}
	if got, err := os.ReadFile("schema.json"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("schema.json is not what the program makes (%v); run go test ./cmd/tare/internal/proxyverb -run TestSchema -update", err)
	}
	if err := (&Command{Schema: true}).Run(t.Context(), terminal); err != nil || out.String() != schema {
		t.Errorf("printing the schema: %v", err)
	}
	if err := (&Command{Schema: true, Check: true}).Run(t.Context(), terminal); err == nil {
		t.Error("--schema and --check go together")
	}
	accepts := resolve(t)
	for _, text := range []string{
		"listen:\n  - address: 8080\nroutes: []\n",
		"listen:\n  - address: :80\nroutes:\n  - path: /\n    upstrem: api\n",
		"listen: []\n",
		"listen: []\nroutes: []\nmiddlewares:\n  - gzip: {}\n",
		"listen: []\nroutes: []\nmiddlewares:\n  - secure: {}\n    limit: {}\n",
		"listen: []\nroutes: []\nmiddlewares:\n  - timeout: {after: soon}\n",
	} {
		if accepts(text) == nil {
			t.Errorf("the schema accepts this:\n%s", text)
		}
	}
	if err := accepts("listen: []\nroutes: []\nmiddlewares:\n  - requestid: {}\n  - ratelimit: {requests: 10, per: 1m30s}\n"); err != nil {
		t.Error(err)
	}
}

// TestNoFile says what is missing.
func TestNoFile(t *testing.T) {
	var out output
	err := (&Command{}).Run(t.Context(), &cli.Terminal{Out: &out, Err: &out})
	if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Status != cli.ExitUsage || !strings.Contains(err.Error(), "which file?") {
		t.Errorf("got %v", err)
	}
	err = (&Command{File: "none.yaml"}).Run(t.Context(), &cli.Terminal{Out: &out, Err: &out})
	if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Status != cli.ExitFailed || !strings.Contains(f.Hint, "tare help proxy") {
		t.Errorf("a file that is not there: got %#v, want a hint", err)
	}
}

// TestExamples has the files of the help and of the page be valid.
func TestExamples(t *testing.T) {
	needGo(t)
	_, help, _ := strings.Cut((&Command{}).Help(), "two machines:\n\n")
	help, _, _ = strings.Cut(help, "\n\ntare reloads")
	files := []string{strings.ReplaceAll("\n"+help, "\n  ", "\n")}
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(docs.Page("proxy"), -1) {
		files = append(files, regexp.MustCompile(`(?m)^.*(certificate|key): /etc.*\n`).ReplaceAllString(m[1], "")) // these are not here
	}
	if len(files) != 6 {
		t.Fatalf("found %d files, want 6", len(files))
	}
	accepts := resolve(t)
	for _, text := range files {
		if err := accepts(text); err != nil {
			t.Errorf("the schema refuses it: %v\n%s", err, text)
		}
		path := write(t, filepath.Join(t.TempDir(), "proxy.yaml"), strings.Replace(text, "/var/lib/GeoIP/GeoLite2-Country.mmdb", regions, 1))
		var out output
		if err := (&Command{File: path, Check: true}).Run(t.Context(), &cli.Terminal{Out: &out, Err: &out}); err != nil || !strings.Contains(out.String(), "proxy.yaml: valid") {
			t.Errorf("%s\n%v\n%s", text, err, &out)
		}
	}
}

// TestServe has the proxy serve a file, take it again when it changes and upon SIGHUP,
// keep what it served where there is a mistake, and end.
func TestServe(t *testing.T) {
	needGo(t)
	service := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	text := func(server string) string {
		return fmt.Sprintf("listen:\n  - address: %s\nupstreams:\n  api:\n    servers:\n      - address: %s\nroutes:\n  - path: /\n    upstream: api\n", at, server)
	}
	path := write(t, filepath.Join(t.TempDir(), "proxy.yaml"), text(service("one")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out output
	ended := make(chan error, 1)
	go func() { ended <- (&Command{File: path}).Run(ctx, &cli.Terminal{Out: &out, Err: &out}) }()
	await := func(want string) {
		t.Helper()
		var last string
		for range 1200 {
			select {
			case err := <-ended:
				t.Fatalf("ended: %v\n%s", err, &out)
			default:
			}
			if res, err := http.Get("http://" + at); err == nil {
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if last = string(body); last == want {
					return
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("got %q, want %q\n%s", last, want, &out)
	}
	await("one")
	write(t, path, text(service("two")))
	await("two")
	write(t, path, text("nowhere"))
	for range 200 {
		if strings.Contains(out.String(), "kept the file that was served: "+path+":6:18: address: got \"nowhere\"") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !strings.Contains(out.String(), "kept the file") {
		t.Errorf("no mistake is shown:\n%s", &out)
	}
	await("two")
	if runtime.GOOS != "windows" {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(syscall.SIGHUP)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			if strings.Count(out.String(), "kept the file") == 2 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n := strings.Count(out.String(), "kept the file"); n != 2 {
			t.Errorf("upon SIGHUP the file was read %d times, want twice:\n%s", n, &out)
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("does not end")
	}
	if c, err := net.Dial("tcp", at); err == nil {
		c.Close()
		t.Error("it is listened on yet")
	}
}

// regions is what package regiontest makes of {"203.0.113.0/24": "DE", "2001:db8::/32": "FR"}.
const regions = "testdata/regions.mmdb"

// TestRegion prints the regions of addresses, and says where a database is missing.
func TestRegion(t *testing.T) {
	needGo(t)
	dir := t.TempDir()
	text := "listen:\n  - address: :80\nregions:\n  database: " + filepath.Join(dir, "gone") + "\nroutes: []\n"
	path := write(t, filepath.Join(dir, "proxy.yaml"), text)
	var out output
	terminal := &cli.Terminal{Out: &out, Err: &out}
	err := (&Command{File: path, Region: []string{"203.0.113.7"}}).Run(t.Context(), terminal)
	if err == nil || !strings.HasPrefix(err.Error(), path+":4:13: database: ") {
		t.Errorf("no database: got %v", err)
	}
	write(t, path, strings.Replace(text, filepath.Join(dir, "gone"), regions, 1))
	for _, c := range []struct {
		json bool
		want string
	}{
		{false, "203.0.113.7  DE\n2001:db8::1  FR\n192.0.2.1    no region is known\n"},
		{true, `"region": "FR"`},
	} {
		var out output
		err := (&Command{File: path, JSON: c.json, Region: []string{"203.0.113.7", "2001:db8::1", "192.0.2.1"}}).Run(t.Context(), &cli.Terminal{Out: &out, Err: io.Discard})
		if err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("got %v, %q, want %q", err, &out, c.want)
		}
	}
	for _, c := range []*Command{{File: path, JSON: true}, {File: path, Check: true, Region: []string{"::1"}}, {File: path, Check: true, Replace: "x"}} {
		if f, ok := errors.AsType[*cli.Failure](c.Run(t.Context(), terminal)); !ok || f.Status != cli.ExitUsage {
			t.Errorf("%+v: got %v", c, f)
		}
	}
}
