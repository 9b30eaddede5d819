// Package ratelimit refuses requests of clients that ask too often.
//
// It keeps its counts in memory, in a table of fixed size: no key makes it grow, no
// goroutine clears up. Where more clients are active at a time than Options.Keys, those
// that rested longest are forgotten and begin anew; [Limiter.Evicted] counts them. A
// refused client gets 429 with Retry-After (RFC 6585, RFC 9110).
//
// Keys are kept as 64-bit hashes with a secret seed. Two clients share a limit with a
// chance of one in 10¹³ for a million of them, and nobody can bring that about.
//
// A request counts at [chain.Begun]: when it came, if accesslog or metrics stands outside, else
// when it gets here. One that would be refused for that, as others that came later were faster on
// the way, counts when it gets here, too.
//
// Place: behind clientaddr, before what costs: authentication, bodies, handlers. A
// limit by user or token stands behind authentication.
//
// Cost: one lock that a thousandth of the keys share; it allocates nothing unless
// Announce is set or the request is refused.
package ratelimit

import (
	"fmt"
	"hash/maphash"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/chain"
)

// Options of a limiter. Law must be set.
type Options struct {
	Law Law
	// Key says whose requests count together. Zero: [ByAddress].
	Key Key
	// Keys is how many clients are counted at a time: 24 to 48 bytes of memory each.
	// 0: 65,536.
	Keys int
	// Announce has answers say what is left, as [Policy] does. It allocates.
	Announce bool
	// Refuse answers what is refused; Retry-After is set. Nil: a plain 429.
	Refuse http.Handler
}

// Limiter is a rate limit. It is safe for concurrent use, and may be part of many
// chains, which then share its counts.
type Limiter struct {
	o       Options
	seed    maphash.Seed
	table   *table
	zero    time.Time // of its clock: a length of the law ago, so that there is a window before the first
	policy  Policy
	refused atomic.Uint64
}

// defaultKeys is Options.Keys if that is 0: 3 MiB.
const defaultKeys = 1 << 16

// New returns a limiter, or an error that says which option is wrong.
func New(o Options) (*Limiter, error) {
	policy, err := NewPolicy(o.Law)
	if err != nil {
		return nil, err
	}
	if o.Keys < 0 || o.Keys > 1<<30 {
		return nil, fmt.Errorf("ratelimit: Options.Keys is %d; set from 1 to 2³⁰, or 0 for %d", o.Keys, defaultKeys)
	}
	if o.Keys == 0 {
		o.Keys = defaultKeys
	}
	if o.Key.hash == nil {
		o.Key = ByAddress()
	}
	if o.Refuse == nil {
		o.Refuse = http.HandlerFunc(refuse)
	}
	_, per := policy.law.quota()
	return &Limiter{o: o, seed: maphash.MakeSeed(), table: newTable(o.Keys), zero: time.Now().Add(-per), policy: policy}, nil
}

// Middleware limits what reaches next. In a chain its layer is called ratelimit, in the
// role limit.
func (l *Limiter) Middleware(next http.Handler) http.Handler { return &handler{l, next} }

// Take has a request counted n times now, as the middleware does once, and returns what
// became of it: for handlers that know what a request costs.
func (l *Limiter) Take(r *http.Request, n uint32) Result {
	res := l.takeAt(time.Since(l.zero), r, n)
	if !res.Allowed {
		l.refused.Add(1)
	}
	return res
}

func (l *Limiter) takeAt(now time.Duration, r *http.Request, n uint32) Result {
	return l.table.update(l.o.Key.hash(l.seed, r), int64(now), l.policy.law, n)
}

// Refused returns how many requests were refused.
func (l *Limiter) Refused() uint64 { return l.refused.Load() }

// Evicted returns how many clients were forgotten for want of room before all they had
// used came back. If it grows, Options.Keys is too small.
func (l *Limiter) Evicted() uint64 { return l.table.evicted.Load() }

type handler struct {
	l    *Limiter
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "ratelimit", Roles: []string{"limit"}, Rules: []chain.Rule{
		chain.Before("cache", "answers from it would be free of the limit"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.l.admit(w, r) {
		h.next.ServeHTTP(w, r)
	}
}

// admit counts a request and reports whether it may pass. If not, it is answered.
func (l *Limiter) admit(w http.ResponseWriter, r *http.Request) bool {
	res := l.takeAt(chain.Begun(w).Sub(l.zero), r, 1)
	if !res.Allowed {
		res = l.Take(r, 1)
	}
	if l.o.Announce {
		l.policy.Announce(w.Header(), res)
	}
	if res.Allowed {
		return true
	}
	w.Header().Set("Retry-After", strconv.FormatInt(seconds(res.Retry), 10))
	l.o.Refuse.ServeHTTP(w, r)
	return false
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
}
