package load

import (
	"cmp"
	"context"
	"crypto/tls"

	"github.com/tarehq/tare/load/internal/dial"
)

// resolve finds the addresses of the endpoints, before the clock runs: what a name
// server takes is neither the generator's nor the target's.
func (p *plan) resolve(ctx context.Context) (err error) {
	p.addrs, err = dial.Resolve(ctx, p.script.endpoints)
	return err
}

// newDialer is one for the plan's endpoints, with TLS sessions of its own.
func newDialer(p *plan) *dial.Dialer {
	return dial.New(dial.Config{Ends: p.script.endpoints, Addrs: p.addrs, Proxy: p.script.proxy, TLS: tlsConfig(p.opts)})
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
