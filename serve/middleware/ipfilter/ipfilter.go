// Package ipfilter admits or refuses clients by their address.
//
// A denied address gets 403. Where there is a list of those allowed, so do all others.
// The lists hold IPv4 and IPv6 prefixes, 100,000 and more, and may be replaced while
// requests go on: each request sees the lists before or those after, never none.
//
// The address is that of package clientaddr. Without it, behind a proxy, it is the
// proxy's. A client without an address, as on a Unix socket, is in no list.
//
// Addresses change hands and can be had in bulk: a list keeps out what is known, and does
// not say who somebody is.
//
// Place: behind recovery, requestid, clientaddr, accesslog and cors.
//
// Cost: a search in each list; it allocates nothing. BenchmarkAllows has lists of 100,000.
package ipfilter

import (
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
)

// Options of the middleware. The zero value lets all pass.
type Options struct {
	// Allow are the only ones to pass. Nil: all.
	Allow []netip.Prefix
	// Deny are refused, also where Allow has them.
	Deny []netip.Prefix
	// Address returns the client's address. Nil: that of package clientaddr.
	Address func(*http.Request) netip.Addr
	// Refuse answers what is refused. Nil: a plain 403.
	Refuse http.Handler
}

// Filter is the middleware with its lists. It is safe for concurrent use.
type Filter struct {
	o       Options
	lists   atomic.Pointer[lists]
	refused atomic.Uint64
}

type lists struct{ allow, deny *table } // nil: no such list

// New returns a filter, or an error that says which prefix is wrong.
func New(o Options) (*Filter, error) {
	if o.Address == nil {
		o.Address = clientaddr.From
	}
	if o.Refuse == nil {
		o.Refuse = http.HandlerFunc(refuse)
	}
	f := &Filter{o: o}
	return f, f.SetLists(o.Allow, o.Deny)
}

// SetLists replaces both lists, as Options has them. On an error those before stay.
func (f *Filter) SetLists(allow, deny []netip.Prefix) error {
	var l lists
	var err error
	if allow != nil {
		if l.allow, err = newTable(allow); err != nil {
			return err
		}
	}
	if deny != nil {
		if l.deny, err = newTable(deny); err != nil {
			return err
		}
	}
	f.lists.Store(&l)
	return nil
}

// Allows reports whether a client with the address may pass.
func (f *Filter) Allows(a netip.Addr) bool {
	l := f.lists.Load()
	return (l.allow == nil || l.allow.contains(a)) && (l.deny == nil || !l.deny.contains(a))
}

// Middleware lets pass to next whom the lists do. In a chain its layer is called ipfilter,
// in the role limit.
func (f *Filter) Middleware(next http.Handler) http.Handler { return &handler{f, next} }

// Refused returns how many requests were refused.
func (f *Filter) Refused() uint64 { return f.refused.Load() }

type handler struct {
	f    *Filter
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "ipfilter", Roles: []string{"limit"}, Rules: []chain.Rule{
		chain.Before("cache", "it would answer those whom ipfilter refuses"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.f.Allows(h.f.o.Address(r)) {
		h.next.ServeHTTP(w, r)
		return
	}
	h.f.refused.Add(1)
	h.f.o.Refuse.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
}
