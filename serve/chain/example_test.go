package chain_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tarehq/tare/serve/chain"
)

type member struct{ Name string }

var memberKey = chain.NewKey[*member]("member")

// authenticate is a middleware as any: where it stands in a chain, With costs
// no copy of the request.
func authenticate(next http.Handler) http.Handler { return &authenticated{next} }

type authenticated struct{ next http.Handler }

func (h *authenticated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.next.ServeHTTP(w, memberKey.With(r, &member{"Ada"}))
}

// account prints who was answered what.
func account(next http.Handler) http.Handler { return &accounted{next} }

type accounted struct{ next http.Handler }

func (h *accounted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, rec := chain.Record(w)
	h.next.ServeHTTP(w, r)
	m, _ := memberKey.Value(r) // set further in
	fmt.Println(r.Method, r.URL.Path, rec.Status(), rec.Bytes(), m.Name)
}

func hello(w http.ResponseWriter, r *http.Request) {
	m, _ := memberKey.Value(r)
	fmt.Fprintf(w, "Hello, %s!", m.Name)
}

func Example() {
	h, err := chain.New(account, authenticate).Then(http.HandlerFunc(hello))
	if err != nil {
		fmt.Println(err)
		return
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/hello", nil))
	// Output: GET /hello 200 11 Ada
}

func ExampleChain_Then() {
	cache := chain.Layer{
		Name:  "cache",
		Wrap:  func(next http.Handler) http.Handler { return next },
		Rules: []chain.Rule{chain.After("auth", "it would answer those whom auth has not let in")},
	}
	auth := chain.Layer{Name: "auth", Wrap: authenticate}
	_, err := new(chain.Chain).With(cache, auth).Then(http.HandlerFunc(hello))
	fmt.Println(err)
	// Output: building the chain: cache (layer 1) must not stand before auth (layer 2): it would answer those whom auth has not let in
}

func ExampleChain_For() {
	common := chain.New(account).
		When(chain.Path("/admin"), authenticate).
		When(chain.Env("TARE_EXAMPLE_UNSET"), account)
	fmt.Print(chain.Describe(chain.Must(common.For("GET /admin/users/{id}").Then(http.HandlerFunc(hello)))))
	// Output:
	// chain_test.accounted
	// └─ chain_test.authenticated
	//   └─ chain.hello
	// excluded: chain.account (when env TARE_EXAMPLE_UNSET)
}

func ExampleKeyOf() {
	type oldKey struct{} // of a package that knows nothing of chains
	key := chain.KeyOf[string](oldKey{})
	old := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Context().Value(oldKey{}))
	})
	layer := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, key.With(r, "found"))
		})
	}
	chain.Must(chain.New(layer).Then(old)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	// Output: found
}
