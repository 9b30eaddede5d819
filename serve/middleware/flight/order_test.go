package flight_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/flight"
)

// TestOrder builds chains with the middleware in and out of its place.
func TestOrder(t *testing.T) {
	r, err := flight.New(flight.Options{SlowerThan: time.Hour, Sink: func(flight.Request) (io.WriteCloser, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pass := func(next http.Handler) http.Handler { return http.HandlerFunc(next.ServeHTTP) }
	watched := chain.Layer{Wrap: r.Middleware}
	log := chain.Layer{Name: "log", Wrap: pass}
	queue := chain.Layer{Name: "queue", Roles: []string{"limit"}, Wrap: pass}
	tests := []struct {
		name   string
		layers []chain.Layer
		want   string // part of the error; "" = it is right
	}{
		{"before what requests wait in", []chain.Layer{log, watched, queue}, ""},
		{"after it", []chain.Layer{queue, watched}, "flight (layer 2) must not stand after queue (layer 1): what a request waits there would not count"},
		{"twice", []chain.Layer{watched, log, watched}, "flight (layer 3) must not stand beside flight (layer 1): a slow request would be noted twice"},
		{"rules taken off", []chain.Layer{queue, {Wrap: r.Middleware, Rules: []chain.Rule{}}}, ""},
	}
	for _, tt := range tests {
		_, err := new(chain.Chain).With(tt.layers...).Then(http.NotFoundHandler())
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: got %v, want no error", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
