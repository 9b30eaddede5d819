package engines_test

import (
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/tarehq/tare/arms/serve/engines"
)

func TestFlag(t *testing.T) {
	for _, name := range []string{"nethttp", "serve", "serve-reuse"} {
		var e engines.Engine
		if err := e.Set(name); err != nil || e.String() != name {
			t.Errorf("Set(%q): got %q, %v", name, e, err)
		}
	}
	var e engines.Engine
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Var(&e, "server", "")
	if err := f.Parse([]string{"-server", "apache"}); err == nil || !strings.Contains(err.Error(), "nethttp, serve and serve-reuse") {
		t.Errorf("-server apache: got %v, want the known names", err)
	}
}

func TestRun(t *testing.T) {
	for _, e := range []engines.Engine{engines.NetHTTP, engines.Serve, engines.ServeReuse, ""} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		run := e.Run(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "for "+r.URL.Path) // the client reads it whole
		}))
		go func() { ended <- run(l) }()
		transport := &http.Transport{DisableKeepAlives: true}
		res, err := transport.RoundTrip(mustRequest(t, "http://"+l.Addr().String()+"/x"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(body) != "for /x" {
			t.Errorf("%s: got %q, %v, want %q", e, body, err, "for /x")
		}
		l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: ended with %v, want %v", e, err, net.ErrClosed)
		}
	}
}

func mustRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
