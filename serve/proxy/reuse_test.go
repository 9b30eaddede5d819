package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
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

// forgetful is an upstream that closes a connection in place of an answer to /second, unless that is the
// connection's first request. It counts how often it was asked for that.
func forgetful(t *testing.T, asked *atomic.Int64) string {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for first := true; ; first = false {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if r.URL.Path == "/second" {
						if asked.Add(1); !first {
							return
						}
					}
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestCrossed has a request that may be run twice, and meets the end of a connection that was kept, go
// to its server again if no other can take it, and no other request.
func TestCrossed(t *testing.T) {
	for _, c := range []struct {
		method   string
		attempts int
		status   int
		asked    int64
	}{
		{"GET", 0, 200, 2},
		{"DELETE", 0, 200, 2},
		{"POST", 0, 502, 1},
		{"GET", 1, 502, 1},
	} {
		var asked atomic.Int64
		url, h := front(t, proxy.Options{Attempts: c.attempts}, proxy.PoolOptions{}, forgetful(t, &asked))
		if res, _ := get(t, url+"/first"); res.StatusCode != http.StatusOK {
			t.Fatalf("the first answer is %s", res.Status)
		}
		res, _ := ask(t, must(http.NewRequest(c.method, url+"/second", nil)))
		if res.StatusCode != c.status || asked.Load() != c.asked || h.Counts().Retries != uint64(c.asked-1) {
			t.Errorf("%s, %d attempts: got %s, asked %d times with %d retries, want %d, %d", c.method, c.attempts, res.Status, asked.Load(), h.Counts().Retries, c.status, c.asked)
		}
	}
}
