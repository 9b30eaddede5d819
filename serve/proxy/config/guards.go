package config

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/apikey"
	"github.com/tarehq/tare/serve/middleware/basicauth"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/middleware/cors"
	"github.com/tarehq/tare/serve/middleware/ipfilter"
	"github.com/tarehq/tare/serve/middleware/jwt"
	"github.com/tarehq/tare/serve/middleware/limit"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
	"github.com/tarehq/tare/serve/middleware/requestid"
	"github.com/tarehq/tare/serve/middleware/secure"
	"github.com/tarehq/tare/serve/middleware/timeout"
	"github.com/tarehq/tare/serve/proxy/internal/keyfile"
	"github.com/tarehq/tare/serve/proxy/internal/tree"
)

// Guard is a middleware of a file.
type Guard struct {
	key   string // what it is; files that say the same share it. Empty: it is nobody else's
	layer chain.Layer
}

// mostGuards bounds the middlewares of a file: a rate limit takes up to 3 MB.
const mostGuards = 100

// build makes a middleware, once its settings were read.
type build func() (func(http.Handler) http.Handler, error)

// kind is a middleware by its name in files.
type kind struct {
	name string
	read func(tree.Value) build
}

func kinds() []kind {
	return []kind{
		{"requestid", readRequestID}, {"secure", readSecure}, {"cors", readCORS}, {"ipfilter", readIPFilter},
		{"limit", readLimit}, {"ratelimit", readRateLimit}, {"timeout", readTimeout},
		{"jwt", readJWT}, {"basicauth", readBasicAuth}, {"apikey", readAPIKey},
	}
}

// guardReader reads lists of middlewares.
type guardReader struct{ n int }

// list reads a list of middlewares, outermost first.
func (r *guardReader) list(v tree.Value) []Guard {
	var all []Guard
	known := kinds()
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	for _, item := range v.List() {
		keys := item.Object(names...)
		if item.Describes() {
			item.DescribeOne()
			for _, k := range known {
				k.read(keys[k.name])
			}
			continue
		}
		n := 0
		for _, k := range known {
			at := keys[k.name]
			if !at.Is {
				continue
			}
			n++
			before := len(v.Problems())
			b := k.read(at)
			if len(v.Problems()) == before {
				all = r.add(all, k.name, at, b)
			}
		}
		if n != 1 {
			item.Wrong("want the name of one middleware with its settings")
		}
	}
	return all
}

// add adds the middleware that a value says.
func (r *guardReader) add(all []Guard, name string, v tree.Value, b build) []Guard {
	if r.n++; r.n > mostGuards {
		v.Wrong("at most %d middlewares", mostGuards)
		return all
	}
	wrap, err := b()
	if err != nil {
		v.Wrong("%s", strings.NewReplacer("RemoteOptions.", "", "Options.", "", "\n", "; ").Replace(err.Error()))
		return all
	}
	g := Guard{layer: chain.Layer{Wrap: wrap}}
	if settings := v.JSON(); !strings.Contains(settings, `_file"`) { // a file may have changed
		list, _, _ := strings.Cut(v.Path(), "[")
		g.key = list + " " + name + " " + settings
	}
	return append(all, g)
}

// checkOrder notes what is wrong with the order of middlewares, those for all requests
// first.
func checkOrder(v tree.Value, outer, inner []Guard) {
	if _, err := chained(outer, inner).Then(http.NotFoundHandler()); err != nil {
		v.Wrong("%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "building the chain: "), "\n", "; "))
	}
}

func chained(lists ...[]Guard) *chain.Chain {
	c := new(chain.Chain)
	for _, list := range lists {
		for _, g := range list {
			c = c.With(g.layer)
		}
	}
	return c
}

// trusting are the middlewares that a file has without saying so.
func trusting(trusted []netip.Prefix) []Guard {
	if len(trusted) == 0 {
		return nil
	}
	return []Guard{{layer: chain.Layer{Wrap: clientaddr.New(clientaddr.Options{Trusted: trusted})}}}
}

// readRequestID has the identifier be sent on, too.
func readRequestID(v tree.Value) build {
	k := v.Object("header", "distrust")
	o := requestid.Options{Header: k["header"].Text("a field's name", tree.IsToken), Distrust: k["distrust"].Boolean()}
	return func() (func(http.Handler) http.Handler, error) {
		wrap := requestid.New(o)
		field := http.CanonicalHeaderKey(cmp.Or(o.Header, "X-Request-Id"))
		return func(next http.Handler) http.Handler { return wrap(&identified{field, next}) }, nil
	}
}

// identified passes an identifier on.
type identified struct {
	field string
	next  http.Handler
}

func (h *identified) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header[h.field] = w.Header()[h.field]
	h.next.ServeHTTP(w, r)
}

