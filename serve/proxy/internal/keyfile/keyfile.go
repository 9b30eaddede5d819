// Package keyfile reads keys, certificates and lists that a proxy's file names.
package keyfile

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// most bounds a file, in bytes.
const most = 16 << 20

// Read reads a file, of which it takes 16 MiB at most. What is not a plain file is an error.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a file", path))
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// Key reads a key: a secret, whose last line's end does not count, or a public one in PEM.
func Key(secret, public string) (any, error) {
	data, err := Read(cmp.Or(secret, public))
	if err != nil {
		return nil, err
	}
	if secret != "" {
		return []byte(strings.TrimRight(string(data), "\r\n")), nil
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s has no key in PEM", public)
	}
	if block.Type == "CERTIFICATE" {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", public, err)
		}
		return c.PublicKey, nil
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", public, err)
	}
	return key, nil
}

// Trust is how servers are known by TLS, and the proxy to them. The zero value: by the host of
// their address and the system's authorities, and not at all.
type Trust struct {
	Name string // that their certificates have

	roots, certificate, key string // in PEM: what files hold is compared as it is
}

// ReadTrust reads the files of a trust: authorities, and the proxy's certificate with its key.
func ReadTrust(name, roots, certificate, key string) (Trust, error) {
	t := Trust{Name: name}
	if (certificate == "") != (key == "") {
		return t, errors.New("a certificate and its key go together")
	}
	for _, file := range []struct {
		path string
		to   *string
	}{{roots, &t.roots}, {certificate, &t.certificate}, {key, &t.key}} {
		if file.path == "" {
			continue
		}
		data, err := Read(file.path)
		if err != nil {
			return t, err
		}
		*file.to = string(data)
	}
	if roots != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(t.roots)) {
		return t, fmt.Errorf("%s has no certificate in PEM", roots)
	}
	if certificate != "" {
		if _, err := tls.X509KeyPair([]byte(t.certificate), []byte(t.key)); err != nil {
			return t, fmt.Errorf("%s and %s: %w", certificate, key, err)
		}
	}
	return t, nil
}

// Config returns the settings of TLS that the trust stands for. They are the caller's.
func (t *Trust) Config() *tls.Config {
	c := &tls.Config{ServerName: t.Name}
	if t.roots != "" {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AppendCertsFromPEM([]byte(t.roots))
	}
	if pair, err := tls.X509KeyPair([]byte(t.certificate), []byte(t.key)); err == nil { // else there is none
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}
