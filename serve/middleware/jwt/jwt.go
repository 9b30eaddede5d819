// Package jwt admits requests with a signed token (RFC 7519, RFC 6750).
//
// A key has one algorithm, whatever a token says: "none" is not there, and no public
// key is taken for a secret. Encodings are canonical, members that decide are there
// once, extensions that must be understood are refused, and a token without an end is
// refused unless Options.Forever is set (RFC 8725).
//
// A token must be valid at [chain.Begun]: when the request came, if accesslog or metrics stands
// outside, else when it gets here. Verified tokens are cached, bounded, and never beyond their
// own end or the removal of a key. A token is looked up by all its bytes; the hash that finds
// it has a secret seed.
//
// Keys are given ([Static]) or fetched ([NewRemote]). While keys cannot be had, tokens
// that are not cached get 503; others that are not accepted get 401 with the reason.
//
// Place: behind recovery, requestid, accesslog and limits; before a cache, which would
// answer everybody alike.
//
// Cost: of a cached token a hash and a comparison; it allocates nothing in a chain on
// package serve. BenchmarkToken has both.
package jwt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/sys"
)

// Options of the middleware. Keys must be set, and Audience should be: without it a
// token for another service is accepted here.
type Options struct {
	Keys     Keys
	Issuer   string   // which iss a token must have; empty: any
	Audience []string // one of which must be in a token's aud; empty: any
	// Leeway is by how much clocks may differ. 0: a minute; negative: none.
	Leeway time.Duration
	// Forever accepts tokens without an end.
	Forever bool
	// Cache is how many verified tokens are kept. 0: 4,096; negative: none.
	Cache int
	// Token finds the token in a request, empty if it has none. Nil: that of
	// Authorization: Bearer.
	Token func(*http.Request) string
	// Optional lets requests without a token pass: [From] then returns nil.
	Optional bool
	// Refuse answers what is refused; WWW-Authenticate is set. err says why, for
	// people. Nil: a plain answer with that status.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, err error)
}

const (
	defaultLeeway = time.Minute
	defaultCache  = 4096
)

// longest is how long a token may be: servers refuse longer header fields anyhow.
const longest = 16 << 10

// Verifier is the middleware with its cache. It is safe for concurrent use.
type Verifier struct {
	o       Options
	cache   *cache   // nil: none
	_       [64]byte // what each request writes is on no cache line with what others read
	hits    atomic.Uint64
	refused atomic.Uint64
}

// New returns a verifier, or an error that says which option is wrong.
func New(o Options) (*Verifier, error) {
	if o.Keys == nil {
		return nil, errors.New("jwt: Options.Keys is not set: who signs the tokens?")
	}
	switch {
	case o.Leeway == 0:
		o.Leeway = defaultLeeway
	case o.Leeway < 0:
		o.Leeway = 0
	case o.Leeway > time.Hour:
		return nil, fmt.Errorf("jwt: Options.Leeway is %s; clocks differ by no more than an hour", o.Leeway)
	}
	if o.Cache > 1<<24 {
		return nil, fmt.Errorf("jwt: Options.Cache is %d; set at most 2²⁴", o.Cache)
	}
	if o.Cache == 0 {
		o.Cache = defaultCache
	}
	if o.Token == nil {
		o.Token = bearer
	}
	if o.Refuse == nil {
		o.Refuse = func(w http.ResponseWriter, _ *http.Request, status int, err error) {
			http.Error(w, err.Error(), status)
		}
	}
	v := &Verifier{o: o}
	if o.Cache > 0 {
		v.cache = newCache(o.Cache)
	}
	return v, nil
}

// Middleware lets pass to next who brings a token. In a chain its layer is called jwt,
// in the role auth.
func (v *Verifier) Middleware(next http.Handler) http.Handler { return &handler{v, next} }

// From returns the token of the request whose context it is, or that of which it derives
// from. Nil: it has none.
func From(ctx context.Context) *Token {
	t, _ := verified.From(ctx)
	return t
}

var verified = chain.NewKey[*Token]("verified token")

// Hits returns how many tokens were found in the cache.
func (v *Verifier) Hits() uint64 { return v.hits.Load() }

// Refused returns how many requests were refused.
func (v *Verifier) Refused() uint64 { return v.refused.Load() }

