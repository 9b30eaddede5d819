package main

import (
	"net/http"

	"github.com/tarehq/tare/arms/upstream"
)

// caller asks an upstream, which this program serves itself.
type caller struct {
	url    string
	shared *http.Client // nil: a client of its own for each request
}

func newCaller(shared bool) (*caller, error) {
	url, err := upstream.Start(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, body) }))
	if err != nil {
		return nil, err
	}
	c := &caller{url: url}
	if shared {
		c.shared = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	}
	return c, nil
}

// ServeHTTP reads the upstream's answer whole and closes it, as one should. The
// connection is then idle, for the next request of the same client: a client
// that has none keeps it for nothing, with a goroutine that reads and one that
// writes.
func (c *caller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	client := c.shared
	if client == nil {
		client = &http.Client{Transport: new(http.Transport)}
	}
	stock, err := upstream.Get(r.Context(), client, c.url)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	reply(w, stock)
}
