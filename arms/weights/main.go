// Command weights answers behind middlewares of serve/middleware, one or several, on one
// server or another. Package plan says how they are set up.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/arms/weights/plan"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/middleware/apikey"
	"github.com/tarehq/tare/serve/middleware/basicauth"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/middleware/cors"
	"github.com/tarehq/tare/serve/middleware/ipfilter"
	"github.com/tarehq/tare/serve/middleware/jwt"
	"github.com/tarehq/tare/serve/middleware/limit"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
	"github.com/tarehq/tare/serve/middleware/recovery"
	"github.com/tarehq/tare/serve/middleware/requestid"
	"github.com/tarehq/tare/serve/middleware/secure"
	"github.com/tarehq/tare/serve/middleware/static"
	"github.com/tarehq/tare/serve/middleware/timeout"
)

type middleware = func(http.Handler) http.Handler

func main() {
	layer := flag.String("layer", "none", "`what` stands before the handler: none, guards, or layers with commas between")
	only := flag.String("only", "", "the layers stand before paths below this `prefix` alone")
	server := engines.Flag(engines.Serve)
	flag.Parse()
	h, err := handler(*layer)
	if *only != "" && err == nil {
		h, err = guardOnly(*only, h)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "weights: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h, Serve: server.Run(h), Context: server.LoopContext()})
}

// passing does nothing: what it weighs is the chain's.
type passing struct{ next http.Handler }

func (h *passing) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.next.ServeHTTP(w, r) }

// guards are the layers of the whole stack, outermost first.
var guards = []string{"recovery", "requestid", "clientaddr", "accesslog", "secure", "limit", "ratelimit", "timeout", "jwt"}

func handler(layer string) (http.Handler, error) {
	answer := plan.NewAnswer()
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer.Write(w) })
	names, err := plan.Names(layer, guards, makers)
	if err != nil {
		return nil, err
	}
	var all []middleware
	for _, name := range names {
		mw, err := makers[name]()
		if err != nil {
			return nil, err
		}
		all = append(all, mw)
	}
	return chain.New(all...).Then(h)
}

// guardOnly has the paths below a prefix answered behind the layers, all others without.
func guardOnly(prefix string, guarded http.Handler) (http.Handler, error) {
	plain, err := handler("none")
	mux := http.NewServeMux()
	mux.Handle(prefix, guarded)
	mux.Handle("/", plain)
	return mux, err
}

// makers make each layer.
var makers = map[string]func() (middleware, error){
	"chain":     func() (middleware, error) { return func(next http.Handler) http.Handler { return &passing{next} }, nil },
	"recovery":  func() (middleware, error) { return recovery.New(recovery.Options{}), nil },
	"requestid": func() (middleware, error) { return requestid.New(requestid.Options{}), nil },
	"clientaddr": func() (middleware, error) {
		return clientaddr.New(clientaddr.Options{Trusted: clientaddr.Private()}), nil
	},
	"secure": func() (middleware, error) { return secure.New(secure.Options{}), nil },
	"cors": func() (middleware, error) {
		return cors.New(cors.Options{Origins: []string{plan.Origin}, Methods: []string{"PUT"}, Credentials: true})
	},
	"metrics": func() (middleware, error) {
		m, err := metrics.New(metrics.Options{})
		if err != nil {
			return nil, err
		}
		return m.Middleware, nil
	},
	"accesslog":      func() (middleware, error) { return logging(accesslog.Options{}) },
	"accesslog-file": func() (middleware, error) { return logging(accesslog.Options{To: plan.File()}) },
	"accesslog-sync": func() (middleware, error) {
		return logging(accesslog.Options{Sync: true})
	},
	"accesslog-combined": func() (middleware, error) {
		return logging(accesslog.Options{Format: accesslog.Combined})
	},
	"limit": func() (middleware, error) {
		l, err := limit.New(limit.Options{Body: plan.Body, InFlight: plan.InFlight})
		if err != nil {
			return nil, err
		}
		return l.Middleware, nil
	},
	"ratelimit": func() (middleware, error) {
		return limiting(ratelimit.Options{Law: ratelimit.GCRA{Rate: plan.Rate}})
	},
	"ratelimit-window": func() (middleware, error) {
		return limiting(ratelimit.Options{Law: ratelimit.Window{Limit: plan.Rate}})
	},
	"breaker": func() (middleware, error) {
		b, err := breaker.New("handler", breaker.Options{})
		if err != nil {
			return nil, err
		}
		return b.Middleware, nil
	},
	"timeout": func() (middleware, error) { return timeout.New(timeout.Options{After: plan.Timeout}) },
	"basicauth": func() (middleware, error) {
		v, err := basicauth.New(basicauth.Options{Users: map[string]string{plan.User: basicauth.Hash(plan.Password)}})
		if err != nil {
			return nil, err
		}
		return func(next http.Handler) http.Handler { return plan.WithPassword(v.Middleware(next)) }, nil
	},
	"apikey": func() (middleware, error) {
		v, err := apikey.New(apikey.Options{Keys: map[string]string{apikey.Hash(plan.Key): plan.User}})
		if err != nil {
			return nil, err
		}
		return v.Middleware, nil
	},
	"ipfilter": func() (middleware, error) {
		f, err := ipfilter.New(ipfilter.Options{Deny: plan.Denied()})
		if err != nil {
			return nil, err
		}
		return f.Middleware, nil
	},
	"static":       func() (middleware, error) { return filing(0) },
	"static-fresh": func() (middleware, error) { return filing(time.Second) },
	"jwt":          func() (middleware, error) { return verifying(0) },
	"jwt-uncached": func() (middleware, error) { return verifying(-1) },
}

func logging(o accesslog.Options) (middleware, error) {
	if o.To == nil {
		o.To = plan.Log()
	}
	l, err := accesslog.New(o)
	if err != nil {
		return nil, err
	}
	return l.Middleware, nil
}

func filing(fresh time.Duration) (middleware, error) {
	dir, err := os.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	return static.New(static.Options{Files: dir.FS(), Fresh: fresh})
}

func limiting(o ratelimit.Options) (middleware, error) {
	l, err := ratelimit.New(o)
	if err != nil {
		return nil, err
	}
	return l.Middleware, nil
}

func verifying(cache int) (middleware, error) {
	keys, err := jwt.Static(jwt.Key{Algorithm: "HS256", Value: plan.Secret})
	if err != nil {
		return nil, err
	}
	v, err := jwt.New(jwt.Options{Keys: keys, Cache: cache})
	if err != nil {
		return nil, err
	}
	return v.Middleware, nil
}
