package compat_test

import (
	"io"
	"log"
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
func TestHTTP2(t *testing.T) {
	var protos http.Protocols
	protos.SetHTTP1(true)
	protos.SetUnencryptedHTTP2(true)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	quiet := log.New(io.Discard, "", 0)
	control := &http.Server{Handler: h, Protocols: &protos, ErrorLog: quiet}
	served := &serve.Server{Handler: h, Protocols: &protos, ErrorLog: quiet}
	passed, known := h2spec(t, control.Serve, control.Close)
	if passed < 100 {
		t.Fatalf("http.Server passed %d checks, want more than 100", passed)
	}
	got, failed := h2spec(t, served.Serve, served.Close)
	for _, f := range failed {
		if !slices.Contains(known, f) {
			t.Errorf("serve fails where http.Server does not: %s", f)
		}
	}
	t.Logf("http.Server passed %d and failed %d, serve %d and %d", passed, len(known), got, len(failed))
}

// h2spec returns how many checks a server passed, and which it failed.
func h2spec(t *testing.T, run func(net.Listener) error, stop func() error) (passed int, failed []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { run(l); close(ended) }()
	c := &config.Config{
		Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Path: "/",
		Timeout: 2 * time.Second, MaxHeaderLen: 4000,
	}
	for _, g := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		g.Test(c)
		passed += g.PassedCount
		failed = append(failed, failures(g)...)
	}
	stop()
	<-ended
	return passed, failed
}

func failures(g *spec.TestGroup) []string {
	var all []string
	for _, c := range g.Tests {
		if c.Result != nil && c.Result.Failed {
			all = append(all, g.ID()+": "+c.Desc)
		}
	}
	for _, inner := range g.Groups {
		all = append(all, failures(inner)...)
	}
	return all
}
