package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"net/http"

	"github.com/tarehq/tare/serve/middleware/clientaddr"
)

// Key says whose requests count together. Requests for which it finds nothing, as of a
// header that is not there, count together as well.
type Key struct {
	hash func(maphash.Seed, *http.Request) uint64
}

// ByAddress counts by the client's address as clientaddr finds it: whole for IPv4, the
// first 64 bits for IPv6, of which a client has a whole net.
func ByAddress() Key {
	return Key{func(seed maphash.Seed, r *http.Request) uint64 {
		addr := clientaddr.From(r)
		if !addr.IsValid() {
			return maphash.Bytes(seed, nil)
		}
		whole := addr.As16()
		if addr.Is6() {
			return maphash.Bytes(seed, whole[:8])
		}
		return maphash.Bytes(seed, whole[:])
	}}
}

// ByHeader counts by a field, such as an API key, or Host, which servers keep elsewhere. Clients can
// make up any number of values: behind authentication only.
func ByHeader(name string) Key {
	name = http.CanonicalHeaderKey(name)
	return ByString(func(r *http.Request) string {
		if name == "Host" {
			return r.Host
		}
		if v := r.Header[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	})
}

// ByRoute counts by the pattern that the router matched, so not before it has.
func ByRoute() Key { return ByString(func(r *http.Request) string { return r.Pattern }) }

// ByString counts by what f returns, such as a user's name. f is safe for concurrent use.
func ByString(f func(*http.Request) string) Key {
	return Key{func(seed maphash.Seed, r *http.Request) uint64 { return maphash.String(seed, f(r)) }}
}

// Both counts by a and b together: each client on each route.
func Both(a, b Key) Key {
	return Key{func(seed maphash.Seed, r *http.Request) uint64 {
		// The hashes are random already; the rotation tells (x, y) from (y, x).
		return bits.RotateLeft64(a.hash(seed, r), 29)*0x9e3779b97f4a7c15 + b.hash(seed, r)
	}}
}
