package load

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// errNoHTTP2 tells that a TLS server did not agree to speak HTTP/2.
var errNoHTTP2 = errors.New("the server did not agree to HTTP/2")

// dialer opens the connections of the engines that go through package net.
type dialer struct {
	dialer net.Dialer
	tls    []*tls.Config // by endpoint; nil entries are plain
	ends   []endpoint
	addrs  [][]string     // by endpoint
	best   []atomic.Int32 // by endpoint: the address to try first
}

// link is an open connection and how it came to be.
type link struct {
	net.Conn            // the TLS connection, if any
	wire      *wireConn // what it runs on
	connect   time.Duration
	handshake time.Duration // 0 without TLS
	resumed   bool
	taken     atomic.Bool // HTTP/2: a request found a stream of it free
}

func newDialer(p *plan) *dialer {
	n := len(p.script.endpoints)
	d := &dialer{ends: p.script.endpoints, tls: make([]*tls.Config, n), addrs: make([][]string, n), best: make([]atomic.Int32, n)}
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
	c.NextProtos = []string{"http/1.1"}
	if o.Protocol == HTTP2 {
		c.NextProtos = []string{"h2"}
	}
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
	start := nanotime()
	raw, err := d.connect(ctx, i)
	if err != nil {
		return nil, err
	}
	connected := nanotime()
	l := &link{wire: &wireConn{Conn: raw}, connect: time.Duration(connected - start)}
	l.Conn = l.wire
	if d.tls[i] == nil {
		return l, nil
	}
	tc := tls.Client(l.wire, d.tls[i])
	if err := tc.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, &handshakeError{err}
	}
	st := tc.ConnectionState()
	if d.tls[i].NextProtos[0] == "h2" && st.NegotiatedProtocol != "h2" {
		tc.Close()
		return nil, &handshakeError{errNoHTTP2}
	}
	l.Conn, l.resumed = tc, st.DidResume
	l.handshake = time.Duration(nanotime() - connected)
	return l, nil
}

// connect reaches endpoint i at the address that was reached last, or the next that
// can be. Each may take an equal part of the time that is left.
func (d *dialer) connect(ctx context.Context, i int) (net.Conn, error) {
	var first error
	n, best := len(d.addrs[i]), d.best[i].Load()
	for k := range n {
		at := (int(best) + k) % n
		part, cancel := ctx, context.CancelFunc(func() {})
		if t, ok := ctx.Deadline(); ok && k < n-1 {
			part, cancel = context.WithTimeout(ctx, time.Until(t)/time.Duration(n-k))
		}
		conn, err := d.dialer.DialContext(part, d.ends[i].network, d.addrs[i][at])
		cancel()
		if err == nil {
			d.best[i].Store(int32(at))
			return conn, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// handshakeError is what ended a TLS handshake on a connection that was made.
type handshakeError struct{ error }

func (e *handshakeError) Unwrap() error { return e.error }

// wireConn counts what passes to and from the transport layer.
type wireConn struct {
	net.Conn
	in, out atomic.Int64 // bytes not yet taken
}

func (c *wireConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

// Write counts p before it writes: in HTTP/2 an answer may come before the call
// that wrote its request returns. What was not written is taken off again.
func (c *wireConn) Write(p []byte) (int, error) {
	c.out.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.out.Add(int64(n - len(p)))
	return n, err
}

// take is the bytes read and written since the last call. The latter may be
// less than zero, after a write that was cut short.
func (c *wireConn) take() (in, out int64) {
	return c.in.Swap(0), c.out.Swap(0)
}
