package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// secureConfig is that of a TLS server by words. Its certificate signs itself.
func secureConfig(words string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	var key crypto.Signer
	var err error
	for word := range strings.SplitSeq(words, ",") {
		switch word {
		case "1.2":
			c.MaxVersion = tls.VersionTLS12
		case "1.3":
			c.MinVersion = tls.VersionTLS13
		case "ecdsa":
			key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		case "rsa":
			key, err = rsa.GenerateKey(rand.Reader, 2048)
		case "no-tickets":
			c.SessionTicketsDisabled = true
		case "no-alpn":
			c.NextProtos = nil
		default:
			err = fmt.Errorf("-tls: %q is none of 1.2, 1.3, ecdsa, rsa, no-tickets, no-alpn", word)
		}
		if err != nil {
			return nil, err
		}
	}
	if key == nil {
		return nil, fmt.Errorf("-tls %s: ecdsa or rsa is missing", words)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return c, nil
}
