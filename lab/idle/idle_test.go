package idle_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/idle"
	"github.com/tarehq/tare/lab/study"
)

// open opens n connections to a URL and closes them.
func open(ctx context.Context, n int, base string) error {
	p, err := arm.Start(ctx, arm.Program{URL: base}, arm.StartOptions{})
	if err != nil {
		return err
	}
	var all idle.Connections
	defer all.Close()
	return all.Open(ctx, n, p, study.Target{Path: "/"})
}

func Example() {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	fmt.Println(open(context.Background(), 3, srv.URL))
	// Output: status 404, want 200
}

// Idle connections go where the load goes: to the usual port of a URL that names
// none, and by TLS to one that asks for it.
func TestConnectionsOfURLs(t *testing.T) {
	if err := open(t.Context(), 1, "http://127.0.0.1"); err != nil && strings.Contains(err.Error(), "missing port") {
		t.Errorf("a URL without a port: %v", err)
	}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	if err := open(t.Context(), 1, srv.URL); err != nil {
		t.Errorf("over TLS, with any certificate: %v", err)
	}
}
