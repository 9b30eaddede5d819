package main

import (
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/proxy"
)

// cut answers a request that failed: tare takes that for an error.
var cut = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

// newOurs returns our proxy; what it does about failures can be switched off.
func newOurs(guarded bool, addresses []string) (http.Handler, error) {
	po := proxy.PoolOptions{}
	for _, a := range addresses {
		po.Servers = append(po.Servers, proxy.Server{Address: a})
	}
	o := proxy.Options{Fallback: cut}
	if !guarded {
		po.Eject, o.Attempts = breaker.Options{Consecutive: -1}, 1
	}
	pool, err := proxy.NewPool(po)
	if err != nil {
		return nil, err
	}
	o.Pool = pool
	return proxy.New(o)
}

// newReverse returns the standard library's, as its documentation recommends it today: by
// Rewrite, and with a transport that keeps its connections.
func newReverse(addresses []string) http.Handler {
	var turn atomic.Uint64
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy, t.DisableCompression, t.MaxIdleConns, t.MaxIdleConnsPerHost = nil, true, 0, 512
	return &httputil.ReverseProxy{
		Transport: t,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: addresses[turn.Add(1)%uint64(len(addresses))]})
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode >= http.StatusInternalServerError {
				return errors.New(res.Status)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) { cut(w, r) },
	}
}

// newTutorial returns the proxy of the tutorials.
func newTutorial(address string) http.Handler {
	return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
}
