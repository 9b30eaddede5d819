package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
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

// shakingHands answers a request after a handshake between two ends in memory. The client
// offers ALPN and keeps its session, as tare's does.
func shakingHands(server *tls.Config) http.HandlerFunc {
	client := newClient()
	return func(w http.ResponseWriter, _ *http.Request) {
		if _, err := shakeHands(client, server); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "ok\n") // who asked is gone if it fails
	}
}

func newClient() *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, ServerName: "arm", NextProtos: []string{"http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(1),
	}
}

// shakeHands returns what the client knows after a handshake and a byte from the server,
// before which a ticket comes.
func shakeHands(client, server *tls.Config) (tls.ConnectionState, error) {
	near, far := connect()
	defer near.Close()
	written := make(chan error, 1)
	go func() {
		defer far.Close()
		_, err := tls.Server(far, server).Write([]byte{0})
		written <- err
	}()
	c := tls.Client(near, client)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return tls.ConnectionState{}, err
	}
	return c.ConnectionState(), <-written
}

// end is one of two ends of a connection in memory. What is written waits to be read: in a
// handshake both ends may write at once, which blocks those of a net.Pipe for ever.
type end struct {
	net.Conn // for what a handshake does not ask for
	in       <-chan []byte
	out      chan<- []byte
	rest     []byte
}

func connect() (near, far *end) {
	const mostWritten = 64 // far more than a handshake writes
	a, b := net.Pipe()
	to, from := make(chan []byte, mostWritten), make(chan []byte, mostWritten)
	return &end{Conn: a, in: from, out: to}, &end{Conn: b, in: to, out: from}
}

func (e *end) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		e.rest = <-e.in
	}
	if len(e.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *end) Write(p []byte) (int, error) {
	e.out <- bytes.Clone(p)
	return len(p), nil
}

// Close ends what the other end reads. It is called once.
func (e *end) Close() error {
	close(e.out)
	return e.Conn.Close()
}
