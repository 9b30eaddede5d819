package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

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
	"github.com/tarehq/tare/serve/middleware/queue"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
	"github.com/tarehq/tare/serve/middleware/recovery"
	"github.com/tarehq/tare/serve/middleware/requestid"
	"github.com/tarehq/tare/serve/middleware/secure"
	"github.com/tarehq/tare/serve/middleware/static"
	"github.com/tarehq/tare/serve/middleware/timeout"
)

// must is for stacks that are written down in the program.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// stack returns the layers in their order, and what ends the log.
func stack(log io.Writer) ([]chain.Layer, *accesslog.Log) {
	keys := must(jwt.Static(jwt.Key{Algorithm: "HS256", Value: []byte("a secret of at least thirty-two bytes")}))
	lines := must(accesslog.New(accesslog.Options{To: log}))
	return []chain.Layer{
		{Wrap: recovery.New(recovery.Options{})},
		{Wrap: requestid.New(requestid.Options{})},
		{Wrap: clientaddr.New(clientaddr.Options{Trusted: clientaddr.Private()})},
		{Wrap: lines.Middleware},
		{Wrap: must(metrics.New(metrics.Options{})).Middleware},
		{Wrap: secure.New(secure.Options{})},
		{Wrap: must(cors.New(cors.Options{Origins: []string{"https://shop.example"}}))},
		{Wrap: must(limit.New(limit.Options{})).Middleware},
		{Wrap: must(ratelimit.New(ratelimit.Options{Law: ratelimit.GCRA{Rate: 100}})).Middleware},
		{Wrap: must(timeout.New(timeout.Options{After: time.Second}))},
		{Wrap: must(jwt.New(jwt.Options{Keys: keys})).Middleware},
	}, lines
}

func Example() {
	layers, log := stack(io.Discard)
	defer log.Close(context.Background()) // when the server has shut down
	app := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello", jwt.From(r.Context()).Subject)
	})
	h := chain.Must(new(chain.Chain).With(layers...).Then(app))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 401 a bearer token is needed
}

// TestOrder builds chains in which two layers of the stack have changed places. Those
// that are not safe are refused, with the reason.
func TestOrder(t *testing.T) {
	other := func(name string, roles ...string) chain.Layer {
		return chain.Layer{Name: name, Roles: roles, Wrap: func(h http.Handler) http.Handler { return h }}
	}
	layers, log := stack(io.Discard)
	defer log.Close(t.Context())
	names := []string{"recovery", "requestid", "clientaddr", "accesslog", "metrics", "secure", "cors", "limit", "ratelimit", "timeout", "jwt"}
	byName := map[string]chain.Layer{"cache": other("cache"), "compress": other("compress")}
	for i, name := range names {
		byName[name] = layers[i]
	}
	byName["queue"] = chain.Layer{Wrap: must(queue.New(queue.Options{})).Middleware}
	byName["basicauth"] = chain.Layer{Wrap: must(basicauth.New(basicauth.Options{Users: map[string]string{"ann": basicauth.Hash("secret")}})).Middleware}
	byName["ipfilter"] = chain.Layer{Wrap: must(ipfilter.New(ipfilter.Options{})).Middleware}
	byName["apikey"] = chain.Layer{Wrap: must(apikey.New(apikey.Options{Keys: map[string]string{apikey.Hash("secret"): "ann"}})).Middleware}
	byName["static"] = chain.Layer{Wrap: must(static.New(static.Options{Files: fstest.MapFS{}}))}
	byName["breaker"] = chain.Layer{Wrap: must(breaker.New("handler", breaker.Options{})).Middleware}
	for _, c := range []struct {
		outer, inner string
		why          string // in the error; empty: any order
	}{
		{"cache", "jwt", "jwt refuses"},
		{"cache", "accesslog", "would not be logged"},
		{"cache", "ratelimit", "free of the limit"},
		{"jwt", "recovery", "panic in a layer before"},
		{"accesslog", "recovery", "panic in a layer before"},
		{"compress", "recovery", "panic in a layer before"},
		{"jwt", "accesslog", "would not be logged"},
		{"ratelimit", "accesslog", "would not be logged"},
		{"timeout", "accesslog", "would not be seen"},
		{"ratelimit", "clientaddr", "limit the proxies"},
		{"jwt", "requestid", "no identifier"},
		{"jwt", "secure", "lack the fields"},
		{"timeout", "limit", "use up the handler's time"},
		{"breaker", "limit", "would count as failures"},
		{"breaker", "ratelimit", "would count as failures"},
		{"breaker", "cache", "could not be answered"},
		{"timeout", "breaker", "would not count as failed"},
		{"breaker", "accesslog", "would not be logged"},
		{"breaker", "metrics", "would not be counted"},
		{"queue", "jwt", "refuses would be queued"},
		{"queue", "ratelimit", "would be queued first"},
		{"queue", "accesslog", "not the client's"},
		{"queue", "cache", "nobody is given"},
		{"queue", "timeout", ""},
		{"jwt", "cors", "preflights have no credentials"},
		{"ratelimit", "cors", "could not read its refusals"},
		{"cache", "cors", "fields of another origin"},
		{"metrics", "recovery", "panic in a layer before"},
		{"jwt", "metrics", "would not be counted"},
		{"ratelimit", "metrics", "would not be counted"},
		{"cache", "metrics", "would not be counted"},
		{"timeout", "metrics", "would not be seen"},
		{"cache", "basicauth", "basicauth refuses"},
		{"cache", "apikey", "apikey refuses"},
		{"basicauth", "cors", "preflights have no credentials"},
		{"apikey", "accesslog", "would not be logged"},
		{"cache", "ipfilter", "whom ipfilter refuses"},
		{"ipfilter", "clientaddr", "limit the proxies"},
		{"ipfilter", "accesslog", "would not be logged"},
		{"ipfilter", "cors", "could not read its refusals"},
		{"breaker", "cors", "could not read its refusals"},
		{"queue", "cors", "could not read its answers"},
		{"static", "cors", "files would lack the fields"},
		{"secure", "cors", ""},
		{"cors", "secure", ""},
		{"compress", "jwt", ""},
		{"requestid", "clientaddr", ""},
		{"clientaddr", "requestid", ""},
	} {
		_, err := new(chain.Chain).With(byName[c.outer], byName[c.inner]).Then(http.NotFoundHandler())
		var order *chain.OrderError
		if refused := errors.As(err, &order); refused != (c.why != "") || refused && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s before %s: %v, want %q in it", c.outer, c.inner, err, c.why)
		}
		if c.why == "" {
			continue
		}
		if _, err := new(chain.Chain).With(byName[c.inner], byName[c.outer]).Then(http.NotFoundHandler()); err != nil {
			t.Errorf("%s before %s: %v", c.inner, c.outer, err)
		}
	}
	slices.Reverse(layers)
	if _, err := new(chain.Chain).With(layers...).Then(http.NotFoundHandler()); err == nil {
		t.Error("the whole stack is accepted in reverse")
	}
}
