// Package discover finds a pool's servers by DNS, and finds them again as often as the
// records say.
//
// [DNS] looks up addresses (A and AAAA), or services (SRV). The standard library's resolver
// does the work: it asks the system's DNS servers, and again by TCP where an answer is too
// long. It says nothing of how long its answers are good for, so the answers' times to live
// are read off the packets on their way.
//
// While a name cannot be looked up, or has no address any more, the servers that were found
// last stay: a resolver that fails is no reason to fail requests.
//
// Package kube, below, finds the servers of a Kubernetes service.
package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/balance"
)

// DNS is a name whose records are servers. Name must be set.
type DNS struct {
	// Name is a host, such as shop.internal, or of SRV records, such as
	// _http._tcp.shop.internal.
	Name string
	// Port is that of the servers. 0: the name is of SRV records, which say it. Of these
	// the ones of the best priority count; their weights become those of the servers.
	Port uint16
	// Server is the DNS server, as host:port. Empty: those of the system.
	Server string
	// Least and Most bound how long an answer is good for, whatever it says. Without a
	// time to live, as from a file of hosts, it is good for Default. 0: a second, 5 min
	// and 30 s.
	Least, Most, Default time.Duration
}

const (
	defaultLeast = time.Second
	defaultMost  = 5 * time.Minute
	defaultTTL   = 30 * time.Second
	lookupTime   = 10 * time.Second // of all questions of one look-up
	longestPause = 30 * time.Second // after one that failed
)

// Watch looks the name up until ctx ends. It calls found with an error, and with the
// servers, whenever they differ from those before or an error came between. found is not
// called twice at a time.
func (d *DNS) Watch(ctx context.Context, found func([]proxy.Server, error)) {
	var last []proxy.Server // nil: none were found, or an error came since
	pause := d.least()
	for {
		servers, ttl, err := d.Lookup(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			found(nil, err)
			last = nil
			ttl, pause = pause, min(2*pause, longestPause)
		} else {
			pause = d.least()
			if !slices.Equal(servers, last) {
				found(servers, nil)
				last = servers
			}
		}
		timer := time.NewTimer(ttl)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (d *DNS) least() time.Duration { return cmp.Or(d.Least, defaultLeast) }

// Lookup looks the name up once. It returns at least one server, in a fixed order, and for
// how long the answer is good.
func (d *DNS) Lookup(ctx context.Context) ([]proxy.Server, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	var seen ttls
	r := d.resolver(&seen)
	var servers []proxy.Server
	var err error
	if d.Port != 0 {
		servers, err = hosts(ctx, r, d.Name, d.Port, 0)
	} else {
		servers, err = services(ctx, r, d.Name)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("looking up %s: %w", d.Name, err)
	}
	slices.SortFunc(servers, func(a, b proxy.Server) int { return strings.Compare(a.Address, b.Address) })
	servers = slices.CompactFunc(servers, func(a, b proxy.Server) bool { return a.Address == b.Address })
	if len(servers) > balance.Most {
		servers = servers[:balance.Most]
	}
	return servers, d.bound(&seen), nil
}

// bound returns for how long an answer is good.
func (d *DNS) bound(seen *ttls) time.Duration {
	ttl, ok := seen.least()
	if !ok {
		return cmp.Or(d.Default, defaultTTL)
	}
	return min(max(ttl, d.least()), cmp.Or(d.Most, defaultMost))
}

// resolver returns one whose answers' times to live are noted.
func (d *DNS) resolver(seen *ttls) *net.Resolver {
	return &net.Resolver{
		PreferGo:     true,
		StrictErrors: true, // half of the addresses would be worse than those there were
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if d.Server != "" {
				address = d.Server
			}
			var dialer net.Dialer
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return seen.watch(c), nil
		},
	}
}

// hosts are the addresses of a name, as servers.
func hosts(ctx context.Context, r *net.Resolver, name string, port uint16, weight int) ([]proxy.Server, error) {
	addrs, err := r.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, err
	}
	var servers []proxy.Server
	for _, a := range addrs {
		servers = append(servers, proxy.Server{Address: netip.AddrPortFrom(a.Unmap(), port).String(), Weight: weight})
	}
	return servers, nil
}

// services are the servers of the best priority that SRV records name.
func services(ctx context.Context, r *net.Resolver, name string) ([]proxy.Server, error) {
	_, records, err := r.LookupSRV(ctx, "", "", name)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(s *net.SRV) bool { return s.Target == "." || s.Port == 0 })
	if len(records) == 0 {
		return nil, errors.New("the service is not offered there")
	}
	best, heaviest := uint16(math.MaxUint16), uint16(1)
	for _, s := range records {
		best = min(best, s.Priority)
	}
	records = slices.DeleteFunc(records, func(s *net.SRV) bool { return s.Priority != best })
	for _, s := range records {
		heaviest = max(heaviest, s.Weight)
	}
	var servers []proxy.Server
	var missing error
	for _, s := range records[:min(len(records), balance.Most)] {
		weight := max((int(s.Weight)*balance.MostWeight+int(heaviest)/2)/int(heaviest), 1)
		some, err := hosts(ctx, r, s.Target, s.Port, weight)
		if err != nil {
			err = fmt.Errorf("%s:%s: %w", s.Target, strconv.Itoa(int(s.Port)), err)
		}
		switch not, _ := errors.AsType[*net.DNSError](err); {
		case not != nil && not.IsNotFound: // a host that is gone takes no others with it
			missing = err
		case err != nil:
			return nil, err
		}
		servers = append(servers, some...)
	}
	if len(servers) == 0 {
		return nil, missing
	}
	return servers, nil
}
