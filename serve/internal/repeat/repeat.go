// Package repeat tells which requests may be sent more than once.
package repeat

import "net/http"

// Safe reports whether a request may be done twice: its method is idempotent (RFC 9110,
// section 9.2.2; "" is GET, as a client's is), or it has an Idempotency-Key.
func Safe(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}
