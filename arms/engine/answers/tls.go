package answers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"time"
)

// Secure returns serve where secure is false. Where it is true, connections that serve gets
// speak TLS, and by it HTTP/1.1 alone, with a certificate that signs itself.
func Secure(secure bool, serve func(net.Listener) error) func(net.Listener) error {
	if !secure {
		return serve
	}
	return func(l net.Listener) error {
		cert, err := SelfSigned()
		if err != nil {
			return err
		}
		return serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}))
	}
}

// SelfSigned makes a key and a certificate that signs itself, for a day.
func SelfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}, err
}
