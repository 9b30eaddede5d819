package rivals_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"

	"github.com/tarehq/tare/serve/client"
)

// atOnce is a transport that answers 200 without a connection.
type atOnce struct{ answer http.Response }

func (a *atOnce) RoundTrip(*http.Request) (*http.Response, error) { return &a.answer, nil }

// BenchmarkClient is what repeats add to a call that needs none, in time and allocations. Each
// client is set up to try three times. Those of others have no budget for it.
func BenchmarkClient(b *testing.B) {
	next := &atOnce{http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}}
	ours, err := client.New(client.Options{Next: next})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://orders.test/7", nil)
	if err != nil {
		b.Fatal(err)
	}
	for name, transport := range map[string]http.RoundTripper{
		"none":     next,
		"tare":     ours,
		"failsafe": failsafehttp.NewRoundTripper(next, failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(3).Build()),
	} {
		b.Run("by="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, err := transport.RoundTrip(r)
				if err != nil || res.StatusCode != http.StatusOK {
					b.Fatal(res, err)
				}
			}
		})
	}
}
