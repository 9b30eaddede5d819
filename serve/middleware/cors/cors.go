// Package cors controls which sites' scripts may call a service (the CORS protocol of the
// Fetch standard, https://fetch.spec.whatwg.org/#http-cors-protocol).
//
// The zero value admits no site. Options that would admit more than they seem to are
// refused when the middleware is made: the origin null, a wildcard for a whole top-level
// domain, plain HTTP with credentials or wildcards, and "*" beside credentials. Not
// recognised are domains below which anybody can have one, such as co.uk and github.io.
//
// A preflight is answered here: 204 with all that Options admit, which the browser
// compares with the request, or 403 if its origin is not admitted. Other requests pass on,
// whatever their origin: CORS says who may read an answer, not who may ask.
// http.CrossOriginProtection keeps requests of other sites out.
//
// Not there: Access-Control-Allow-Private-Network. It was never part of the standard, and
// browsers now ask their user instead (Local Network Access).
//
// The fields are set before the handler runs, which must add to Vary and not replace it.
//
// Place: outside of what refuses requests. Preflights have no credentials, and scripts
// cannot read a refusal that lacks the fields.
//
// Cost: a look-up of the origin and a map write a field. It allocates only where Vary
// has a value already.
package cors

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/serve/chain"
)

// Options say what other sites may do.
type Options struct {
	// Origins are admitted: https://shop.example, https://*.shop.example for what lies
	// below it at any depth, or "*" for all. Empty: none.
	Origins []string
	// Methods are admitted beside GET, HEAD and POST. "*" is all.
	Methods []string
	// Headers are the request's fields admitted beside those that any site may send. "*"
	// is all but Authorization.
	Headers []string
	// Expose are the answer's fields that scripts may read beside those that any may.
	// "*" is all.
	Expose []string
	// Credentials admits cookies and the like. Nothing may then be "*".
	Credentials bool
	// MaxAge is for how long browsers keep what a preflight said, in whole seconds, up to
	// a day. 0: 5 s, their default; negative: not at all.
	MaxAge time.Duration
	// Insecure admits http:// of hosts other than the user's own also with Credentials
	// and wildcards. Whoever is on the network's path can then act as such a site.
	Insecure bool
}

// New returns the middleware, or an error that joins all that is wrong with the options.
func New(o Options) (func(http.Handler) http.Handler, error) {
	var errs []error
	refuse := func(option, value, why string) {
		errs = append(errs, fmt.Errorf("cors: Options.%s has %q: %s", option, value, why))
	}
	h := handler{exact: map[string][]string{}}
	for _, text := range o.Origins {
		if text == "*" {
			h.any = true
			continue
		}
		p, why := parsePattern(text)
		if why == "" {
			why = p.risk(&o)
		}
		switch {
		case why != "":
			refuse("Origins", text, why)
		case p.below:
			h.below = append(h.below, p)
		default:
			h.exact[text] = []string{text}
		}
	}
	for _, list := range []struct {
		option string
		values []string
		wrong  func(string) string
	}{{"Origins", o.Origins, nil}, {"Methods", o.Methods, wrongMethod}, {"Headers", o.Headers, wrongHeader}, {"Expose", o.Expose, wrongExposed}} {
		for _, value := range list.values {
			switch {
			case value == "*" && o.Credentials:
				refuse(list.option, value, "browsers take it for all only without Credentials")
			case value != "*" && list.wrong != nil && list.wrong(value) != "":
				refuse(list.option, value, list.wrong(value))
			}
		}
	}
	if o.MaxAge > 24*time.Hour {
		errs = append(errs, fmt.Errorf("cors: Options.MaxAge is %s; no browser keeps it for more than a day", o.MaxAge))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	h.answer, h.preflight = o.fields()
	return func(next http.Handler) http.Handler {
		made := h
		made.next = next
		return &made
	}, nil
}

type field struct {
	name  string
	value []string
}

// fields returns what is sent to origins that are admitted: with each answer, and with
// that to a preflight.
func (o *Options) fields() (answer, preflight []field) {
	if o.Credentials {
		credentials := field{"Access-Control-Allow-Credentials", []string{"true"}}
		answer, preflight = append(answer, credentials), append(preflight, credentials)
	}
	list := func(fields []field, name string, values []string) []field {
		if len(values) == 0 {
			return fields
		}
		return append(fields, field{name, []string{strings.Join(values, ", ")}})
	}
	answer = list(answer, "Access-Control-Expose-Headers", o.Expose)
	preflight = list(preflight, "Access-Control-Allow-Methods", o.Methods)
	preflight = list(preflight, "Access-Control-Allow-Headers", o.Headers)
	if o.MaxAge != 0 {
		seconds := int64(max(o.MaxAge, 0) / time.Second)
		preflight = append(preflight, field{"Access-Control-Max-Age", []string{strconv.FormatInt(seconds, 10)}})
	}
	return answer, preflight
}

type handler struct {
	any               bool                // "*" is among the origins
	exact             map[string][]string // origins, and each as a field's value
	below             []pattern
	answer, preflight []field
	next              http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "cors", Rules: []chain.Rule{
		chain.Once("two would send the fields of both"),
		chain.Before("auth", "preflights have no credentials, so that it would refuse them"),
		chain.Before("limit", "scripts could not read its refusals"),
		chain.Before("breaker", "scripts could not read its refusals"),
		chain.Before("queue", "scripts could not read its answers"),
		chain.Before("static", "files would lack the fields"),
		chain.Before("cache", "answers from it would have the fields of another origin"),
	}}
}

var (
	all = []string{"*"}
	// Vary of a preflight's answer, and of others: whether there are fields, and which.
	varyPreflight = []string{"Origin, Access-Control-Request-Method"}
	vary          = []string{"Origin"}
)

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	origin := r.Header["Origin"]
	preflight := r.Method == http.MethodOptions && len(origin) > 0 && len(r.Header["Access-Control-Request-Method"]) > 0
	switch {
	case preflight:
		addVary(header, varyPreflight)
	case !h.any: // with "*" all get the same answer
		addVary(header, vary)
	}
	admitted := h.admits(origin)
	if admitted != nil {
		header["Access-Control-Allow-Origin"] = admitted[:1:1] // of no more room: what adds to it makes its own
	}
	if !preflight {
		if admitted != nil {
			set(header, h.answer)
		}
		h.next.ServeHTTP(w, r)
		return
	}
	if admitted == nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	set(header, h.preflight)
	w.WriteHeader(http.StatusNoContent)
}

func set(header http.Header, fields []field) {
	for _, f := range fields {
		header[f.name] = f.value[:1:1]
	}
}

func addVary(header http.Header, names []string) {
	if before := header["Vary"]; len(before) > 0 {
		names = append(before[:len(before):len(before)], names[0])
	}
	header["Vary"] = names[:len(names):len(names)]
}

// admits returns the value of Access-Control-Allow-Origin; nil: the request has no
// origin, or one that is not admitted. With "*" it is for all, so that caches need not
// tell requests apart.
func (h *handler) admits(origin []string) []string {
	if h.any {
		return all
	}
	if len(origin) != 1 || len(origin[0]) > longestOrigin {
		return nil
	}
	if value, ok := h.exact[origin[0]]; ok {
		return value
	}
	for i := range h.below {
		if h.below[i].matches(origin[0]) {
			return origin
		}
	}
	return nil
}
