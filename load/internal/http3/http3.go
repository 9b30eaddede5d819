// Package http3 opens HTTP/3 connections, by quic-go.
package http3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Protocol is HTTP/3's name in the TLS handshake.
const Protocol = http3.NextProtoH3

// ErrUnsent tells that a connection took no more requests, and that this one was not sent.
var ErrUnsent = errors.New("the connection takes no more requests")

// Conn is a connection on a UDP socket of its own. Safe for concurrent use.
type Conn struct {
	conn   *quic.Conn
	client *http3.ClientConn

	inFlight atomic.Int64

	mu      sync.Mutex
	in, out uint64 // bytes that were taken
}

// Dial opens a connection to a numeric address. Headers of answers are at most maxHead
// bytes long. It sends nothing before the handshake is complete.
func Dial(ctx context.Context, addr string, config *tls.Config, maxHead int) (*Conn, error) {
	config = config.Clone()
	if config.ClientSessionCache != nil {
		config.ClientSessionCache = apart{config.ClientSessionCache}
	}
	conn, err := quic.DialAddr(ctx, addr, config, &quic.Config{MaxIncomingStreams: -1})
	if silent := (*quic.IdleTimeoutError)(nil); errors.As(err, &silent) {
		return nil, fmt.Errorf("nothing answers HTTP/3 on that UDP port: %w", err)
	}
	if err != nil {
		return nil, err
	}
	t := &http3.Transport{DisableCompression: true, MaxResponseHeaderBytes: maxHead}
	return &Conn{conn: conn, client: t.NewClientConn(conn)}, nil
}

// apart is a cache that gives each connection a session of its own: quic-go writes into
// those that it resumes, and so do several connections at a time.
type apart struct{ tls.ClientSessionCache }

// Get implements tls.ClientSessionCache.
func (c apart) Get(key string) (*tls.ClientSessionState, bool) {
	shared, ok := c.ClientSessionCache.Get(key)
	if !ok || shared == nil {
		return nil, false
	}
	ticket, state, err := shared.ResumptionState()
	if err != nil || state == nil {
		return nil, false
	}
	whole, err := state.Bytes()
	if err != nil {
		return nil, false
	}
	if state, err = tls.ParseSessionState(whole); err != nil {
		return nil, false
	}
	own, err := tls.NewResumptionState(ticket, state)
	return own, err == nil
}

// Resumed reports whether the handshake resumed a TLS session.
func (c *Conn) Resumed() bool { return c.conn.ConnectionState().TLS.DidResume }

// Available is 1: how many more streams the server allows is not known.
func (c *Conn) Available() int { return 1 }

// InFlight is the number of requests in flight.
func (c *Conn) InFlight() int { return int(c.inFlight.Load()) }

// Err is why the connection ended; nil as long as it is open.
func (c *Conn) Err() error {
	if c.conn.Context().Err() == nil {
		return nil
	}
	return context.Cause(c.conn.Context())
}

// Close ends the connection.
func (c *Conn) Close() error { return c.client.CloseWithError(0, "") }

// Take is the bytes received and sent since the last call, in QUIC's packets.
func (c *Conn) Take() (in, out int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.conn.ConnectionStats()
	in, out = int64(s.BytesReceived-c.in), int64(s.BytesSent-c.out)
	c.in, c.out = s.BytesReceived, s.BytesSent
	return in, out
}

// RoundTrip sends a request. The caller closes the answer's body. An error of a stream or a
// connection that the server ended wraps net.ErrClosed.
func (c *Conn) RoundTrip(req *http.Request) (*http.Response, error) {
	c.inFlight.Add(1)
	resp, err := c.client.RoundTrip(req)
	if err != nil {
		c.inFlight.Add(-1)
		if isUnsent(err) {
			return nil, ErrUnsent
		}
		return nil, mark(err)
	}
	resp.Body = &body{ReadCloser: resp.Body, conn: c}
	return resp, nil
}

// isUnsent reports whether err is http3's for a request without a stream. Its type is not
// exported.
func isUnsent(err error) bool { return strings.HasPrefix(err.Error(), "http3: conn unusable") }

// body marks errors, and counts the request as ended once it is closed.
type body struct {
	io.ReadCloser
	conn   *Conn
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = mark(err)
	}
	return n, err
}

func (b *body) Close() error {
	if !b.closed {
		b.closed = true
		b.conn.inFlight.Add(-1)
	}
	return b.ReadCloser.Close()
}

// cutError is an error of what the server ended.
type cutError struct{ error }

// Unwrap implements errors.Unwrap.
func (e cutError) Unwrap() []error { return []error{e.error, net.ErrClosed} }

// mark marks an error that tells that the server ended a stream.
func mark(err error) error {
	if e, ok := errors.AsType[*http3.Error](err); ok && e.Remote {
		return cutError{err}
	}
	return err
}