// Verify returns the token that text is, if it is accepted now.
func (v *Verifier) Verify(ctx context.Context, text string) (*Token, error) {
	return v.verifyAt(ctx, text, time.Now())
}

func (v *Verifier) verifyAt(ctx context.Context, text string, now time.Time) (*Token, error) {
	if len(text) > longest {
		return nil, errToken("the token is too long")
	}
	generation := v.o.Keys.generation(now)
	if v.cache == nil || generation == 0 { // what no keys vouch for is not kept
		return v.verify(ctx, text, now)
	}
	hash := v.cache.hash(text)
	if t := v.cache.find(hash, text, generation); t != nil {
		// Of time alone it depends whether a cached token is still accepted.
		if err := v.o.check(t, now); err != nil {
			return nil, err
		}
		v.hits.Add(1)
		return t, nil
	}
	t, err := v.verify(ctx, text, now)
	if err == nil {
		v.cache.put(hash, &entry{text: strings.Clone(text), token: t, generation: generation})
	}
	return t, err
}

// verify does what verifyAt does, without the cache.
func (v *Verifier) verify(ctx context.Context, text string, now time.Time) (*Token, error) {
	claims, k, err := verifySignature(ctx, v.o.Keys, text)
	if err != nil {
		return nil, err
	}
	t, err := parseClaims(claims)
	if err != nil {
		return nil, err
	}
	t.Algorithm, t.KeyID = k.Algorithm, k.ID
	return t, v.o.check(t, now)
}

// verifySignature returns the claims, still encoded, of a token that one of the keys has
// signed, and that key.
func verifySignature(ctx context.Context, keys Keys, text string) (claims string, by *key, err error) {
	first, rest, _ := strings.Cut(text, ".")
	claims, last, ok := strings.Cut(rest, ".")
	if !ok || strings.IndexByte(last, '.') >= 0 {
		return "", nil, errToken("the token is malformed")
	}
	h, err := parseHeader(first)
	if err != nil {
		return "", nil, err
	}
	signature, err := decode(last)
	if err != nil {
		return "", nil, err
	}
	found, err := keys.find(ctx, h.kid, h.alg)
	if err != nil {
		return "", nil, err
	}
	signed := sys.Bytes(text[:len(first)+1+len(claims)])
	for _, k := range found {
		if k.verify(signed, signature) {
			return claims, k, nil
		}
	}
	return "", nil, errToken("the token is not signed by a key that is known")
}

// bearer returns the token of Authorization: Bearer. Of several fields none counts.
func bearer(r *http.Request) string {
	fields := r.Header["Authorization"]
	const scheme = "Bearer "
	if len(fields) != 1 || len(fields[0]) < len(scheme) {
		return ""
	}
	begin, text := fields[0][:len(scheme)], fields[0][len(scheme):]
	if begin != scheme && !strings.EqualFold(begin, scheme) {
		return ""
	}
	return strings.TrimLeft(text, " ")
}

type handler struct {
	v    *Verifier
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "jwt", Roles: []string{"auth"}, Rules: []chain.Rule{
		chain.Before("cache", "it would answer those whom jwt refuses"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := h.v.o.Token(r)
	if text == "" && h.v.o.Optional {
		h.next.ServeHTTP(w, r)
		return
	}
	t, err := h.v.verifyAt(r.Context(), text, chain.Begun(w))
	if err != nil {
		h.v.challenge(w, r, text, err)
		return
	}
	h.next.ServeHTTP(w, verified.With(r, t))
}

// challenge refuses a request for want of a token that is accepted.
func (v *Verifier) challenge(w http.ResponseWriter, r *http.Request, text string, err error) {
	switch {
	case text == "":
		w.Header().Set("Www-Authenticate", `Bearer realm="restricted"`) // a parameter must be there (RFC 6750, section 3)
		v.refuse(w, r, http.StatusUnauthorized, errToken("a bearer token is needed"))
	case errors.Is(err, errUnavailable):
		w.Header().Set("Retry-After", "5")
		v.refuse(w, r, http.StatusServiceUnavailable, errToken("tokens cannot be verified now"))
	default:
		w.Header().Set("Www-Authenticate", `Bearer error="invalid_token", error_description="`+err.Error()+`"`)
		v.refuse(w, r, http.StatusUnauthorized, err)
	}
}

func (v *Verifier) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	v.refused.Add(1)
	v.o.Refuse(w, r, status, err)
}
