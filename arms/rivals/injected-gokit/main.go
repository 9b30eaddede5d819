//tare:module github.com/go-kit/kit

// Command injected-gokit serves what arms/injected does through middlewares of
// go-kit/kit, around an endpoint.
package main

import (
	"context"
	"net/http"
	_ "net/http/pprof"
	"slices"

	"github.com/go-kit/kit/endpoint"
	transport "github.com/go-kit/kit/transport/http"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/work"
)

func main() {
	set := work.FromFlags("injected-gokit")
	hello := endpoint.Endpoint(answer)
	for _, layer := range slices.Backward(all(set)) {
		hello = layer(hello)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", transport.NewServer(hello, decode, encode))
	mux.Handle("GET /truth", set)
	mux.Handle("/debug/pprof/", http.DefaultServeMux)
	arm.Main(arm.Options{Handler: mux})
}

// all returns the middlewares of what there is to do, outermost first.
func all(s *work.Set) []endpoint.Middleware {
	return work.Present(s, spin(s.Spin), alloc(s.Alloc), block(s.Block), lock(s.Lock), log(s.Log))
}

func spin(s *work.Spin) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, r any) (any, error) {
			s.Do()
			return next(ctx, r)
		}
	}
}

func alloc(a *work.Alloc) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, r any) (any, error) {
			a.Do()
			return next(ctx, r)
		}
	}
}

func block(b *work.Block) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, r any) (any, error) {
			b.Do()
			return next(ctx, r)
		}
	}
}

func lock(l *work.Lock) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, r any) (any, error) {
			l.Do()
			return next(ctx, r)
		}
	}
}

func log(l *work.Log) endpoint.Middleware {
	return func(next endpoint.Endpoint) endpoint.Endpoint {
		return func(ctx context.Context, r any) (any, error) {
			answer, err := next(ctx, r)
			asked := r.(*http.Request)
			l.Do(asked.Method, asked.URL.Path)
			return answer, err
		}
	}
}

func decode(_ context.Context, r *http.Request) (any, error) { return r, nil }

func answer(context.Context, any) (any, error) { return []byte(work.Body), nil }

func encode(_ context.Context, w http.ResponseWriter, answer any) error {
	w.Header().Set("Content-Type", "text/plain")
	_, err := w.Write(answer.([]byte))
	return err
}
