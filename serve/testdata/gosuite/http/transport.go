package http

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tarehq/tare/serve/client/transport"
)

func init() {
	http.SuiteRoundTrip, http.SuiteCloseIdle = roundTrip, closeIdle
}

// transports are ours, each for one of Go's, a *transport.Transport by an *http.Transport.
var transports sync.Map

// roundTrip sends a request by the transport under test, unless that is not for it.
func roundTrip(t *http.Transport, r *http.Request) (res *http.Response, ours bool, err error) {
	if r.URL != nil && r.URL.Scheme != "http" || t.Protocols != nil && !t.Protocols.HTTP1() {
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

func closeIdle(t *http.Transport) {
	if ours, ok := transports.Load(t); ok {
		ours.(*transport.Transport).CloseIdleConnections()
	}
}

// transportOf returns ours with the settings of Go's.
func transportOf(t *http.Transport) *transport.Transport {
	if ours, ok := transports.Load(t); ok {
		return ours.(*transport.Transport)
	}
	const ever = 24 * time.Hour
	o := transport.Options{
		Dial:          func(ctx context.Context, network, address string) (net.Conn, error) { return dial(t, ctx, network, address) },
		HeaderTimeout: orDefault(t.ResponseHeaderTimeout, -1),
		IdleTimeout:   orDefault(t.IdleConnTimeout, ever),
		Idle:          orDefault(t.MaxIdleConnsPerHost, http.DefaultMaxIdleConnsPerHost),
		HeaderBytes:   orDefault(int(t.MaxResponseHeaderBytes), 10<<20),
	}
	ours, _ := transports.LoadOrStore(t, &transport.Transport{Options: o})
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

func orDefault[T comparable](v, otherwise T) T {
	if v == *new(T) {
		return otherwise
	}
	return v
}
