package wrapped_test

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/tarehq/tare/serve/internal/wrapped"
)

type listener struct{ net.Listener }

type hidden struct{ inner net.Listener }

func (h hidden) Accept() (net.Conn, error) { return h.inner.Accept() }
func (h hidden) Close() error              { return h.inner.Close() }
func (h hidden) Addr() net.Addr            { return h.inner.Addr() }

type conn struct {
	net.Conn
	_ int
}

func TestListener(t *testing.T) {
	bare := &net.TCPListener{}
	self := &listener{}
	self.Listener = self
	secret := hidden{bare}
	for _, test := range []struct {
		name    string
		l, want net.Listener
	}{
		{"bare", bare, bare},
		{"embedded", listener{bare}, bare},
		{"embedded twice, behind a pointer", &listener{listener{bare}}, bare},
		{"TLS", tls.NewListener(bare, &tls.Config{}), bare},
		{"in a field that is not embedded", secret, secret},
		{"itself", self, self},
	} {
		if got := wrapped.Listener(test.l); got != test.want {
			t.Errorf("%s: got %T, want %T", test.name, got, test.want)
		}
	}
	if got := (listener{}); wrapped.Listener(got) != net.Listener(got) {
		t.Error("a listener that embeds nil is not its own innermost")
	}
}

func TestConn(t *testing.T) {
	bare := &net.TCPConn{}
	for _, test := range []struct {
		name     string
		nc, want net.Conn
	}{
		{"bare", bare, nil},
		{"embedded", &conn{Conn: bare}, bare},
		{"a method", tls.Client(bare, &tls.Config{}), bare},
		{"nothing embedded", &conn{}, nil},
	} {
		if got := wrapped.Conn(test.nc); got != test.want {
			t.Errorf("%s: got %T, want %T", test.name, got, test.want)
		}
	}
}
