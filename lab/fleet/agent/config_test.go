package agent_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/fleet/agent"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

func TestAllowed(t *testing.T) {
	c := &agent.Config{Allow: []string{"10.0.0.7:8080", "api.example:443", "[::1]:9000-9100", "127.0.0.1:*"}, Connections: 10, Body: 4, Duration: time.Minute}
	ask := func(url string, change func(*load.Options)) error {
		o := load.Options{Targets: []load.Target{{URL: url}}, Connections: 1, Duration: time.Second}
		if change != nil {
			change(&o)
		}
		return c.Check(o)
	}
	for _, url := range []string{"http://10.0.0.7:8080/x?y=http://other/", "https://API.example/{{id}}", "http://[::1]:9050", "127.0.0.1:4"} {
		if err := ask(url, nil); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{
		"http://10.0.0.7/", "http://10.0.0.7:8081/", "http://api.example/", "http://[::1]:8999", "http://10.0.0.7:8080@evil:80/", "http://evil/10.0.0.7:8080",
		"http://evil?@10.0.0.7:8080/", "http://evil#@10.0.0.7:8080/", "http://{{h}}:8080/", "http://:8080", ":8080", "", "http://api.example:443.evil/", "http://10.0.0.7:8080\\@evil/",
	} {
		if err := ask(url, nil); err == nil {
			t.Errorf("%q was allowed", url)
		}
	}
	for what, change := range map[string]func(*load.Options){
		"a proxy":              func(o *load.Options) { o.Proxy = "http://proxy:3128" },
		"a proxy of no port":   func(o *load.Options) { o.Proxy = "10.0.0.7" },
		"another target":       func(o *load.Options) { o.Targets = append(o.Targets, load.Target{URL: "http://evil/"}) },
		"a large body":         func(o *load.Options) { o.Targets[0].Body = make([]byte, 5) },
		"many connections":     func(o *load.Options) { o.Connections = 11 },
		"a long load":          func(o *load.Options) { o.Duration = time.Hour },
		"a long warm-up":       func(o *load.Options) { o.WarmUp = math.MaxInt64 },
		"a long schedule":      func(o *load.Options) { o.Duration, o.Schedule = 0, pace.Ramp(1, 2, time.Hour) },
		"a high rate":          func(o *load.Options) { o.Connections, o.Schedule = 1, pace.Constant(1e6) },
		"a schedule of no use": func(o *load.Options) { o.Schedule = &pace.Schedule{} },
	} {
		if err := ask("http://10.0.0.7:8080/", change); err == nil {
			t.Errorf("%s was allowed", what)
		}
	}
}

func TestReadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	for text, want := range map[string]string{
		"allow: [\"h:1\"]\n": "",
		"listen: 127.0.0.1:7411\ncerts: x\nallow:\n  - h:1-5\n  - '[::1]:*'\nrate: 5\nconnections: 6\nduration: 1m\nbody: 7\nmessage: 2000\n": "",
		"listen: x\nallow: [\"h:1\"]\n": path + ":1:9: listen: got \"x\"; want an address and a port",
		"rate: 1\n":                     "lacks the key allow",
		"allow: [h]\n":                  path + ":1:9: allow: got \"h\"; want host:port",
		"allow: ['*:80']\n":             "want host:port",
		"allow: ['h:9-1']\n":            "the lower one first",
		"allow: ['h:99999999999999']\n": "want 1 to 65535",
		"alow: [\"h:1\"]\n":             "did you mean allow?",
		"allow: [\"h:1\"]\nrate: 0\n":   "rate: got",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := agent.ReadConfig(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
