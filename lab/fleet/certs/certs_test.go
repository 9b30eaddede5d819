package certs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/fleet/certs"
)

// TestExpired has a certificate that has ended be refused where it is, with the remedy.
func TestExpired(t *testing.T) {
	dir := t.TempDir()
	made, err := certs.Make(dir, []string{"load1"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(-time.Hour)
	old := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, certErr := x509.CreateCertificate(rand.Reader, old, old, &key.PublicKey, key)
	secret, keyErr := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(certErr, keyErr); err != nil {
		t.Fatal(err)
	}
	replace := func(path string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
			os.WriteFile(path+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	replace(filepath.Join(dir, "coordinator"))
	replace(filepath.Join(made[0], "agent"))
	_, coordinator := certs.Coordinator(dir)
	_, agent := certs.Agent(made[0])
	for who, err := range map[string]error{"coordinator": coordinator, "agent": agent} {
		if err == nil || !strings.Contains(err.Error(), who+".pem expired on") || !strings.Contains(err.Error(), "tare agent init") {
			t.Errorf("%s: got %v, want when it ended, and the remedy", who, err)
		}
	}
	// The remedy: the authority stays.
	if err := errors.Join(os.Remove(filepath.Join(dir, "coordinator.pem")), os.Remove(filepath.Join(dir, "coordinator.key")), os.RemoveAll(filepath.Join(dir, "agents"))); err != nil {
		t.Fatal(err)
	}
	if made, err = certs.Make(dir, []string{"load1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := certs.Coordinator(dir); err != nil {
		t.Error(err)
	}
	if _, err := certs.Agent(made[0]); err != nil {
		t.Error(err)
	}
}
