package dial

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

// Resolve finds the addresses of endpoints, none for a Unix socket. Errors are explained.
func Resolve(ctx context.Context, ends []Endpoint) ([][]netip.AddrPort, error) {
	addrs := make([][]netip.AddrPort, len(ends))
	for i, e := range ends {
		if e.Network == "unix" {
			continue
		}
		host, port, err := net.SplitHostPort(e.Addr)
		if err != nil {
			return nil, Explain(e, err)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, Explain(e, err)
		}
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, Explain(e, err)
		}
		for _, ip := range ips {
			addrs[i] = append(addrs[i], netip.AddrPortFrom(ip.Unmap(), uint16(n)))
		}
	}
	return addrs, nil
}
