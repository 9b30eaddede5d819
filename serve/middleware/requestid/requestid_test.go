package requestid_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/requestid"
)

func Example() {
	h := requestid.New(requestid.Options{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(requestid.From(r.Context()))
	}))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Request-Id", "order-7")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Header().Get("X-Request-Id"))
	// Output:
	// order-7
	// order-7
}

// ask returns the identifier that the handler saw and the one answered.
func ask(t *testing.T, wrap func(http.Handler) http.Handler, sent ...string) (seen, answered string) {
	t.Helper()
	h := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = requestid.From(r.Context())
	}))
	r := httptest.NewRequest("GET", "/", nil)
	for _, s := range sent {
		r.Header.Add("X-Request-Id", s)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return seen, w.Header().Get("X-Request-Id")
}

func TestIdentifier(t *testing.T) {
	made := regexp.MustCompile(`^[0-9a-f]{32}$`)
	chained := func(h http.Handler) http.Handler {
		return chain.Must(chain.New(requestid.New(requestid.Options{})).Then(h))
	}
	for name, wrap := range map[string]func(http.Handler) http.Handler{"alone": requestid.New(requestid.Options{}), "chain": chained} {
		t.Run(name, func(t *testing.T) {
			for _, sent := range []string{"a", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "Root=1-67891233-abcdef012345678912345678", strings.Repeat("x", 128)} {
				if seen, answered := ask(t, wrap, sent); seen != sent || answered != sent {
					t.Errorf("sent %q: handler saw %q, answer has %q", sent, seen, answered)
				}
			}
			all := map[string]bool{}
			for _, sent := range [][]string{nil, {""}, {"a b"}, {"a\"b"}, {"ü"}, {"a\r\nb"}, {strings.Repeat("x", 129)}, {"two", "fields"}} {
				seen, answered := ask(t, wrap, sent...)
				if !made.MatchString(seen) || seen != answered {
					t.Errorf("sent %q: handler saw %q, answer has %q", sent, seen, answered)
				}
				all[seen] = true
			}
			if len(all) != 8 {
				t.Errorf("identifiers made twice: %v", all)
			}
		})
	}
	if seen, _ := ask(t, requestid.New(requestid.Options{Distrust: true}), "mine"); !made.MatchString(seen) {
		t.Errorf("distrusted, the client's was kept: %q", seen)
	}
	if seen, _ := ask(t, func(h http.Handler) http.Handler { return h }); seen != "" {
		t.Errorf("without the middleware: %q", seen)
	}
}

// TestHeaderIsApart has a handler change the field: the identifier stays.
func TestHeaderIsApart(t *testing.T) {
	h := requestid.New(requestid.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before := requestid.From(r.Context())
		w.Header()["X-Request-Id"][0] = "other"
		w.Header().Add("X-Request-Id", "more")
		if got := requestid.From(r.Context()); got != before {
			t.Errorf("the identifier became %q", got)
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
}

// BenchmarkRequest keeps the client's identifier, or makes one, in a chain on net/http.
func BenchmarkRequest(b *testing.B) {
	h := chain.Must(chain.New(requestid.New(requestid.Options{})).Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for id, sent := range map[string]string{"made": "", "kept": "order-7"} {
		b.Run("id="+id, func(b *testing.B) {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			if sent != "" {
				r.Header.Set("X-Request-Id", sent)
			}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}
