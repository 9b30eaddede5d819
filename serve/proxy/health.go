package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/tarehq/tare/serve/proxy/internal/probe"
)

// Check is a health check of upstreams.
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
	// TLS is how servers of the scheme https are known. Nil: by the system's authorities.
	TLS *tls.Config
}

// checks ask upstreams.
type checks struct{ probe.Probe }

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
	c.Interval = cmp.Or(c.Interval, 5*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 2*time.Second)
	c.Fall = cmp.Or(c.Fall, 3)
	c.Rise = cmp.Or(c.Rise, 2)
	t := newSecure(headerTimeout)
	if o.Scheme == UnencryptedHTTP2 {
		t = NewUnencryptedHTTP2(0)
	}
	t.TLSClientConfig = c.TLS
	t.DisableKeepAlives = true // that a connection is open says nothing of the next one
	return &checks{probe.Probe{
		Transport: t, Scheme: urlScheme(o.Scheme), Path: c.Path, GRPC: c.GRPC, Host: c.Host,
		Timeout: c.Timeout, Interval: c.Interval, Fall: c.Fall, Rise: c.Rise,
	}}, nil
}

// watch asks an upstream until stop is called. The first question is at once.
func (c *checks) watch(m *member) (stop func()) {
	if c == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go c.Watch(ctx, m.address, func(well bool) { m.down.Store(!well) })
	return cancel
}
