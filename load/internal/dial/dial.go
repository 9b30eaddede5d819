// Package dial opens connections by way of package net, and tells why one could not be
// opened and what to do about it.
package dial

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/load/internal/http1"
	"github.com/tarehq/tare/load/internal/http3"
	"github.com/tarehq/tare/load/internal/proxy"
	"github.com/tarehq/tare/load/internal/wire"
)

// errNoHTTP2 tells that a TLS server did not agree to speak HTTP/2.
var errNoHTTP2 = errors.New("the server did not agree to HTTP/2")

// Endpoint is a place to connect to.
type Endpoint struct {
	Network string // "tcp" or "unix"
	Addr    string // host:port, or the socket's path
	Host    string // the name that a certificate must hold; "" without TLS
	TLS     bool
	Proxied bool   // Addr is the proxy's
	Tunnel  string // the host:port that the proxy is to connect to; "": requests name it
}

// Config says where connections go and how.
type Config struct {
	Ends  []Endpoint
	Addrs [][]netip.AddrPort // by endpoint, as Resolve finds them
	Proxy *proxy.Proxy       // opens the tunnels; nil where no endpoint has one
	TLS   *tls.Config        // for the endpoints that have TLS; its first protocol is asked for
}

// Dialer opens connections. Safe for concurrent use.
type Dialer struct {
	dialer net.Dialer
	proxy  *proxy.Proxy
	tls    []*tls.Config // by endpoint; nil entries are plain
	ends   []Endpoint
	addrs  [][]string     // by endpoint
	best   []atomic.Int32 // by endpoint: the address to try first
}

// Link is an open connection and how it came to be.
type Link struct {
	net.Conn             // the TLS connection, if any
	Wire      *wire.Conn // what it runs on
	Connect   time.Duration
	Handshake time.Duration // 0 without TLS
	Resumed   bool
	Reached   atomic.Bool // the server, or the proxy's tunnel to it: the handshake is next
}

// New makes a dialer.
func New(c Config) *Dialer {
	n := len(c.Ends)
	d := &Dialer{proxy: c.Proxy, ends: c.Ends, tls: make([]*tls.Config, n), addrs: make([][]string, n), best: make([]atomic.Int32, n)}
	for i, e := range c.Ends {
		for _, a := range c.Addrs[i] {
			d.addrs[i] = append(d.addrs[i], a.String())
		}
		if e.Network == "unix" {
			d.addrs[i] = []string{e.Addr}
		}
		if !e.TLS {
			continue
		}
		d.tls[i] = c.TLS.Clone()
		if d.tls[i].ServerName == "" {
			d.tls[i].ServerName = e.Host
		}
	}
	return d
}

// Dial opens a connection to endpoint i. ctx bounds the whole of it.
func (d *Dialer) Dial(ctx context.Context, i int) (*Link, error) {
	l := new(Link)
	if err := d.Open(ctx, l, i); err != nil {
		return nil, err
	}
	return l, nil
}

// Open makes l, which is new, a connection to endpoint i. Others may look at l.Reached
// meanwhile.
func (d *Dialer) Open(ctx context.Context, l *Link, i int) error {
	start := time.Now()
	var raw net.Conn
	err := d.reach(ctx, i, func(ctx context.Context, addr string) (err error) {
		raw, err = d.dialer.DialContext(ctx, d.ends[i].Network, addr)
		return err
	})
	if err != nil {
		return err
	}
	if host := d.ends[i].Tunnel; host != "" {
		through, err := d.proxy.Tunnel(ctx, raw, host)
		if err != nil {
			raw.Close()
			return err
		}
		raw = through
	}
	connected := time.Now()
	l.Reached.Store(true)
	l.Wire, l.Connect = &wire.Conn{Conn: raw}, connected.Sub(start)
	l.Conn = l.Wire
	if d.tls[i] == nil {
		return nil
	}
	tc := tls.Client(l.Wire, d.tls[i])
	if err := tc.HandshakeContext(ctx); err != nil {
		raw.Close()
		return &HandshakeError{err}
	}
	st := tc.ConnectionState()
	if d.tls[i].NextProtos[0] == "h2" && st.NegotiatedProtocol != "h2" {
		tc.Close()
		return &HandshakeError{errNoHTTP2}
	}
	l.Conn, l.Resumed = tc, st.DidResume
	l.Handshake = time.Since(connected)
	return nil
}

// DialHTTP3 opens an HTTP/3 connection to endpoint i. Its handshake is what connects; the
// link has no more than how it came to be.
func (d *Dialer) DialHTTP3(ctx context.Context, i int) (conn *http3.Conn, l *Link, err error) {
	start := time.Now()
	err = d.reach(ctx, i, func(ctx context.Context, addr string) (err error) {
		conn, err = http3.Dial(ctx, addr, d.tls[i], http1.MaxHead)
		return err
	})
	if err != nil {
		return nil, nil, &HandshakeError{err}
	}
	took := time.Since(start)
	return conn, &Link{Connect: took, Handshake: took, Resumed: conn.Resumed()}, nil
}

// reach opens endpoint i at the address that was reached last, or the next that
// can be. Each may take an equal part of the time that is left.
func (d *Dialer) reach(ctx context.Context, i int, open func(ctx context.Context, addr string) error) error {
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

// HandshakeError is what ended a TLS handshake on a connection that was made.
type HandshakeError struct{ Err error }

func (e *HandshakeError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *HandshakeError) Unwrap() error { return e.Err }
