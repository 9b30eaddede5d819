package rivals_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-resty/resty/v2"
	"github.com/gojek/heimdall/v7"
	"github.com/gojek/heimdall/v7/httpclient"
	"github.com/hashicorp/go-retryablehttp"

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
	for name, do := range map[string]func(*http.Request) (*http.Response, error){
		"none":      next.RoundTrip,
		"tare":      ours.RoundTrip,
		"failsafe":  failsafehttp.NewRoundTripper(next, failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(3).Build()).RoundTrip,
		"retryable": (&retryablehttp.RoundTripper{Client: retryable(next)}).RoundTrip,
		"heimdall": httpclient.NewClient(httpclient.WithHTTPClient(&http.Client{Transport: next}), httpclient.WithRetryCount(2),
			httpclient.WithRetrier(heimdall.NewRetrier(heimdall.NewConstantBackoff(time.Millisecond, time.Millisecond)))).Do,
		"resty": byResty(),
	} {
		b.Run("by="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, err := do(r)
				if err != nil || res.StatusCode != http.StatusOK {
					b.Fatal(res, err)
				}
			}
		})
	}
}

func retryable(next http.RoundTripper) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient, c.Logger, c.RetryMax = &http.Client{Transport: next}, nil, 2
	return c
}

// anew is atOnce for a client that changes what it gets.
type anew struct{}

func (anew) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
}

// byResty makes a request like r, as resty takes none of net/http. It reads and closes the body.
func byResty() func(*http.Request) (*http.Response, error) {
	c := resty.New().SetTransport(anew{}).SetRetryCount(2)
	return func(r *http.Request) (*http.Response, error) {
		res, err := c.R().SetContext(r.Context()).Execute(r.Method, r.URL.String())
		if err != nil {
			return nil, err
		}
		return res.RawResponse, nil
	}
}
