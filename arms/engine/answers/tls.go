package answers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// Secure returns plain where secure is false. Where it is true it returns what byTLS makes of a
// configuration: HTTP/1.1 alone, with a certificate that signs itself.
func Secure(secure bool, plain func(net.Listener) error, byTLS func(*tls.Config) func(net.Listener) error) func(net.Listener) error {
	if !secure {
		return plain
	}
	return func(l net.Listener) error {
		cert, err := SelfSigned()
		if err != nil {
			return err
		}
		return byTLS(&tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}})(l)
	}
}

// SelfSigned makes a key and a certificate for loopback addresses that signs itself, for a day.
func SelfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}, err
}

// WriteSelfSigned writes a certificate as [SelfSigned] makes it, and its key, to one file.
func WriteSelfSigned(name string) error {
	cert, err := SelfSigned()
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return err
	}
	both := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	both = append(both, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	return os.WriteFile(name, both, 0o600)
}
