package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tarehq/tare/arms/upstream"
)

// A caller asks the upstream and returns the body of its answer. Its context is that
// of the request.
type caller func(ctx context.Context, url string) (string, error)

const clients = "shared, each, no-deadline, one-limit or by-kind"

// The limits of the arms one-limit and by-kind are a tenth of the published
// ones, so that a trial of seconds sees them expire: of 1 s for internal calls, 5 s
// for third parties, and 15 s for transfers.
const (
	internalLimit = time.Second / 10
	partnerLimit  = 5 * time.Second / 10
	transferLimit = 15 * time.Second / 10
)

func newCaller(o options) (caller, error) {
	shared := &http.Client{Transport: transport(o.conns)}
	switch o.client {
	case "shared": // and the request's deadline goes along
		return func(ctx context.Context, url string) (string, error) { return upstream.Get(ctx, shared, url) }, nil
	case "each":
		return func(ctx context.Context, url string) (string, error) {
			return upstream.Get(ctx, &http.Client{Transport: transport(o.conns)}, url)
		}, nil
	case "no-deadline":
		return func(_ context.Context, url string) (string, error) {
			return upstream.Get(context.Background(), shared, url)
		}, nil
	case "one-limit":
		return limited(shared, func(string) time.Duration { return transferLimit }), nil
	case "by-kind":
		return limited(shared, limitOf), nil
	}
	return nil, fmt.Errorf("client %q: want %s", o.client, clients)
}

// transport keeps its idle connections, which net/http's default of two a host would
// close.
func transport(conns int) *http.Transport {
	if conns == 0 {
		return &http.Transport{MaxIdleConnsPerHost: 64}
	}
	return &http.Transport{MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns}
}

// limitOf returns the limit of a call by its kind.
func limitOf(url string) time.Duration {
	switch {
	case strings.HasSuffix(url, "/partner"):
		return partnerLimit
	case strings.HasSuffix(url, "/transfer"):
		return transferLimit
	}
	return internalLimit
}

// limited gives each call a limit of its own and nothing else: the deadline of the
// request does not go along.
func limited(c *http.Client, limit func(url string) time.Duration) caller {
	return func(_ context.Context, url string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), limit(url))
		defer cancel()
		return upstream.Get(ctx, c, url)
	}
}
