package chain_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/servetest"
)

// What derives from the engine's context finds the state by its Value.
func TestDerivedContextsOnServe(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		s := servetest.NewUnstartedServer(chain.Must(chain.New(pass).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			idKey.Set(r, "1")
			derived := r.WithContext(context.WithValue(r.Context(), contextKey(1), "other"))
			if got, ok := idKey.Value(derived); got != "1" || !ok {
				t.Errorf("reuse %t: got %q, %t", reuse, got, ok)
			}
			if got := derived.Context().Value(idKey); got != "1" {
				t.Errorf("reuse %t: by the context: got %v", reuse, got)
			}
			if !userKey.Set(derived, ada) {
				t.Errorf("reuse %t: Set by a derived context: got false", reuse)
			}
			if got, _ := userKey.Value(r); got != ada {
				t.Errorf("reuse %t: set by a derived context: got %v", reuse, got)
			}
			_, _ = io.WriteString(w, "done")
		}))))
		s.Config.Reuse = reuse
		s.Start()
		for range 3 {
			if got := get(t, s.Client(), s.URL); got != "done" {
				t.Errorf("reuse %t: got %q", reuse, got)
			}
		}
		s.Close()
	}
}
