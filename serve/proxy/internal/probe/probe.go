// Package probe asks a server whether it is well.
package probe

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// Probe is a question, the same for many servers. It is safe for concurrent use.
type Probe struct {
	Transport http.RoundTripper
	Scheme    string        // of the URL
	Path      string        // is asked for by GET; an answer from 200 to 399 is good
	GRPC      bool          // asks by gRPC's health protocol instead
	Host      string        // is whom is asked for; empty: the address
	Timeout   time.Duration // for the whole answer
}

// Ask reports whether the server at an address, host:port, answers well.
func (p *Probe) Ask(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Scheme+"://"+address+p.Path, nil)
	if p.GRPC {
		r, err = http.NewRequestWithContext(ctx, http.MethodPost, p.Scheme+"://"+address+grpcHealth, strings.NewReader(grpcNothing))
	}
	if err != nil {
		return false
	}
	if p.GRPC {
		r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	}
	if p.Host != "" {
		r.Host = p.Host
	}
	res, err := p.Transport.RoundTrip(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if p.GRPC {
		return err == nil && string(body) == grpcServing && res.Trailer.Get("Grpc-Status") == "0"
	}
	return err == nil && res.StatusCode >= 200 && res.StatusCode < 400
}

// gRPC's health protocol (grpc.health.v1), as it is on the wire.
const (
	grpcHealth  = "/grpc.health.v1.Health/Check"
	grpcNothing = "\x00\x00\x00\x00\x00"         // a message without fields
	grpcServing = "\x00\x00\x00\x00\x02\x08\x01" // field 1, the status, is SERVING
)
