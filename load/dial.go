package load

import (
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
}

// link is an open connection and how it came to be.
type link struct {
	net.Conn            // the TLS connection, if any
	wire      *wireConn // what it runs on
	connect   time.Duration
	handshake time.Duration // 0 without TLS
	resumed   bool
}

func newDialer(s *script, o *Options) *dialer {
	d := &dialer{ends: s.endpoints, tls: make([]*tls.Config, len(s.endpoints))}
	shared := tlsConfig(o)
	for i, e := range s.endpoints {
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
	raw, err := d.dialer.DialContext(ctx, d.ends[i].network, d.ends[i].addr)
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
