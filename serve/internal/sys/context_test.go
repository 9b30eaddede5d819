package sys_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/tarehq/tare/serve/internal/sys"
)

// TestSetContext sets contexts by the field and by the public way, which change nothing else.
func TestSetContext(t *testing.T) {
	found := sys.FindContextField()
	if !found.Known() {
		t.Error("this version of Go keeps the context elsewhere: requests cost a copy more")
	}
	type key struct{}
	for name, f := range map[string]sys.ContextField{"found": found, "public": {}} {
		r := &http.Request{Method: http.MethodPost, Host: "a", ContentLength: 7, Pattern: "/b"}
		for _, want := range []string{"one", "two"} {
			f.Set(r, context.WithValue(context.Background(), key{}, want))
			if got := r.Context().Value(key{}); got != want {
				t.Errorf("%s: got the context with %v, want %v", name, got, want)
			}
		}
		if r.Method != http.MethodPost || r.Host != "a" || r.ContentLength != 7 || r.Pattern != "/b" {
			t.Errorf("%s: the request is %+v", name, r)
		}
	}
}

// BenchmarkSetContext gives a request of the server's its context.
func BenchmarkSetContext(b *testing.B) {
	ctx := context.WithoutCancel(context.Background())
	for name, f := range map[string]sys.ContextField{"field": sys.FindContextField(), "public": {}} {
		b.Run("by="+name, func(b *testing.B) {
			b.ReportAllocs()
			r := new(http.Request)
			for b.Loop() {
				f.Set(r, ctx)
			}
		})
	}
}
