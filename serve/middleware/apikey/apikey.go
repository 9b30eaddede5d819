// Package apikey admits requests with an API key that was given out before.
//
// Keys are kept as SHA-256, so that who reads the configuration cannot use them. A key
// is found by its hash, of which a client can choose no part: the time that the search
// takes says nothing about other keys. That is safe for keys that nobody can guess, such as
// those of [Make], and not for passwords, for which there is basicauth.
//
// The key is in a field of the header alone. One in the URL would be in every log. A refusal
// names the scheme ApiKey, or Bearer, as a 401 must name one (RFC 9110, section 15.5.2). Caches
// outside know that what comes with Authorization is not for others. With another field an answer
// that they may keep must say so itself, by Cache-Control: private.
//
// Place: behind recovery, requestid, accesslog, cors and limits; before a cache.
//
// Cost: a SHA-256 of at most 512 bytes, whether the key is right or not; it allocates
// nothing in a chain on package serve. BenchmarkRequest has it.
package apikey

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/sys"
)

// Options of the middleware. Keys must be set.
type Options struct {
	// Keys are what [Hash] made of keys, each with the name of who has it.
	Keys map[string]string
	// Header is the field that has the key. Empty: X-Api-Key. In Authorization the key
	// stands behind Bearer.
	Header string
}

// Verifier is the middleware with its keys. It is safe for concurrent use.
type Verifier struct {
	field, scheme string
	challenge     []string
	keys          atomic.Pointer[map[[sha256.Size]byte]*holder]
	refused       atomic.Uint64
}

// holder is who has a key.
type holder struct{ name string }

// longest is how long a key may be.
const longest = 512

// New returns a verifier, or an error that says which option is wrong.
func New(o Options) (*Verifier, error) {
	if o.Header == "" {
		o.Header = "X-Api-Key"
	}
	v := &Verifier{field: http.CanonicalHeaderKey(o.Header), challenge: []string{`ApiKey realm="restricted"`}}
	if v.field == "Authorization" {
		v.scheme, v.challenge = "Bearer ", []string{`Bearer realm="restricted"`}
	}
	return v, v.SetKeys(o.Keys)
}

// SetKeys replaces the keys. Requests go on meanwhile. On an error those before stay.
func (v *Verifier) SetKeys(hashes map[string]string) error {
	if len(hashes) == 0 {
		return errors.New("apikey: Options.Keys is empty: who may pass?")
	}
	keys := make(map[[sha256.Size]byte]*holder, len(hashes))
	for text, name := range hashes {
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != sha256.Size {
			return fmt.Errorf("apikey: the key of %q is not one that apikey.Hash made", name) // it may be the key itself: not shown
		}
		if name == "" {
			return fmt.Errorf("apikey: the key with the hash %s has no name", text)
		}
		keys[[sha256.Size]byte(sum)] = &holder{name}
	}
	v.keys.Store(&keys)
	return nil
}

// Make returns a new key, with 128 random bits.
func Make() string { return rand.Text() }

// Hash returns what Options.Keys has of a key.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Middleware lets pass to next who has a key. In a chain its layer is called apikey, in
// the role auth.
func (v *Verifier) Middleware(next http.Handler) http.Handler { return &handler{v, next} }

// Refused returns how many requests were refused.
func (v *Verifier) Refused() uint64 { return v.refused.Load() }

// From returns the name of who sent the request whose context it is, or that of which it
// derives from. Empty: no middleware of this package stands before the caller.
func From(ctx context.Context) string {
	h, ok := verified.From(ctx)
	if !ok {
		return ""
	}
	return h.name
}

var verified = chain.NewKey[*holder]("holder of the key")

type handler struct {
	v    *Verifier
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "apikey", Roles: []string{"auth"}, Rules: []chain.Rule{
		chain.Before("cache", "it would answer those whom apikey refuses"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := h.v.find(r.Header[h.v.field])
	if found == nil {
		h.v.refused.Add(1)
		w.Header()["Www-Authenticate"] = h.v.challenge[:1:1]
		http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
		return
	}
	h.next.ServeHTTP(w, verified.With(r, found))
}

// find returns who has the key in the fields; nil: nobody. Of several fields none counts.
func (v *Verifier) find(fields []string) *holder {
	if len(fields) != 1 || len(fields[0]) < len(v.scheme) || !strings.EqualFold(fields[0][:len(v.scheme)], v.scheme) {
		return nil
	}
	key := fields[0][len(v.scheme):]
	if v.scheme != "" {
		key = strings.TrimLeft(key, " ")
	}
	if len(key) > longest {
		return nil
	}
	return (*v.keys.Load())[sha256.Sum256(sys.Bytes(key))]
}
