// Package clientaddr finds the address of the client behind proxies.
//
// Proxies report it in X-Forwarded-For or Forwarded (RFC 7239), and clients can write
// these fields as well. So only what a trusted proxy wrote is believed: from the right,
// the first address that no trusted proxy has. With no trusted proxy it is the address
// of the connection, whatever the fields say.
//
// Place: before whatever logs addresses or limits by them.
//
// Cost: nothing where the connection's address is the client's; else one allocation in
// a chain of package chain on package serve, and a copy of the request elsewhere.
package clientaddr

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/http1"
)

// Options of the middleware. The zero value trusts nobody.
type Options struct {
	// Trusted are the proxies whose word counts. See [Private].
	Trusted []netip.Prefix
	// Header is the field that they write: X-Forwarded-For (if empty), Forwarded, or one
	// with a list of addresses or a single one, such as X-Real-Ip. All of them must
	// write this one, or take it away; a client can set those that they let pass.
	Header string
}

// Private returns the addresses that are not of the internet: loopback, RFC 1918,
// RFC 6598, link-local and unique local ones. Trust them where no client can have one.
func Private() []netip.Prefix {
	var all []netip.Prefix
	for _, s := range []string{"127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
		"100.64.0.0/10", "169.254.0.0/16", "fe80::/10", "fc00::/7"} {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// New returns the middleware.
func New(o Options) func(http.Handler) http.Handler {
	if o.Header == "" {
		o.Header = "X-Forwarded-For"
	}
	o.Header = http.CanonicalHeaderKey(o.Header)
	trusted := netsOf(o.Trusted)
	return func(next http.Handler) http.Handler { return &handler{o.Header, trusted, next} }
}

// From returns the address of the client that sent r, without a zone, and IPv4 as such
// though it came by IPv6. Invalid: the connection has none, as on a Unix socket, and no
// trusted proxy named one. Without the middleware it is the connection's.
func From(r *http.Request) netip.Addr {
	if addr, ok := key.Value(r); ok && addr != direct {
		return *addr
	}
	return peer(r)
}

var key = chain.NewKey[*netip.Addr]("client address")

// direct stands for the connection's address: that it is the client's is found faster than
// that nothing is kept (BenchmarkRequest).
var direct = new(netip.Addr)

type handler struct {
	header  string
	trusted nets
	next    http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "clientaddr", Rules: []chain.Rule{
		chain.Once("both would read the same fields"),
		chain.Before("limit", "it would limit the proxies, not their clients"),
		chain.Before("auth", "it would see the proxies' addresses"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := peer(r)
	if addr := h.client(from, r.Header[h.header]); addr != from {
		found := addr // which is made here alone: &addr would have each request allocate
		r = key.With(r, &found)
	} else {
		key.Set(r, direct) // in a chain; elsewhere it would take a copy of the request
	}
	h.next.ServeHTTP(w, r)
}

// peer returns the address of the connection.
func peer(r *http.Request) netip.Addr {
	if addr, ok := peer4(r.RemoteAddr); ok {
		return addr
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return plain(at.Addr())
}

func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// client follows the fields from the connection's address outwards, as far as trusted
// proxies wrote them. Where one wrote what is not an address, its own is the last known.
func (h *handler) client(from netip.Addr, fields []string) netip.Addr {
	elements := backwards{fields: fields}
	// A Unix socket has no address: who can connect to it is trusted if anybody is.
	for !from.IsValid() && h.trusted.some || h.trusted.contain(from) {
		element, ok := elements.next()
		if !ok {
			return from
		}
		if h.header == "Forwarded" {
			element = forwardedFor(element)
		}
		addr, ok := parse(element)
		if !ok {
			return from
		}
		from = addr
	}
	return from
}

// backwards goes through the elements of comma-separated lists, from the last one on.
type backwards struct {
	fields []string
	line   string // what is left of the last one, if more is
	more   bool
}

func (b *backwards) next() (element string, ok bool) {
	if !b.more {
		last := len(b.fields) - 1
		if last < 0 {
			return "", false
		}
		b.line, b.fields = b.fields[last], b.fields[:last]
	}
	b.line, element, b.more = cutLast(b.line, ',')
	return element, true
}

// cutLast returns what stands behind the last separator, and what before. A separator within
// quotes separates nothing; X-Forwarded-For has no quotes.
func cutLast(list string, separator byte) (before, last string, found bool) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case list[i] == '"' && !escaped(list, i):
			quoted = !quoted
		case list[i] == separator && !quoted:
			return list[:i], http1.TrimValue(list[i+1:]), true
		}
	}
	return "", http1.TrimValue(list), false
}

// escaped reports whether an odd number of backslashes stands before line[i].
func escaped(line string, i int) bool {
	n := 0
	for i > n && line[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the value of for= in an element of Forwarded; empty if it has
// none, or more than one.
func forwardedFor(element string) string {
	value, found := "", 0
	for more := true; more; {
		var pair string
		element, pair, more = cutLast(element, ';')
		name, v, ok := strings.Cut(pair, "=")
		if ok && strings.EqualFold(name, "for") {
			value = v
			found++
		}
	}
	if found != 1 {
		return ""
	}
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1] // an address needs no backslash: with one it is none
	}
	if i := strings.LastIndex(value, ":_"); i >= 0 { // a port that is hidden (RFC 7239, section 6.3)
		value = value[:i]
	}
	return value
}

// parse reads an address with or without a port; IPv6 in brackets or without.
func parse(s string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return plain(addr), addr.Zone() == ""
	}
	if n := len(s); n > 2 && s[0] == '[' && s[n-1] == ']' {
		addr, err := netip.ParseAddr(s[1 : n-1])
		return plain(addr), err == nil && addr.Is6() && addr.Zone() == ""
	}
	at, err := netip.ParseAddrPort(s)
	return plain(at.Addr()), err == nil && at.Addr().Zone() == ""
}
