package load

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/load/internal/http1"
	"github.com/tarehq/tare/load/internal/http3"
	"github.com/tarehq/tare/load/internal/proxy"
	"github.com/tarehq/tare/load/internal/wire"
)

// errNoHTTP2 tells that a TLS server did not agree to speak HTTP/2.
var errNoHTTP2 = errors.New("the server did not agree to HTTP/2")

// dialer opens the connections of the engines that go through package net.
type dialer struct {
	dialer net.Dialer
	proxy  *proxy.Proxy
	tls    []*tls.Config // by endpoint; nil entries are plain
	ends   []endpoint
	addrs  [][]string     // by endpoint
	best   []atomic.Int32 // by endpoint: the address to try first
}

// link is an open connection and how it came to be.
type link struct {
	net.Conn             // the TLS connection, if any
	wire      *wire.Conn // what it runs on
	connect   time.Duration
	handshake time.Duration // 0 without TLS
	resumed   bool
	reached   atomic.Bool // the server, or the proxy's tunnel to it: the handshake is next
	taken     atomic.Bool // HTTP/2: a request found a stream of it free
}

func newDialer(p *plan) *dialer {
	n := len(p.script.endpoints)
	d := &dialer{proxy: p.script.proxy, ends: p.script.endpoints, tls: make([]*tls.Config, n), addrs: make([][]string, n), best: make([]atomic.Int32, n)}
	shared := tlsConfig(p.opts)
	for i, e := range d.ends {
		for _, a := range p.addrs[i] {
			d.addrs[i] = append(d.addrs[i], a.String())
		}
		if e.network == "unix" {
			d.addrs[i] = []string{e.addr}
		}
		if !e.tls {
			continue
		}
		d.tls[i] = shared.Clone()
		if d.tls[i].ServerName == "" {
			d.tls[i].ServerName = e.host
		}
	}
	return d
}

// tlsConfig is o.TLS with what the run decides: protocol and resumption.
func tlsConfig(o *Options) *tls.Config {
	c := o.TLS.Clone()
	if c == nil {
		c = &tls.Config{}
	}
	c.NextProtos = []string{cmp.Or(string(o.Protocol), "http/1.1")}
	switch {
	case o.NoResume:
		c.ClientSessionCache, c.SessionTicketsDisabled = nil, true
	case c.ClientSessionCache == nil:
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return c
}

// dial opens a connection to endpoint i. ctx bounds the whole of it.
func (d *dialer) dial(ctx context.Context, i int) (*link, error) {
	l := new(link)
	if err := d.open(ctx, l, i); err != nil {
		return nil, err
	}
	return l, nil
}

// open makes l a connection to endpoint i.
func (d *dialer) open(ctx context.Context, l *link, i int) error {
	start := nanotime()
	var raw net.Conn
	err := d.reach(ctx, i, func(ctx context.Context, addr string) (err error) {
		raw, err = d.dialer.DialContext(ctx, d.ends[i].network, addr)
		return err
	})
	if err != nil {
		return err
	}
	if host := d.ends[i].tunnel; host != "" {
		through, err := d.proxy.Tunnel(ctx, raw, host)
		if err != nil {
			raw.Close()
			return err
		}
		raw = through
	}
	connected := nanotime()
	l.reached.Store(true)
	l.wire, l.connect = &wire.Conn{Conn: raw}, time.Duration(connected-start)
	l.Conn = l.wire
	if d.tls[i] == nil {
		return nil
	}
	tc := tls.Client(l.wire, d.tls[i])
	if err := tc.HandshakeContext(ctx); err != nil {
		raw.Close()
		return &handshakeError{err}
	}
	st := tc.ConnectionState()
	if d.tls[i].NextProtos[0] == "h2" && st.NegotiatedProtocol != "h2" {
		tc.Close()
		return &handshakeError{errNoHTTP2}
	}
	l.Conn, l.resumed = tc, st.DidResume
	l.handshake = time.Duration(nanotime() - connected)
	return nil
}

// dialHTTP3 opens an HTTP/3 connection to endpoint i. Its handshake is what connects.
func (d *dialer) dialHTTP3(ctx context.Context, i int) (conn *http3.Conn, l *link, err error) {
	start := nanotime()
	err = d.reach(ctx, i, func(ctx context.Context, addr string) (err error) {
		conn, err = http3.Dial(ctx, addr, d.tls[i], http1.MaxHead)
		return err
	})
	if err != nil {
		return nil, nil, &handshakeError{err}
	}
	took := time.Duration(nanotime() - start)
	return conn, &link{connect: took, handshake: took, resumed: conn.Resumed()}, nil
}

// reach opens endpoint i at the address that was reached last, or the next that
// can be. Each may take an equal part of the time that is left.
func (d *dialer) reach(ctx context.Context, i int, open func(ctx context.Context, addr string) error) error {
	var first error
	n, best := len(d.addrs[i]), d.best[i].Load()
	for k := range n {
		at := (int(best) + k) % n
		part, cancel := ctx, context.CancelFunc(func() {})
		if t, ok := ctx.Deadline(); ok && k < n-1 {
			part, cancel = context.WithTimeout(ctx, time.Until(t)/time.Duration(n-k))
		}
		err := open(part, d.addrs[i][at])
		cancel()
		if err == nil {
			d.best[i].Store(int32(at))
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// handshakeError is what ended a TLS handshake on a connection that was made.
type handshakeError struct{ error }

func (e *handshakeError) Unwrap() error { return e.error }