func readSecure(v tree.Value) build {
	k := v.Object("policy", "frame", "referrer", "resource", "opener", "permissions", "hsts", "subdomains", "behind_tls")
	text := func(name string) string {
		return k[name].Text("a field's value", tree.IsFieldValue)
	}
	o := secure.Options{
		Policy: text("policy"), Frame: text("frame"), Referrer: text("referrer"), Resource: text("resource"), Opener: text("opener"),
		Permissions: text("permissions"), HSTS: k["hsts"].Duration(0, 100*365*24*time.Hour),
		Subdomains: k["subdomains"].Boolean(), BehindTLS: k["behind_tls"].Boolean(),
	}
	if k["hsts"].Is && o.HSTS == 0 {
		o.HSTS = -1
	}
	return func() (func(http.Handler) http.Handler, error) { return secure.New(o), nil }
}

func readCORS(v tree.Value) build {
	k := v.Object("origins!", "methods", "headers", "expose", "credentials", "max_age", "insecure")
	texts := func(name string) []string { return k[name].Texts("a text", tree.IsFieldValue) }
	o := cors.Options{
		Origins: texts("origins"), Methods: texts("methods"), Headers: texts("headers"), Expose: texts("expose"),
		Credentials: k["credentials"].Boolean(), MaxAge: k["max_age"].Duration(0, 24*time.Hour), Insecure: k["insecure"].Boolean(),
	}
	return func() (func(http.Handler) http.Handler, error) { return cors.New(o) }
}

func readIPFilter(v tree.Value) build {
	k := v.Object("allow", "deny", "allow_file", "deny_file")
	o := ipfilter.Options{Allow: k["allow"].Prefixes(), Deny: k["deny"].Prefixes()}
	allow, deny := k["allow_file"].Text("a file of addresses", tree.NotEmpty), k["deny_file"].Text("a file of addresses", tree.NotEmpty)
	if len(o.Allow)+len(o.Deny) == 0 && allow+deny == "" {
		v.Wrong("want one of allow, deny, allow_file and deny_file")
	}
	return func() (func(http.Handler) http.Handler, error) {
		var err error
		if o.Allow, err = readPrefixes(o.Allow, allow); err != nil {
			return nil, err
		}
		if o.Deny, err = readPrefixes(o.Deny, deny); err != nil {
			return nil, err
		}
		f, err := ipfilter.New(o)
		if err != nil {
			return nil, err
		}
		return f.Middleware, nil
	}
}

