package dial

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/tarehq/tare/load/internal/proxy"
)

// Explain is err, which kept a connection to e from being made, with its
// remedy.
func Explain(e Endpoint, err error) error {
	doing, remedy := "connecting to "+e.Addr, connectRemedy(e, err)
	if e.Proxied {
		doing = "connecting to the proxy " + e.Addr
	}
	if _, ok := errors.AsType[*HandshakeError](err); ok {
		doing, remedy = "securing the connection to "+cmp.Or(e.Tunnel, e.Addr), tlsRemedy(e, err)
	}
	if refusal, ok := errors.AsType[*proxy.Refusal](err); ok {
		doing, remedy = "opening a tunnel to "+e.Tunnel, refusal.Remedy
	}
	if remedy == "" {
		return fmt.Errorf("%s: %w", doing, BareCause(err))
	}
	return fmt.Errorf("%s: %w: %s", doing, BareCause(err), remedy)
}

// BareCause drops package net's "dial tcp 127.0.0.1:1: connect: " from err,
// which Explain says in its own words.
func BareCause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		err = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		err = sys.Err
	}
	return err
}

// connectRemedy is what to do about a connection that could not be opened.
func connectRemedy(e Endpoint, err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "check the host's name"
	case errors.Is(err, syscall.ECONNREFUSED) && e.Network == "unix":
		return "nothing listens on a socket of that path; start the server or check the path"
	case errors.Is(err, syscall.EINVAL) && e.Network == "unix":
		return "the path is too long for a socket's; use a link to it"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there; start the server or check the port"
	case errors.Is(err, syscall.ENOENT) && e.Network == "unix":
		return "no socket has that path; start the server or check the path"
	case errors.Is(err, syscall.EACCES) && e.Network == "unix":
		return "the socket's permissions forbid it"
	case errors.Is(err, syscall.EMFILE):
		return "too few file descriptors for this many connections; raise the limit with ulimit -n or use fewer connections"
	case errors.Is(err, syscall.ENFILE):
		return "the system has too few file descriptors; raise fs.file-max or use fewer connections"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no local port is free; widen net.ipv4.ip_local_port_range, or reuse connections"
	case errors.Is(err, syscall.EAGAIN) && e.Network == "unix":
		return "the server's listen queue is full: it accepts more slowly than connections are made"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "no route leads there; check the address and the network"
	case IsTimeout(err):
		return "no connection within the time-out; check the address, or raise the time-out"
	}
	return ""
}

// tlsRemedy is what to do about a handshake that went wrong.
func tlsRemedy(e Endpoint, err error) string {
	var (
		record  tls.RecordHeaderError
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
	)
	switch {
	case errors.As(err, &record):
		return "the server does not speak TLS on this port; use http://"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return expiry(invalid.Cert, time.Now()) + "; renew it, or turn verification off to test all the same"
	case errors.As(err, &unknown):
		return "give the certificate of the authority that signed it, or turn verification off to test all the same"
	case errors.As(err, &name):
		return fmt.Sprintf("the certificate is not for %q; use a name that it holds, or turn verification off to test all the same", e.Host)
	case errors.Is(err, errNoHTTP2), strings.Contains(err.Error(), "no application protocol"):
		return "the server does not offer the protocol asked for; use the other HTTP version"
	case IsTimeout(err):
		return "the server did not shake hands within the time-out; it may not speak TLS on this port"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "the server hung up; it may not speak TLS on this port"
	}
	return ""
}

// expiry says when c is valid.
func expiry(c *x509.Certificate, now time.Time) string {
	if now.Before(c.NotBefore) {
		return "the certificate is valid from " + c.NotBefore.Format(time.DateTime) + " only, or this machine's clock is behind"
	}
	return "the certificate expired on " + c.NotAfter.Format(time.DateTime)
}

// IsTimeout reports whether err is a time-out of any layer. EAGAIN, which a Unix
// socket's full listen queue gives at once, is none, although it says so.
func IsTimeout(err error) bool {
	if errors.Is(err, syscall.EAGAIN) {
		return false
	}
	var t interface{ Timeout() bool }
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &t) && t.Timeout()
}
