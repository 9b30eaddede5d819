//go:build unix

package variant

import (
	"cmp"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// echo is a server by github.com/coder/websocket that sends back each message.
const echo = `package main

import (
	"flag"
	"net/http"

	"github.com/coder/websocket"
)

func main() {
	addr := flag.String("addr", "", "")
	flag.Parse()
	http.HandleFunc("/m", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		for {
			kind, message, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, message) != nil {
				return
			}
		}
	})
	panic(http.ListenAndServe(*addr, nil))
}
`

// TestAutobahn runs the cases of Autobahn's test suite against servers of WebSockets, built
// with serve and without: they have to behave alike. TARE_WSTEST names the suite's program.
func TestAutobahn(t *testing.T) {
	wstest := os.Getenv("TARE_WSTEST")
	if wstest == "" {
		t.Skip("SKIPPED: TARE_WSTEST does not name wstest of Autobahn's test suite")
	}
	gorilla := filepath.Join(copyModule(t, "github.com/gorilla/websocket@v1.5.3"), "examples", "autobahn")
	coder := filepath.Join(copyModule(t, "github.com/coder/websocket@v1.8.15"), "echo")
	if err := os.Mkdir(coder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(coder, "main.go"), []byte(echo), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"gorilla": gorilla, "coder": coder} {
		t.Run(name, func(t *testing.T) {
			on := runAutobahn(t, wstest, startEcho(t, dir, []Variant{{Kind: Serve}}))
			plain := runAutobahn(t, wstest, startEcho(t, dir, nil))
			counts := map[string]int{}
			for number, behaviour := range on {
				counts[behaviour]++
				if behaviour != plain[number] {
					t.Errorf("case %s: %s on serve, %s on net/http", number, behaviour, plain[number])
				}
			}
			if len(on) < 200 || counts["OK"] < 150 || len(on) != len(plain) {
				t.Errorf("%d cases on serve and %d on net/http, want the same and at least 200: %v", len(on), len(plain), counts)
			}
			t.Logf("%d cases: %v", len(on), counts)
		})
	}
}

// startEcho builds the program in dir with variants, starts it and returns its address.
func startEcho(t *testing.T, dir string, variants []Variant) string {
	t.Helper()
	work := t.TempDir()
	b, err := Apply(t.Context(), variants, Options{Dir: dir, Work: work, ServeModule: "../../serve"})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(work, "echo")
	runTool(t, dir, append(b.Env, "GOWORK=off"), "go", append(append([]string{"build", "-o", program}, b.Flags...), ".")...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(program, "-addr="+addr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 100 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return addr
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the server of WebSockets did not start")
	return ""
}

// runAutobahn returns the behaviour of the server at addr by the number of the case. Of
// the cases with many sizes of fragments and of compressed messages it runs a few.
func runAutobahn(t *testing.T, wstest, addr string) map[string]string {
	t.Helper()
	work := t.TempDir()
	spec, err := json.Marshal(map[string]any{
		"outdir":  work,
		"servers": []map[string]any{{"agent": "echo", "url": "ws://" + addr + "/m"}},
		"cases": []string{"1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.1.*", "9.2.*", "10.*",
			"12.1.1", "12.1.2", "12.1.3", "12.1.4", "13.1.1", "13.1.2"},
	})
	if err := cmp.Or(err, os.WriteFile(filepath.Join(work, "spec.json"), spec, 0o600)); err != nil {
		t.Fatal(err)
	}
	said := runTool(t, work, nil, wstest, "--mode", "fuzzingclient", "--spec", "spec.json")
	index, err := os.ReadFile(filepath.Join(work, "index.json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var report struct {
		Echo map[string]struct{ Behavior, BehaviorClose string } `json:"echo"`
	}
	if err := json.Unmarshal(index, &report); err != nil {
		t.Fatal(err)
	}
	behaviours := map[string]string{}
	for number, r := range report.Echo {
		behaviours[number] = strings.TrimSuffix(r.Behavior+", closing "+r.BehaviorClose, ", closing "+r.Behavior)
	}
	return behaviours
}