// readPrefixes adds those of a file, if there is one.
func readPrefixes(to []netip.Prefix, path string) ([]netip.Prefix, error) {
	if path == "" {
		return to, nil
	}
	data, err := keyfile.Read(path)
	if err != nil {
		return nil, err
	}
	more, err := ipfilter.Read(strings.NewReader(string(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return append(to, more...), nil
}

func readLimit(v tree.Value) build {
	k := v.Object("body", "fields", "in_flight", "queue", "wait")
	o := limit.Options{
		Body: int64(k["body"].Bytes(1 << 30)), Fields: k["fields"].Integer(1, 10_000), InFlight: k["in_flight"].Integer(1, 1_000_000),
		Queue: k["queue"].Integer(1, 1_000_000), Wait: k["wait"].Duration(time.Millisecond, time.Hour),
	}
	// What is not said is not bounded: a WebSocket is in flight all its life.
	if !k["body"].Is {
		o.Body = -1
	}
	if !k["fields"].Is {
		o.Fields = -1
	}
	if !k["in_flight"].Is {
		o.InFlight = -1
	}
	return func() (func(http.Handler) http.Handler, error) {
		l, err := limit.New(o)
		if err != nil {
			return nil, err
		}
		return l.Middleware, nil
	}
}

func readRateLimit(v tree.Value) build {
	k := v.Object("requests!", "per", "burst", "header", "announce")
	law := ratelimit.GCRA{Rate: k["requests"].Integer(1, 1_000_000), Per: k["per"].Duration(time.Millisecond, 24*time.Hour), Burst: k["burst"].Integer(1, 1_000_000)}
	o := ratelimit.Options{Law: law, Announce: k["announce"].Boolean()}
	if name := k["header"].Text("a field's name", tree.IsToken); name != "" {
		o.Key = ratelimit.ByHeader(name)
	}
	return func() (func(http.Handler) http.Handler, error) {
		l, err := ratelimit.New(o)
		if err != nil {
			return nil, err
		}
		return l.Middleware, nil
	}
}

func readTimeout(v tree.Value) build {
	k := v.Object("after!")
	o := timeout.Options{After: k["after"].Duration(time.Millisecond, 24*time.Hour)}
	return func() (func(http.Handler) http.Handler, error) { return timeout.New(o) }
}

func readJWT(v tree.Value) build {
	k := v.Object("jwks", "algorithm", "secret_file", "public_key_file", "issuer", "audience", "leeway", "optional")
	o := jwt.Options{
		Issuer: k["issuer"].Text("a text", tree.NotEmpty), Audience: k["audience"].Texts("a text", tree.NotEmpty),
		Leeway: k["leeway"].Duration(0, time.Hour), Optional: k["optional"].Boolean(),
	}
	url := k["jwks"].Text("the URL of a key set, by https", tree.NotEmpty)
	key := jwt.Key{Algorithm: k["algorithm"].Text("an algorithm such as HS256, RS256, ES256 or EdDSA", tree.IsToken)}
	secret, public := k["secret_file"].Text("a file", tree.NotEmpty), k["public_key_file"].Text("a file with a public key in PEM", tree.NotEmpty)
	ways := 0
	for _, way := range []string{url, secret, public} {
		if way != "" {
			ways++
		}
	}
	if v.Is && (ways != 1 || (url == "") == (key.Algorithm == "")) {
		v.Wrong("want jwks, or algorithm with one of secret_file and public_key_file")
	}
	return func() (func(http.Handler) http.Handler, error) {
		var err error
		if url != "" {
			o.Keys, err = jwt.NewRemote(jwt.RemoteOptions{URL: url})
		} else if key.Value, err = keyfile.Key(secret, public); err == nil {
			o.Keys, err = jwt.Static(key)
		}
		if err != nil {
			return nil, err
		}
		verifier, err := jwt.New(o)
		if err != nil {
			return nil, err
		}
		return verifier.Middleware, nil
	}
}

func readBasicAuth(v tree.Value) build {
	k := v.Object("users!", "realm")
	o := basicauth.Options{Users: readFields(k["users"]), Realm: k["realm"].Text("a text", tree.IsFieldValue)}
	return func() (func(http.Handler) http.Handler, error) {
		verifier, err := basicauth.New(o)
		if err != nil {
			return nil, err
		}
		return verifier.Middleware, nil
	}
}

func readAPIKey(v tree.Value) build {
	k := v.Object("keys!", "header")
	o := apikey.Options{Keys: map[string]string{}, Header: k["header"].Text("a field's name", tree.IsToken)}
	for name, hash := range readFields(k["keys"]) {
		o.Keys[hash] = name
	}
	return func() (func(http.Handler) http.Handler, error) {
		verifier, err := apikey.New(o)
		if err != nil {
			return nil, err
		}
		return verifier.Middleware, nil
	}
}
