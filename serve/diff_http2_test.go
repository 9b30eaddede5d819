package serve_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// protocols is a set of the protocols named.
func protocols(names ...string) *http.Protocols {
	var p http.Protocols
	for _, n := range names {
		switch n {
		case "1":
			p.SetHTTP1(true)
		case "2":
			p.SetHTTP2(true)
		case "h2c":
			p.SetUnencryptedHTTP2(true)
		}
	}
	return &p
}

// ask sends one request with the client's protocols and tells what came back.
func ask(t *testing.T, addr string, by carriage, p *http.Protocols) string {
	t.Helper()
	tr := &http.Transport{Protocols: p, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer tr.CloseIdleConnections()
	scheme := "http://"
	if by == encrypted {
		scheme = "https://"
	}
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Post(scheme+addr+"/x?q=1", "text/plain", strings.NewReader("hello"))
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Proto + " " + resp.Status + " " + string(body) + " " + class(err) + " trailer " + fields(resp.Trailer)
}

// echo2 answers over any version with what HTTP/2 makes different.
func echo2(j *journal, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	_, hijacks := w.(http.Hijacker)
	_, strings := w.(io.StringWriter)
	j.note("%s %s %q %s length %d hijacks %v strings %v tls %v", r.Proto, r.URL, body, class(err), r.ContentLength, hijacks, strings, r.TLS != nil)
	_, isServer := r.Context().Value(http.ServerContextKey).(*http.Server)
	j.note("server %v local %v", isServer, r.Context().Value(http.LocalAddrContextKey) != nil)
	w.Header().Set("Trailer", "X-Sum")
	io.WriteString(w, "over "+r.Proto)
	http.NewResponseController(w).Flush()
	w.Header().Set("X-Sum", "5")
}

// TestDiffHTTP2 compares which protocol is spoken, and that it answers.
func TestDiffHTTP2(t *testing.T) {
	tests := []struct {
		name           string
		by             carriage
		server, client *http.Protocols
		want           string
	}{
		{"ALPN by default", encrypted, nil, protocols("1", "2"), "HTTP/2.0 200 OK"},
		{"client of version 1", encrypted, nil, protocols("1"), "HTTP/1.1 200 OK"},
		{"server of version 1", encrypted, protocols("1"), protocols("1", "2"), "HTTP/1.1 200 OK"},
		{"server of version 2", encrypted, protocols("2"), protocols("2"), "HTTP/2.0 200 OK"},
		{"prior knowledge", whole, protocols("1", "h2c"), protocols("h2c"), "HTTP/2.0 200 OK"},
		{"prior knowledge and version 1", whole, protocols("1", "h2c"), protocols("1"), "HTTP/1.1 200 OK"},
		{"prior knowledge alone", whole, protocols("h2c"), protocols("h2c"), "HTTP/2.0 200 OK"},
		{"prior knowledge alone and version 1", whole, protocols("h2c"), protocols("1"), ""},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			run := func(s side) (string, string) {
				j := &journal{}
				run := start(t, s, x.by, j, func(hs *http.Server) { hs.Handler, hs.Protocols = j.watch(echo2), x.server })
				got := ask(t, run.addr, x.by, x.client)
				j.settle(t)
				run.stop(t)
				return got, j.text()
			}
			answer, seen := run(control())
			if x.want != "" && !strings.HasPrefix(answer, x.want) {
				t.Fatalf("net/http: answer %q, want %q", answer, x.want)
			}
			for _, s := range sides() {
				gotAnswer, gotSeen := run(s)
				if gotAnswer != answer || gotSeen != seen {
					t.Errorf("%s: answer %q, handler saw\n%s\twant %q and\n%s", s.name, gotAnswer, visible(gotSeen), answer, visible(seen))
				}
			}
		})
	}
}

// TestDiffTLSNextProto compares the hand-over to a protocol of the user's.
func TestDiffTLSNextProto(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		run := start(t, s, encrypted, &journal{}, func(hs *http.Server) {
			hs.TLSConfig.NextProtos = []string{"own", "http/1.1"}
			hs.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
				"own": func(hs *http.Server, c *tls.Conn, h http.Handler) {
					io.WriteString(c, "own protocol")
					c.Close()
				},
			}
		})
		conn, err := tls.Dial("tcp", run.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"own"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		got, err := io.ReadAll(conn)
		if string(got) != "own protocol" || err != nil {
			t.Errorf("got %q and %v, want the protocol's own bytes", got, err)
		}
		run.stop(t)
	})
}

// TestDiffPlainToTLS compares what an HTTP client gets that forgot TLS.
func TestDiffPlainToTLS(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		j := &journal{}
		run := start(t, s, encrypted, j, func(hs *http.Server) { hs.Handler = j.watch(see) })
		conn, err := net.Dial("tcp", run.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, request("/"))
		got, _ := io.ReadAll(conn)
		const want = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
		if string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
		run.stop(t)
	})
}

// TestDiffALPNOrder wants TLSConfig.NextProtos to go first, in its order.
func TestDiffALPNOrder(t *testing.T) {
	for _, own := range [][]string{nil, {"http/1.1"}, {"h2"}, {"own"}, {"own", "http/1.1"}} {
		agreed := func(s side) string {
			run := start(t, s, encrypted, &journal{}, func(hs *http.Server) { hs.TLSConfig.NextProtos = own })
			defer run.stop(t)
			conn, err := tls.Dial("tcp", run.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			return conn.ConnectionState().NegotiatedProtocol
		}
		want := agreed(control())
		for _, s := range sides() {
			if got := agreed(s); got != want {
				t.Errorf("NextProtos %q: %s speaks %q, want %q", own, s.name, got, want)
			}
		}
	}
}

// TestDiffHTTP2Idle compares for how long a connection is kept that is to be kept
// for ever, where requests have a limit.
func TestDiffHTTP2Idle(t *testing.T) {
	const limit = time.Second // on a busy machine a handshake takes its time, which is in it
	everySide(t, func(t *testing.T, s side) {
		t.Parallel()
		ended := make(chan bool, 1)
		run := start(t, s, encrypted, &journal{}, func(hs *http.Server) {
			hs.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			hs.ReadTimeout, hs.IdleTimeout = limit, -1
			hs.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateClosed {
					ended <- true
				}
			}
		})
		tr := &http.Transport{Protocols: protocols("2"), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr, Timeout: patience}).Get("https://" + run.addr)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		select {
		case <-ended:
			t.Errorf("the connection ended by ReadTimeout; IdleTimeout is less than zero")
		case <-time.After(limit * 3 / 2):
		}
	})
}
