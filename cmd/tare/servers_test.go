package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/internal/forward"
	"github.com/tarehq/tare/internal/sockets"
)

// startServers starts what scripts load, and returns the variables by which
// they find it:
//
//	$URL         echoes bodies; /status/NNN, /slow (50 ms), /guarded (401 without
//	             X-Token: a:b, c)
//	$TLSURL      the same over TLS, HTTP/2 offered; $CA is its authority
//	$EXPIREDURL  a certificate that is no longer valid
//	$PROXY       an HTTP proxy
//	$GUARDED     an HTTP proxy that wants ada's password, x
//	$DEADURL     nothing listens there
//	$SOCKET      the path of a Unix socket, the same server
func startServers(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	plain := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	secure.EnableHTTP2 = true
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that clients refuse
	secure.StartTLS()
	t.Cleanup(secure.Close)
	ca := filepath.Join(dir, "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o644); err != nil {
		t.Fatal(err)
	}
	expired := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	expired.TLS = &tls.Config{Certificates: []tls.Certificate{expiredCertificate(t)}}
	expired.Config.ErrorLog = secure.Config.ErrorLog
	expired.StartTLS()
	t.Cleanup(expired.Close)
	socket := sockets.Path(t)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	local := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(answer)}}
	local.Start()
	t.Cleanup(local.Close)
	guarded := forward.Start(t, "Basic YWRhOng=")
	return []string{
		"PROXY=" + forward.Start(t, "").URL, "GUARDED=" + guarded.URL[len("http://"):],
		"URL=" + plain.URL, "TLSURL=" + secure.URL, "CA=" + ca, "EXPIREDURL=" + expired.URL,
		"DEADURL=" + deadURL(t), "SOCKET=" + socket,
	}
}

// Greet is a middleware that allocates and sleeps, so that there is something to
// find.
func Greet(next http.Handler) http.Handler {
	var kept atomic.Pointer[[]byte]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 64<<10)
		kept.Store(&b)
		time.Sleep(time.Millisecond)
		next.ServeHTTP(w, r)
	})
}

// answer is the servers' handler.
func answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/slow" {
		time.Sleep(50 * time.Millisecond)
	}
	if r.URL.Path == "/guarded" && r.Header.Get("X-Token") != "a:b, c" {
		w.WriteHeader(http.StatusUnauthorized)
	}
	if r.URL.Path == "/moved" {
		http.Redirect(w, r, "/there", http.StatusFound)
		return
	}
	if name, password, _ := r.BasicAuth(); r.URL.Path == "/user" && (name != "ada" || password != "s:3cret") {
		w.WriteHeader(http.StatusUnauthorized)
	}
	if code, err := strconv.Atoi(filepath.Base(r.URL.Path)); err == nil {
		w.WriteHeader(code)
	}
	w.Header().Set("X-Method", r.Method)
	io.WriteString(w, "hello\n")
	io.Copy(w, r.Body)
}

// deadURL is one at which nothing listens: the port was free a moment ago.
func deadURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return "http://" + l.Addr().String()
}

// expiredCertificate was valid until yesterday.
func expiredCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().AddDate(0, 0, -10), NotAfter: time.Now().AddDate(0, 0, -1),
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
