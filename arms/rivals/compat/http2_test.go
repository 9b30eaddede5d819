package compat_test

import (
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"

	"github.com/tarehq/tare/serve"
)

// TestHTTP2 runs h2spec, which checks a server against each section of the
// HTTP/2 and HPACK specifications. serve hands HTTP/2 to the standard library's
// server: it must not fail where http.Server does not.
//
// Some checks hang on whether an answer or a frame is quicker, and then either
// server fails now and then. So a check counts if serve fails it each time it is
// asked, and http.Server, asked as often, never does.
func TestHTTP2(t *testing.T) {
	var protos http.Protocols
	protos.SetHTTP1(true)
	protos.SetUnencryptedHTTP2(true)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // an answer before the body's end would close the stream that is being checked
		io.WriteString(w, "hello")
	})
	quiet := log.New(io.Discard, "", 0)
	control := &http.Server{Handler: h, Protocols: &protos, ErrorLog: quiet}
	served := &serve.Server{Handler: h, Protocols: &protos, ErrorLog: quiet}
	theirs := listen(t, control.Serve, control.Close)
	ours := listen(t, served.Serve, served.Close)

	passed, known := h2spec(theirs)
	if passed < 100 {
		t.Fatalf("http.Server passed %d checks, want more than 100", passed)
	}
	got, failed := h2spec(ours)
	t.Logf("http.Server passed %d and failed %d, serve %d and %d", passed, len(known), got, len(failed))
	doubt := without(failed, known)
	for range 4 {
		if len(doubt) == 0 {
			return
		}
		_, known = h2spec(theirs, slices.Collect(maps.Keys(doubt))...)
		_, failed = h2spec(ours, slices.Collect(maps.Keys(doubt))...)
		doubt = without(failed, known)
	}
	for id, what := range doubt {
		t.Errorf("serve fails where http.Server does not: %s: %s", id, what)
	}
}

func without(failed, known map[string]string) map[string]string {
	left := maps.Clone(failed)
	maps.DeleteFunc(left, func(id, _ string) bool { _, ok := known[id]; return ok })
	return left
}

// listen runs a server until the test ends and returns its port.
func listen(t *testing.T, run func(net.Listener) error, stop func() error) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { run(l); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
	return l.Addr().(*net.TCPAddr).Port
}

// h2spec makes the checks, all if none is named, and returns how many a server
// passed and which it failed: ids with what they are about.
func h2spec(port int, checks ...string) (passed int, failed map[string]string) {
	c := &config.Config{
		Host: "127.0.0.1", Port: port, Path: "/", Sections: checks,
		Timeout: 2 * time.Second, MaxHeaderLen: 4000,
	}
	failed = map[string]string{}
	for _, g := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		g.Test(c)
		passed += g.PassedCount
		addFailures(failed, g)
	}
	return passed, failed
}

func addFailures(to map[string]string, g *spec.TestGroup) {
	for _, c := range g.Tests {
		if c.Result != nil && c.Result.Failed {
			to[fmt.Sprintf("%s/%d", g.ID(), c.Result.Sequence)] = c.Desc
		}
	}
	for _, inner := range g.Groups {
		addFailures(to, inner)
	}
}
