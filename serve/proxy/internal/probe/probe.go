// Package probe asks a server whether it is well.
package probe

import (
	"context"
	"io"
	"math/rand/v2"
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

	Interval   time.Duration // between two questions of Watch to a server
	Fall, Rise int           // so many bad answers in a row make it ill, so many good ones well
}

// Watch asks the server at an address until the context ends, the first time at once. say is told
// with each answer that leaves it ill or well for sure.
func (p *Probe) Watch(ctx context.Context, address string, say func(well bool)) {
	good, bad := 0, 0
	for {
		if p.Ask(ctx, address) {
			good, bad = good+1, 0
		} else {
			good, bad = 0, bad+1
		}
		switch {
		case ctx.Err() != nil:
			return
		case bad >= p.Fall:
			say(false)
		case good >= p.Rise:
			say(true)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.Interval*9/10 + rand.N(p.Interval/5+1)):
		}
	}
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
