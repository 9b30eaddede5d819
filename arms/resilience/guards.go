package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/client"
	"github.com/tarehq/tare/serve/client/breaker"
)

// A caller asks the upstreams and returns the body of the answer.
type caller func(ctx context.Context) (string, error)

const guards = "none, eject, retry or fallback"

// The published settings, with times of which a trial of seconds sees the effect: a
// hundredth of the 30 s and 60 s of ejection, a tenth of the second that is too slow.
const (
	consecutive = 3
	checked     = 30 * time.Second / 100
	out         = 60 * time.Second / 100
	mostOut     = 0.5 // of the upstreams
	tooSlow     = time.Second / 10
	tooMany     = 0.1 // of the requests
)

func newCaller(guard string, hosts []string) (caller, error) {
	b := &balancer{hosts: hosts, next: client.NewTransport()}
	if guard == "none" {
		return calling(b), nil
	}
	var err error
	b.group, err = breaker.NewGroup(breaker.Options{Consecutive: consecutive, Share: -1, Out: out}, mostOut)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		b.group.Member(host) // the share is of all
	}
	switch guard {
	case "eject":
		return calling(b), nil
	case "retry":
		c, err := client.New(client.Options{Next: retriable{b}, Backoff: time.Millisecond, Budget: 0.25})
		return calling(c), err
	case "fallback":
		br, err := breaker.New("upstreams", breaker.Options{Consecutive: -1, Share: tooMany, Window: checked, Out: out})
		return withFallback(br, calling(b)), err
	}
	return nil, fmt.Errorf("guard %q: want %s", guard, guards)
}

// calling returns a caller that sends its requests by rt.
func calling(rt http.RoundTripper) caller {
	return func(ctx context.Context) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://upstream/", nil)
		if err != nil {
			return "", err
		}
		res, err := rt.RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusOK {
			return "", fmt.Errorf("the upstream answers %s", res.Status)
		}
		return string(text), err
	}
}

// withFallback answers as known from before if the call fails or takes too long, and
// makes none while too many do.
func withFallback(b *breaker.Breaker, call caller) caller {
	return func(ctx context.Context) (string, error) {
		pass, err := b.Ask()
		if err != nil {
			return body, nil
		}
		ctx, cancel := context.WithTimeout(ctx, tooSlow)
		defer cancel()
		stock, err := call(ctx)
		pass.Done(err != nil)
		if err != nil {
			return body, nil
		}
		return stock, nil
	}
}

// balancer sends each request to the next of the hosts that is not ejected.
type balancer struct {
	hosts []string
	group *breaker.Group // nil: none is ejected
	next  http.RoundTripper
	turn  atomic.Uint64
}

func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	turn := int(b.turn.Add(1) % uint64(len(b.hosts)))
	if b.group == nil {
		return b.send(r, b.hosts[turn])
	}
	var refused error
	for i := range b.hosts {
		host := b.hosts[(turn+i)%len(b.hosts)]
		pass, err := b.group.Member(host).Ask()
		if err != nil {
			refused = err
			continue
		}
		res, err := b.send(r, host)
		pass.Done(err != nil || res.StatusCode >= 500)
		return res, err
	}
	return nil, refused
}

func (b *balancer) send(r *http.Request, host string) (*http.Response, error) {
	url := *r.URL
	url.Host = host
	copied := *r
	copied.URL = &url
	return b.next.RoundTrip(&copied)
}

// retriable answers 502 for 500, as a gateway does, so that a client asks again.
type retriable struct{ next http.RoundTripper }

func (t retriable) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusInternalServerError {
		res.StatusCode = http.StatusBadGateway
	}
	return res, err
}
