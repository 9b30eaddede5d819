// Package requestid gives each request an identifier.
//
// A valid one that the client or a proxy sent is kept, else one is made: 128 random
// bits as 32 hexadecimal digits. Handlers find it by [From], clients in the answer,
// and package accesslog writes it.
//
// What a client sends is not to be trusted: two requests may have the same. Valid is
// what log and header can carry as it is: 1 to 128 letters, digits and - _ . : / + =.
//
// Place: behind recovery, before whatever logs or calls others.
//
// Cost: one allocation in a chain of package chain on package serve; elsewhere the
// request is copied to carry the identifier.
package requestid

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/sys"
)

// Options of the middleware. The zero value reads and answers X-Request-Id.
type Options struct {
	// Header is the field with the identifier, in requests and answers. Empty:
	// X-Request-Id.
	Header string
	// Distrust has identifiers made for all requests, whatever clients sent.
	Distrust bool
}

// New returns the middleware.
func New(o Options) func(http.Handler) http.Handler {
	if o.Header == "" {
		o.Header = "X-Request-Id"
	}
	o.Header = http.CanonicalHeaderKey(o.Header)
	return func(next http.Handler) http.Handler { return &handler{o, next} }
}

// From returns the identifier of the request whose context it is, or that of which it
// derives from. Empty: no middleware of this package stands before the caller.
func From(ctx context.Context) string {
	id, ok := key.From(ctx)
	if !ok {
		return ""
	}
	return id.text
}

var key = chain.NewKey[*identifier]("request id")

// identifier has all that a request needs in one allocation.
type identifier struct {
	text   string
	field  [1]string // the header's value: what changes it does not change text
	digits [32]byte
}

type handler struct {
	o    Options
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "requestid", Rules: []chain.Rule{
		chain.Once("a request has one identifier"),
		chain.Before("auth", "requests that it refuses would have no identifier"),
		chain.Before("limit", "requests that it refuses would have no identifier"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := new(identifier)
	if sent := r.Header[h.o.Header]; !h.o.Distrust && len(sent) == 1 && Valid(sent[0]) {
		id.text = sent[0]
	} else {
		id.make()
	}
	id.field[0] = id.text
	w.Header()[h.o.Header] = id.field[:]
	h.next.ServeHTTP(w, key.With(r, id))
}

// make fills in random digits.
func (id *identifier) make() {
	var random [16]byte
	binary.NativeEndian.PutUint64(random[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(random[8:], rand.Uint64())
	hex.Encode(id.digits[:], random[:])
	id.text = sys.String(id.digits[:]) // nobody writes digits again
}

// Valid reports whether an identifier that a client sent is kept.
func Valid(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		if !valid[id[i]] {
			return false
		}
	}
	return true
}

var valid = func() (set [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+=" {
		set[c] = true
	}
	return set
}()
