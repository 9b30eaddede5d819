package chain_test

import (
	"flag"
	"net/http"
	"os"
	"testing"

	"github.com/tarehq/tare/serve/chain"
)

var update = flag.Bool("update", false, "rewrite testdata")

func logging(prefix string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("X-Log", prefix)
			next.ServeHTTP(w, r)
		})
	}
}

type policy[T any] struct{ allow T }

func (p *policy[T]) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
}

func listUsers(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pong) }

func TestDescribe(t *testing.T) {
	t.Setenv("TARE_CHAIN_TEST", "staging")
	c := chain.New(logging("a"), (&policy[string]{"x"}).Handler, cache).
		When(chain.Path("/api"), logging("b"), func(next http.Handler) http.Handler { return &noop{next} }).
		When(chain.Env("TARE_CHAIN_TEST", "production", "staging"), logging("staging")).
		When(chain.Env("TARE_CHAIN_TEST", "production"), logging("production")).
		When(chain.All(chain.Method("GET", "POST"), chain.Not(chain.Header("X-Robot"))), pass).
		With(chain.Layer{Name: "gate", Wrap: pass, When: chain.Any(chain.Route("GET /gate/{id}"), chain.Header("X-Gate", "open", "ajar"))}).
		With(chain.Layer{Name: "asked", Wrap: pass, When: chain.Ask("a robot asks", func(*http.Request) bool { return false })})
	got := chain.Describe(chain.Must(c.Then(http.HandlerFunc(listUsers)))) +
		"\nFor GET /api/users/{id}:\n" +
		chain.Describe(chain.Must(c.For("GET /api/users/{id}").Then(http.NewServeMux()))) +
		"\nFor DELETE /static/:\n" +
		chain.Describe(chain.Must(c.For("DELETE /static/").Then(http.HandlerFunc(listUsers)))) +
		"\nNo chain:\n" + chain.Describe(http.HandlerFunc(listUsers))
	const file = "testdata/onion.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
