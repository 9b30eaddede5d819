// Command gateway is a gateway before a shop. The flag -mode says what stands there:
//
//	gateway   a proxy that verifies the token of each request but the login's, and holds every
//	          user to a limit, beyond which the answer is 429
//	open      the same proxy, which lets all pass
//	direct    none: clients ask the shop itself
//
// The shop:
//
//	POST /login      {"name": N, "password": "secret of N"} is answered with {"token": T}
//	GET /recommend   the five best of a thousand articles for ?user=N
//	POST /orders     {"article": A, "count": C} is answered 201 with the order's number and sum,
//	                 once another service has taken the payment
//	GET /ready       {"ready":true}
//
// Gateway, shop and payment are one process and talk over loopback, so that the arms differ
// by what the gateway costs.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/upstream"
	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/jwt"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
	"github.com/tarehq/tare/serve/proxy"
)

const modes = "gateway, open or direct"

func main() {
	mode := flag.String("mode", "gateway", "what stands before the `shop`: "+modes)
	rate := flag.Int("rate", 100, "`requests` of one user each second, in the long run")
	burst := flag.Int("burst", 20, "`requests` of one user at once")
	flag.Parse()
	h, err := newHandler(*mode, ratelimit.GCRA{Rate: *rate, Burst: *burst})
	if err != nil {
		fmt.Fprintf(os.Stderr, "gateway: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h, Serve: func(l net.Listener) error { return serve.Serve(l, h) }})
}

// newHandler returns what clients ask.
func newHandler(mode string, limit ratelimit.Law) (http.Handler, error) {
	shop, err := newShop()
	if err != nil {
		return nil, err
	}
	switch mode {
	case "direct":
		return shop, nil
	case "open", "gateway":
	default:
		return nil, fmt.Errorf("mode %q: want %s", mode, modes)
	}
	url, err := upstream.Start(shop)
	if err != nil {
		return nil, err
	}
	pool, err := proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: url[len("http://"):]}}})
	if err != nil {
		return nil, err
	}
	through, err := proxy.New(proxy.Options{Pool: pool})
	if err != nil || mode == "open" {
		return through, err
	}
	guarded, err := guard(through, limit)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", guarded)
	mux.Handle("GET /ready", through)
	mux.Handle("POST /login", through)
	return mux, nil
}

// guard lets pass who brings a token of the shop's, as often as the limit says.
func guard(next http.Handler, limit ratelimit.Law) (http.Handler, error) {
	keys, err := jwt.Static(jwt.Key{ID: keyID, Algorithm: "HS256", Value: []byte(secret)})
	if err != nil {
		return nil, err
	}
	verifier, err := jwt.New(jwt.Options{Keys: keys, Audience: []string{audience}})
	if err != nil {
		return nil, err
	}
	limiter, err := ratelimit.New(ratelimit.Options{Law: limit, Key: ratelimit.ByString(user)})
	if err != nil {
		return nil, err
	}
	return chain.New(verifier.Middleware, limiter.Middleware).Then(next)
}

// user is whom the token belongs to.
func user(r *http.Request) string { return jwt.From(r.Context()).Subject }
