package proxy_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy"
)

// TestNothingMixed has many requests at once, some of which are sent twice, fail, or lose
// their client, and none see a field of another's: memory of those before is used again.
func TestNothingMixed(t *testing.T) {
	var n atomic.Int64
	busy := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%5 == 0 {
			w.Header().Set("X-Busy", "yes")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		own := r.Header.Get("X-Own")
		for name, values := range r.Header {
			if strings.HasPrefix(name, "X-Of-") {
				w.Header()[name] = values
			}
			for _, v := range values {
				if strings.HasPrefix(v, "of ") && v != "of "+own {
					t.Errorf("%s came with the field %s: %s", own, name, v)
				}
			}
		}
		w.Header().Set("X-Own", own)
		_, _ = io.WriteString(w, strings.Repeat(own, 100))
	})
	url, _ := front(t, proxy.Options{Budget: 1}, proxy.PoolOptions{}, busy, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		w.Header().Set("X-Own", r.Header.Get("X-Own"))
		_, _ = io.WriteString(w, strings.Repeat(r.Header.Get("X-Own"), 100))
	}))
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 40 {
				own := fmt.Sprintf("%d-%d", i, j)
				ctx, cancel := context.WithCancel(t.Context())
				if j%9 == 8 {
					time.AfterFunc(rand.N(time.Millisecond), cancel)
				}
				r := must(http.NewRequestWithContext(ctx, "GET", url+"/"+own, nil))
				r.Header.Set("X-Own", own)
				for range rand.IntN(20) {
					r.Header.Set(fmt.Sprint("X-Of-", rand.IntN(50)), "of "+own)
				}
				if err := unmixed(r, own); err != nil && j%9 != 8 {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}

// unmixed sends a request and returns what is wrong with the answer: it may be 503, but of
// another request's nothing may be in it.
func unmixed(r *http.Request, own string) error {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("X-Busy") == "yes" {
		return nil
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("X-Own") != own || string(text) != strings.Repeat(own, 100) || res.Header.Get("X-Busy") != "" {
		return fmt.Errorf("%s: got %s, %v, %.20q", own, res.Status, res.Header, text)
	}
	for name, values := range res.Header {
		if strings.HasPrefix(name, "X-Of-") && values[0] != "of "+own {
			return fmt.Errorf("%s: got the field %s: %s", own, name, values)
		}
	}
	return nil
}
