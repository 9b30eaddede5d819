package http

import (
	"cmp"
	"context"
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tarehq/tare/serve/client/transport"
)

func init() {
	http.SuiteRoundTrip, http.SuiteCloseIdle = roundTrip, closeIdle
}

// transports are ours, each for one of Go's: a *transport.Transport by a standsFor.
var transports sync.Map

// standsFor is whose settings a transport has. Tests set others for TLS between requests.
type standsFor struct {
	t   *http.Transport
	tls *tls.Config
}

// roundTrip sends a request by the transport under test, unless that is not for it.
func roundTrip(t *http.Transport, r *http.Request) (res *http.Response, ours bool, err error) {
	if r.URL != nil && !isOurs(t, r.URL.Scheme) {
		return nil, false, nil
	}
	if t.Proxy != nil && r.URL != nil {
		if proxy, err := t.Proxy(r); proxy != nil || err != nil {
			return nil, false, nil
		}
	}
	sent := r
	if t.DisableKeepAlives {
		sent = r.WithContext(r.Context())
		sent.Close = true
	}
	res, err = transportOf(t).RoundTrip(sent)
	if res != nil {
		res.Request = r
	}
	return res, true, err
}

// isOurs reports whether requests of a scheme go by HTTP/1.1 and by connections that Go's
// transport does not have made by others.
func isOurs(t *http.Transport, scheme string) bool {
	switch {
	case scheme == "http":
		return t.Protocols == nil || t.Protocols.HTTP1()
	case scheme != "https", t.Protocols != nil, t.ForceAttemptHTTP2, t.TLSNextProto != nil, t.DialTLS != nil, t.DialTLSContext != nil:
		return false
	}
	return t.TLSClientConfig == nil || !slices.Contains(t.TLSClientConfig.NextProtos, "h2")
}

func closeIdle(t *http.Transport) {
	transports.Range(func(of, ours any) bool {
		if of.(standsFor).t == t {
			ours.(*transport.Transport).CloseIdleConnections()
		}
		return true
	})
}

// transportOf returns ours with the settings of Go's.
func transportOf(t *http.Transport) *transport.Transport {
	of := standsFor{t, t.TLSClientConfig}
	if ours, ok := transports.Load(of); ok {
		return ours.(*transport.Transport)
	}
	const ever = 24 * time.Hour
	o := transport.Options{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(t, ctx, network, address)
		},
		HeaderTimeout: cmp.Or(t.ResponseHeaderTimeout, -1),
		IdleTimeout:   cmp.Or(t.IdleConnTimeout, ever),
		Idle:          cmp.Or(t.MaxIdleConnsPerHost, http.DefaultMaxIdleConnsPerHost),
		Conns:         t.MaxConnsPerHost,
		Queue:         math.MaxInt,
		QueueTimeout:  ever,
		HeaderBytes:   cmp.Or(int(t.MaxResponseHeaderBytes), 10<<20),
		TLS:           cmp.Or(t.TLSClientConfig, new(tls.Config)),
	}
	ours, _ := transports.LoadOrStore(of, &transport.Transport{Options: o})
	return ours.(*transport.Transport)
}

func dial(t *http.Transport, ctx context.Context, network, address string) (net.Conn, error) {
	switch {
	case t.DialContext != nil:
		return t.DialContext(ctx, network, address)
	case t.Dial != nil:
		return t.Dial(network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}
