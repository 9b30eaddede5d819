package compress_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/compress"
	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/middleware/jwt"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
	"github.com/tarehq/tare/serve/middleware/recovery"
)

// wrong are the orders that are not safe of any two among recovery, log, limit,
// authentication, cache and compression, by outer and inner layer, with the reason.
var wrong = map[[2]string]string{
	{"accesslog", "recovery"}:  "panic in a layer before",
	{"ratelimit", "recovery"}:  "panic in a layer before",
	{"jwt", "recovery"}:        "panic in a layer before",
	{"cache", "recovery"}:      "panic in a layer before",
	{"compress", "recovery"}:   "panic in a layer before",
	{"ratelimit", "accesslog"}: "requests that it refuses would not be logged",
	{"jwt", "accesslog"}:       "requests that it refuses would not be logged",
	{"cache", "accesslog"}:     "requests that it answers would not be logged",
	{"compress", "accesslog"}:  "sizes that were not sent",
	{"cache", "ratelimit"}:     "free of the limit",
	{"cache", "jwt"}:           "whom jwt refuses",
}

// TestEveryOrder builds a chain of the six layers in each of their 720 orders. A chain is
// refused where two of them stand in an order that is not safe, with the reason of each
// such two, and accepted in the eight others.
func TestEveryOrder(t *testing.T) {
	lines := must(accesslog.New(accesslog.Options{To: io.Discard}))
	defer lines.Close(context.WithoutCancel(t.Context()))
	keys := must(jwt.Static(jwt.Key{Algorithm: "HS256", Value: []byte("a secret of at least thirty-two bytes")}))
	layers := map[string]chain.Layer{
		"recovery":  {Wrap: recovery.New(recovery.Options{})},
		"accesslog": {Wrap: lines.Middleware},
		"ratelimit": {Wrap: must(ratelimit.New(ratelimit.Options{Law: ratelimit.GCRA{Rate: 100}})).Middleware},
		"jwt":       {Wrap: must(jwt.New(jwt.Options{Keys: keys})).Middleware},
		"cache":     {Name: "cache", Wrap: func(h http.Handler) http.Handler { return h }}, // of the program's own
		"compress":  {Wrap: must(compress.New(compress.Options{}))},
	}
	orders, accepted := 0, 0
	permute([]string{"recovery", "accesslog", "ratelimit", "jwt", "cache", "compress"}, func(names []string) {
		orders++
		var reasons []string
		all := new(chain.Chain)
		for i, inner := range names {
			all = all.With(layers[inner])
			for _, outer := range names[:i] {
				if why, ok := wrong[[2]string{outer, inner}]; ok {
					reasons = append(reasons, why)
				}
			}
		}
		_, err := all.Then(http.NotFoundHandler())
		var order *chain.OrderError
		if refused := errors.As(err, &order); refused != (len(reasons) > 0) || !refused && err != nil {
			t.Errorf("%q: %v, want %d reasons against it", names, err, len(reasons))
			return
		}
		if err == nil {
			accepted++
		}
		for _, why := range reasons {
			if !strings.Contains(err.Error(), why) {
				t.Errorf("%q: %v, want %q in it", names, err, why)
			}
		}
	})
	if orders != 720 || accepted != 8 {
		t.Errorf("%d of %d orders are accepted, want 8 of 720", accepted, orders)
	}
}

// must is for layers that are written down in the program.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// permute calls f with every order of the names.
func permute(names []string, f func([]string)) {
	var from func(k int)
	from = func(k int) {
		if k == len(names) {
			f(names)
			return
		}
		for i := k; i < len(names); i++ {
			names[k], names[i] = names[i], names[k]
			from(k + 1)
			names[k], names[i] = names[i], names[k]
		}
	}
	from(0)
}
