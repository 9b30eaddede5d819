package load

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

// resolve finds the addresses of the endpoints, before the clock runs: what a name
// server takes is neither the generator's nor the target's.
func (p *plan) resolve(ctx context.Context) error {
	p.addrs = make([][]netip.AddrPort, len(p.script.endpoints))
	for i, e := range p.script.endpoints {
		if e.network == "unix" {
			continue
		}
		host, port, err := net.SplitHostPort(e.addr)
		if err != nil {
			return explain(e, err)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return explain(e, err)
		}
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return explain(e, err)
		}
		for _, ip := range ips {
			p.addrs[i] = append(p.addrs[i], netip.AddrPortFrom(ip.Unmap(), uint16(n)))
		}
	}
	return nil
}
