// Package certs makes and reads the certificates of a coordinator and its agents.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// How long certificates are valid.
const (
	authorityFor = 10 * 365 * 24 * time.Hour
	memberFor    = 2 * 365 * 24 * time.Hour
)

// The files of a folder of certificates, keys beside them.
const (
	authority   = "ca"
	coordinator = "coordinator"
	agent       = "agent"
	agentsDir   = "agents" // holds a folder for each agent
)

var hostName = regexp.MustCompile(`^(\*\.)?[a-zA-Z0-9]([a-zA-Z0-9._-]{0,251}[a-zA-Z0-9])?$`)

// Make makes in dir an authority, a certificate for a coordinator, and one for an agent on
// each host, a name or an address, in dir/agents/HOST. *.example stands for all hosts of that
// domain, in dir/agents/any.example. What is there already is kept: the
// authority signs for further hosts. All are ECDSA on P-256. Only the owner may read the files.
// It returns the folders made for agents.
func Make(dir string, hosts []string) ([]string, error) {
	for _, h := range hosts {
		if net.ParseIP(h) == nil && !hostName.MatchString(h) {
			return nil, fmt.Errorf("%q is neither a host's name nor an address", h)
		}
		if _, err := os.Lstat(agentDir(dir, h)); err == nil {
			return nil, fmt.Errorf("%s is there already: remove it to make another certificate", agentDir(dir, h))
		}
	}
	ca, err := makeAuthority(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(dir, coordinator+".pem")); errors.Is(err, fs.ErrNotExist) {
		client := member("tare coordinator")
		client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		if err := ca.issue(client, filepath.Join(dir, coordinator)); err != nil {
			return nil, err
		}
	}
	var made []string
	for _, h := range hosts {
		if err := ca.issueAgent(h, agentDir(dir, h)); err != nil {
			return made, err
		}
		made = append(made, agentDir(dir, h))
	}
	return made, nil
}

func agentDir(dir, host string) string {
	return filepath.Join(dir, agentsDir, strings.NewReplacer(":", "-", "*", "any").Replace(host))
}

// issuer is a certificate that signs others.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// makeAuthority reads the authority in dir, or makes one.
func makeAuthority(dir string) (*issuer, error) {
	path := filepath.Join(dir, authority)
	if _, err := os.Lstat(path + ".key"); err == nil {
		return readAuthority(path)
	}
	t := member("tare agents")
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage, t.NotAfter = x509.KeyUsageCertSign, time.Now().Add(authorityFor)
	self := &issuer{cert: t}
	if err := self.issue(t, path); err != nil {
		return nil, err
	}
	return readAuthority(path)
}

func readAuthority(path string) (*issuer, error) {
	pair, err := readPair(path)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("%s.pem is not the certificate of an authority that tare made", path)
	}
	return &issuer{cert: pair.Leaf, key: key}, nil
}

func member(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(memberFor),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// issueAgent makes the folder that goes to an agent's host.
func (ca *issuer) issueAgent(host, dir string) error {
	t := member("tare agent " + host)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = []net.IP{ip}
	} else {
		t.DNSNames = []string{host}
	}
	if err := ca.issue(t, filepath.Join(dir, agent)); err != nil {
		return err
	}
	return writeSecret(filepath.Join(dir, authority+".pem"), "CERTIFICATE", ca.cert.Raw)
}

// issue makes a key and a certificate for it, path.key and path.pem. An issuer without a
// key signs its own.
func (ca *issuer) issue(t *x509.Certificate, path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return fmt.Errorf("drawing a serial number: %w", err)
	}
	signer := ca.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, ca.cert, &key.PublicKey, signer)
	if err != nil {
		return fmt.Errorf("making certificate %q: %w", t.Subject.CommonName, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the key of %q: %w", t.Subject.CommonName, err)
	}
	return errors.Join(writeSecret(path+".key", "PRIVATE KEY", secret), writeSecret(path+".pem", "CERTIFICATE", der))
}

// writeSecret writes a new file that its owner alone may read.
func writeSecret(path, kind string, der []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of certificates: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing a certificate: %w", err)
	}
	return errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Close())
}

// readPair reads path.pem and path.key, which others must not be able to read. One that has
// expired is an error: the other side would only say that something is wrong with it.
func readPair(path string) (tls.Certificate, error) {
	info, err := os.Stat(path + ".key")
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading a key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return tls.Certificate{}, fmt.Errorf("%s.key has mode %#o, so that others may use it: run chmod 600 on it", path, mode)
	}
	pair, err := tls.LoadX509KeyPair(path+".pem", path+".key")
	if err != nil {
		return pair, fmt.Errorf("reading certificate %s.pem: %w", path, err)
	}
	if end := pair.Leaf.NotAfter; time.Now().After(end) {
		return pair, fmt.Errorf("certificate %s.pem expired on %s: remove all but ca.pem and ca.key from the folder of `tare agent init`, and run that again", path, end.Format(time.DateOnly))
	}
	return pair, nil
}

// Coordinator reads from the folder that Make made what a coordinator needs.
func Coordinator(dir string) (*tls.Config, error) {
	c, pool, err := memberTLS(dir, coordinator)
	if err == nil {
		c.RootCAs = pool
	}
	return c, err
}

// Agent reads from an agent's folder what it needs. It takes only coordinators with a
// certificate of the same authority.
func Agent(dir string) (*tls.Config, error) {
	c, pool, err := memberTLS(dir, agent)
	if err == nil {
		c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return c, err
}

func memberTLS(dir, name string) (*tls.Config, *x509.CertPool, error) {
	pair, err := readPair(filepath.Join(dir, name))
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, authority+".pem")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("%s holds no certificate", path)
	}
	// Frames are read whole, so small records would only be more of them.
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, DynamicRecordSizingDisabled: true}, pool, nil
}
