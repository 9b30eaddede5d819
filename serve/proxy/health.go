package proxy

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// Check is how upstreams are asked whether they are well.
type Check struct {
	// Path is asked for by GET; an answer from 200 to 399 is good. Empty: nothing is.
	Path string
	// GRPC asks by gRPC's health protocol instead, for the server as a whole.
	GRPC bool
	// Host is whom is asked for. Empty: the upstream's address.
	Host string
	// Interval between two questions to one upstream. 0: 5 s.
	Interval time.Duration
	// Timeout of one. 0: 2 s.
	Timeout time.Duration
	// Fall is how many bad answers in a row make it ill, Rise how many good ones well.
	// 0: 3 and 2.
	Fall, Rise int
}

// checks ask upstreams.
type checks struct {
	o         Check
	scheme    string
	transport *http.Transport
}

func newChecks(o PoolOptions) (*checks, error) {
	c := o.Check
	switch {
	case c.Path == "" && !c.GRPC:
		return nil, nil
	case !c.GRPC && !strings.HasPrefix(c.Path, "/"):
		return nil, fmt.Errorf("proxy: Check.Path is %q; set one that begins with /", c.Path)
	case c.Interval < 0 || c.Timeout < 0 || c.Fall < 0 || c.Rise < 0:
		return nil, fmt.Errorf("proxy: Check has a negative number: Interval %s, Timeout %s, Fall %d, Rise %d", c.Interval, c.Timeout, c.Fall, c.Rise)
	}
	c.Interval = orDefault(c.Interval, 5*time.Second)
	c.Timeout = orDefault(c.Timeout, 2*time.Second)
	c.Fall = orDefault(c.Fall, 3)
	c.Rise = orDefault(c.Rise, 2)
	t := newSecure(headerTimeout)
	if o.Scheme == UnencryptedHTTP2 {
		t = NewUnencryptedHTTP2(0)
	}
	t.DisableKeepAlives = true // that a connection is open says nothing of the next one
	return &checks{c, urlScheme(o.Scheme), t}, nil
}

// watch asks an upstream until stop is called. The first question is at once.
func (c *checks) watch(m *member) (stop func()) {
	if c == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		good, bad := 0, 0
		for {
			if c.ask(ctx, m.address) {
				good, bad = good+1, 0
			} else {
				good, bad = 0, bad+1
			}
			switch {
			case ctx.Err() != nil:
				return
			case bad >= c.o.Fall:
				m.down.Store(true)
			case good >= c.o.Rise:
				m.down.Store(false)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(c.o.Interval*9/10 + rand.N(c.o.Interval/5+1)):
			}
		}
	}()
	return cancel
}

// ask reports whether an upstream answers well.
func (c *checks) ask(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.scheme+"://"+address+c.o.Path, nil)
	if c.o.GRPC {
		r, err = http.NewRequestWithContext(ctx, http.MethodPost, c.scheme+"://"+address+grpcHealth, strings.NewReader(grpcNothing))
	}
	if err != nil {
		return false
	}
	if c.o.GRPC {
		r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": trailersToken}
	}
	if c.o.Host != "" {
		r.Host = c.o.Host
	}
	res, err := c.transport.RoundTrip(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if c.o.GRPC {
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

var trailersToken = []string{"trailers"}
