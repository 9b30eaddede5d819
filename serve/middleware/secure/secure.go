// Package secure adds the header fields by which browsers protect users.
//
// The zero value suits an API: its answers are not to be sniffed, framed, embedded by
// other sites, or shown as pages that run anything. A site with pages sets Policy to
// what these need. Fields that the handler sets itself take precedence.
//
// Place: anywhere behind recovery; outside of what answers itself, so that refusals
// have the fields too.
//
// Cost: a map write a field; it allocates nothing.
package secure

import (
	"net/http"
	"strconv"
	"time"

	"github.com/tarehq/tare/serve/chain"
)

// Options of the middleware. A field of "-" is not sent; an empty one is the default.
type Options struct {
	// Policy is the Content-Security-Policy. Empty: nothing may be loaded, run,
	// framed or submitted.
	Policy string
	// Frame is X-Frame-Options, for browsers that do not know frame-ancestors. Empty:
	// DENY.
	Frame string
	// Referrer is the Referrer-Policy. Empty: no-referrer.
	Referrer string
	// Resource is the Cross-Origin-Resource-Policy. Empty: same-origin.
	Resource string
	// Opener is the Cross-Origin-Opener-Policy. Empty: same-origin.
	Opener string
	// Permissions is the Permissions-Policy. Empty: not sent.
	Permissions string
	// HSTS is for how long browsers that came by TLS use nothing else for this host
	// and, with Subdomains, for those below it. 0: two years; negative: not sent.
	HSTS       time.Duration
	Subdomains bool
	// BehindTLS says that clients come by TLS though requests here do not: a proxy
	// ends it.
	BehindTLS bool
}

// defaultHSTS is what the browsers' preload list asks for, and more than the year that
// it accepts (https://hstspreload.org).
const defaultHSTS = 2 * 365 * 24 * time.Hour

// New returns the middleware.
func New(o Options) func(http.Handler) http.Handler {
	var fields []field
	add := func(name, value, otherwise string) {
		if value == "" {
			value = otherwise
		}
		if value != "" && value != "-" {
			fields = append(fields, field{name, []string{value}})
		}
	}
	add("X-Content-Type-Options", "nosniff", "")
	add("Content-Security-Policy", o.Policy, "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	add("X-Frame-Options", o.Frame, "DENY")
	add("Referrer-Policy", o.Referrer, "no-referrer")
	add("Cross-Origin-Resource-Policy", o.Resource, "same-origin")
	add("Cross-Origin-Opener-Policy", o.Opener, "same-origin")
	add("Permissions-Policy", o.Permissions, "")
	return func(next http.Handler) http.Handler {
		return &handler{fields: fields, hsts: []string{o.hsts()}, always: o.BehindTLS, next: next}
	}
}

// hsts returns the value of Strict-Transport-Security, empty if it is not sent.
func (o *Options) hsts() string {
	age := o.HSTS
	if age < 0 {
		return ""
	}
	if age == 0 {
		age = defaultHSTS
	}
	value := "max-age=" + strconv.FormatInt(int64(age/time.Second), 10)
	if o.Subdomains {
		value += "; includeSubDomains"
	}
	return value
}

type field struct {
	name  string
	value []string
}

type handler struct {
	fields []field
	hsts   []string
	always bool // send hsts also where the request itself did not come by TLS
	next   http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "secure", Rules: []chain.Rule{
		chain.Before("auth", "its refusals would lack the fields"),
		chain.Before("limit", "its refusals would lack the fields"),
		chain.Before("cache", "answers from it would lack the fields"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for _, f := range h.fields {
		header[f.name] = f.value[:1:1] // of no more room: what adds to it makes its own
	}
	if h.hsts[0] != "" && (h.always || r.TLS != nil) {
		header["Strict-Transport-Security"] = h.hsts[:1:1]
	}
	h.next.ServeHTTP(w, r)
}
