package transport_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/client/transport"
)

// counted is a RoundTripper that counts its requests.
type counted struct {
	http.RoundTripper
	n atomic.Int64
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// TestSecure has requests by TLS go on connections of the transport's own, which are used again,
// and those to hosts that choose HTTP/2 to the other one.
func TestSecure(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var conns atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %d %v", r.Proto, len(body), err)
		}))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		s.EnableHTTP2 = http2
		s.StartTLS()
		other := &counted{RoundTripper: s.Client().Transport}
		tr := &transport.Transport{Options: transport.Options{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig.Clone(), Other: other}}
		want, wantConns, wantOther := "HTTP/1.1", int64(1), int64(0)
		if http2 {
			want, wantConns, wantOther = "HTTP/2.0", 2, 3 // one connection finds out
		}
		for _, size := range []int{1, 100, 100_000} {
			r := must(http.NewRequest("PUT", s.URL, bytes.NewReader(make([]byte, size))))
			res, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if string(text) != fmt.Sprintf("%s %d <nil>", want, size) || err != nil || res.TLS == nil {
				t.Errorf("got %q, %v, TLS %v, want %s", text, err, res.TLS, want)
			}
		}
		if conns.Load() != wantConns || other.n.Load() != wantOther {
			t.Errorf("%s: %d connections and %d requests of the other transport's, want %d and %d", want, conns.Load(), other.n.Load(), wantConns, wantOther)
		}
		tr.CloseIdleConnections()
		s.Close()
	}
}

// TestUntrusted has nothing be sent to a server whose certificate nobody knows, and the error
// say that no connection was made.
func TestUntrusted(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	tr := &transport.Transport{Options: transport.Options{TLS: new(tls.Config)}}
	_, err := tr.RoundTrip(must(http.NewRequest("POST", s.URL, nil)))
	var certificate *tls.CertificateVerificationError
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "dial" || !errors.As(err, &certificate) {
		t.Errorf("got %v", err)
	}
}

// held is a connection that sends nothing until it is told.
type held struct {
	net.Conn
	hold bool
	text []byte
}

func (h *held) Write(p []byte) (int, error) {
	if h.hold {
		h.text = append(h.text, p...)
		return len(p), nil
	}
	return h.Conn.Write(p)
}

func (h *held) release() {
	h.hold = false
	_, _ = h.Conn.Write(h.text)
	h.text = nil
}

// TestUnasked has an answer that nobody has asked for, and that came with the one before, in a
// record of its own, be given to nobody.
func TestUnasked(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	config := &tls.Config{Certificates: certificate.TLS.Certificates}
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				h := &held{Conn: nc}
				c := tls.Server(h, config)
				for in := bufio.NewReader(c); ; {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					h.hold = true
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
					h.release()
				}
			}()
		}
	}()
	tr := &transport.Transport{Options: transport.Options{TLS: &tls.Config{InsecureSkipVerify: true}}}
	defer tr.CloseIdleConnections()
	for range 3 {
		res, err := tr.RoundTrip(must(http.NewRequest("GET", "https://"+l.Addr().String(), nil)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if string(text) != "ok" || err != nil {
			t.Errorf("got %q, %v", text, err)
		}
	}
}

// TestEndsWithLastByte has an answer that is whole be so, too, if the connection's end comes with
// its last byte.
func TestEndsWithLastByte(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		h := &held{Conn: nc}
		c := tls.Server(h, &tls.Config{Certificates: certificate.TLS.Certificates, MaxVersion: tls.VersionTLS12}) // 1.3 hides what comes next
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
		h.hold = true
		_, _ = c.Write(make([]byte, 100))
		_ = c.CloseWrite()
		_ = nc.SetWriteDeadline(time.Time{}) // which CloseWrite has set to now
		h.release()
		nc.Close()
	}()
	tr := &transport.Transport{Options: transport.Options{TLS: &tls.Config{InsecureSkipVerify: true}}}
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(must(http.NewRequest("GET", "https://"+l.Addr().String(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, struct{ io.Reader }{res.Body}); n != 100 || err != nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
}
