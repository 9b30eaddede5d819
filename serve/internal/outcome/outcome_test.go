package outcome_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/serve/internal/outcome"
)

type recorder struct {
	status   int
	hijacked bool
}

func (r recorder) Status() int    { return r.status }
func (r recorder) Hijacked() bool { return r.hijacked }
func (r recorder) Bytes() int64   { return 7 }

func TestBytes(t *testing.T) {
	for method, want := range map[string]int64{"GET": 7, "HEAD": 0, "POST": 7} {
		if got := outcome.Bytes(httptest.NewRequest(method, "/", nil), recorder{}); got != want {
			t.Errorf("%s: %d bytes, want %d", method, got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		rec            recorder
		gone, panicked bool
		want           int
	}{
		"an answer":                      {recorder{status: 404}, false, false, 404},
		"an answer, the client left":     {recorder{status: 404}, true, false, 404},
		"an answer, then a panic":        {recorder{status: 200}, false, true, 200},
		"nothing":                        {recorder{}, false, false, 200},
		"nothing, the client left":       {recorder{}, true, false, 499},
		"a panic":                        {recorder{}, false, true, 500},
		"a panic, the client left":       {recorder{}, true, true, 499},
		"taken over":                     {recorder{hijacked: true}, false, false, 101},
		"taken over, as the client left": {recorder{hijacked: true}, true, false, 101},
	} {
		ctx, leave := context.WithCancel(t.Context())
		if c.gone {
			leave()
		}
		if got := outcome.Status(httptest.NewRequestWithContext(ctx, "GET", "/", nil), c.rec, c.panicked); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		leave()
	}
}
