package serve_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDiffCiphers wants ciphers that HTTP/2 cannot do with to be an error where the
// server begins, not in each of its connections.
func TestDiffCiphers(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		server := s.make(&http.Server{TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{certificate()},
			CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA},
		}})
		ended := make(chan error, 1)
		go func() { ended <- server.ServeTLS(l, "", "") }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "CipherSuites") {
				t.Errorf("ServeTLS returned %v, want an error that names CipherSuites", err)
			}
		case <-time.After(patience):
			server.Close()
			t.Errorf("ServeTLS serves")
		}
	})
}
