package client

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/client/transport"
)

// renewable reports whether the request's body can be had anew.
func renewable(r *http.Request) bool {
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}

// passing reports whether an answer says that a later one may be better.
func passing(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// passingError reports whether another attempt may fare better. It would not with errors
// that are about the request, the name or the certificate, or of an open breaker.
func passingError(err error) bool {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var open *breaker.OpenError
	if isBusy(err) {
		return true
	}
	if errors.As(err, &name) && name.IsNotFound || errors.As(err, &certificate) || errors.As(err, &open) {
		return false
	}
	// There are no types for these; TestPermanentErrors holds the words.
	text := err.Error()
	return !strings.HasPrefix(text, "transport: ") && !strings.Contains(text, "unsupported protocol scheme") && !strings.Contains(text, "net/http: invalid ") &&
		!strings.Contains(text, "http: no Host in request URL")
}

// unsent reports whether the error says that no connection could be made, or none was free, so
// that nothing of the request was sent.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || isBusy(err)
}

// isBusy reports whether all connections that may be open were in use.
func isBusy(err error) bool {
	_, is := errors.AsType[*transport.BusyError](err)
	return is
}

// retryAfter returns for how long an answer asks to be left alone (RFC 9110, section
// 10.2.3), 0 if it does not.
func retryAfter(res *http.Response, now func() time.Time) time.Duration {
	text := res.Header.Get("Retry-After")
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(n, 1<<32)) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(at.Sub(now()), 0)
}
