package load_test

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
)

// choppy passes on what is written in pieces that end anywhere.
type choppy struct {
	net.Conn
	rng *rand.Rand
}

func (c choppy) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = c.Conn.Write(p[n:min(len(p), n+1+c.rng.IntN(300))])
		n += m
		if c.rng.IntN(4) == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
	return n, err
}

// choppyListener accepts choppy connections.
type choppyListener struct{ net.Listener }

func (l choppyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.(*net.TCPConn).SetNoDelay(true)
	return choppy{c, rand.New(rand.NewPCG(1, 2))}, nil
}

// TLS's records are put together however they come, of either version, with and without
// sessions that are resumed.
func TestRecordsInPieces(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 40_000/16)
	length := int64(len(body))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			cert := certificate(t, "127.0.0.1", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })}
			config := &tls.Config{Certificates: []tls.Certificate{cert}, MaxVersion: version}
			go s.Serve(tls.NewListener(choppyListener{l}, config))
			defer s.Close()
			for _, share := range []float64{0, 0.5} {
				r := run(t, context.Background(), load.Options{Engine: load.Epoll, Connections: 4, Requests: 100, NewConnections: share,
					TLS: &tls.Config{InsecureSkipVerify: true}, Timeout: time.Minute,
					Targets: []load.Target{{URL: "https://" + l.Addr().String(), Verify: load.Verify{Length: &length, Contains: "f0"}}}})
				if r.Counts.Status[2] != 100 || r.Counts.Unverified != 0 || share > 0 && r.Resumed == 0 {
					t.Errorf("new connections %v: got %+v, %d sessions resumed; want 100 verified answers", share, r.Counts, r.Resumed)
				}
			}
		})
	}
}

// What ends a TLS connection within an answer, or before one, is counted as what it is.
func TestSecureEnds(t *testing.T) {
	cert := certificate(t, "127.0.0.1", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	config := &tls.Config{Certificates: []tls.Certificate{cert}}
	const part = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
	for name, tt := range map[string]struct {
		act  func(tc *tls.Conn, raw net.Conn)
		want func(load.Counts) uint64
	}{
		"closed before": {func(tc *tls.Conn, _ net.Conn) { tc.Close() }, func(c load.Counts) uint64 { return c.Reset }},
		"cut before":    {func(_ *tls.Conn, raw net.Conn) { raw.Close() }, func(c load.Counts) uint64 { return c.Reset }},
		"closed within": {func(tc *tls.Conn, _ net.Conn) { io.WriteString(tc, part); tc.Close() }, func(c load.Counts) uint64 { return c.Short }},
		"no record":     {func(tc *tls.Conn, raw net.Conn) { io.WriteString(tc, part); io.WriteString(raw, "plain text") }, func(c load.Counts) uint64 { return c.Short }},
		"forged record": {func(tc *tls.Conn, raw net.Conn) { raw.Write(append([]byte{23, 3, 3, 0, 32}, make([]byte, 32)...)) }, func(c load.Counts) uint64 { return c.Reset }},
		"cut in a record": {func(tc *tls.Conn, raw net.Conn) {
			io.WriteString(tc, part)
			raw.Write([]byte{23, 3, 3, 0, 32, 1})
			raw.Close()
		}, func(c load.Counts) uint64 { return c.Short }},
		"malformed":         {func(tc *tls.Conn, _ net.Conn) { io.WriteString(tc, "220 ready\r\n") }, func(c load.Counts) uint64 { return c.Malformed }},
		"whole, then close": {func(tc *tls.Conn, _ net.Conn) { io.WriteString(tc, part+"defghi"); tc.Close() }, func(c load.Counts) uint64 { return c.Status[2] }},
		"until close":       {func(tc *tls.Conn, _ net.Conn) { io.WriteString(tc, "HTTP/1.0 200 OK\r\n\r\nall"); tc.Close() }, func(c load.Counts) uint64 { return c.Status[2] }},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := hostile(t, func(raw net.Conn) {
				tc := tls.Server(raw, config)
				if _, err := tc.Read(make([]byte, 1024)); err == nil {
					tt.act(tc, raw)
					raw.Read(make([]byte, 1024)) // until the other side has enough
				}
			})
			r, err := load.Run(context.Background(), load.Options{Engine: load.Epoll, Requests: 6, Connections: 2, Timeout: time.Minute,
				TLS: &tls.Config{InsecureSkipVerify: true}, Targets: []load.Target{{URL: "https://" + addr}}})
			if r == nil {
				t.Fatal(err)
			}
			checkSums(t, r)
			// One that is closed while the next request is on its way resets that.
			if got := tt.want(r.Counts); got != 6 && !(name == "whole, then close" && got+r.Counts.Reset == 6) {
				t.Errorf("got %+v (%v), want all 6 of the kind", r.Counts, err)
			}
		})
	}
}

// Handshakes that do not end are given up with their requests, and told as what they are.
func TestHandshakeTimesOut(t *testing.T) {
	addr, _ := hostile(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	begun := time.Now()
	r, err := load.Run(context.Background(), load.Options{Engine: load.Epoll, Requests: 4, Connections: 2, Timeout: 300 * time.Millisecond,
		Targets: []load.Target{{URL: "https://" + addr}}})
	if r == nil || r.Counts.Timeout != 4 || !strings.Contains(err.Error(), "did not shake hands") || time.Since(begun) > 20*time.Second {
		t.Errorf("after %v: got %+v and error %v, want 4 timed out in the handshake", time.Since(begun), r, err)
	}
}
