package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
)

// caller asks an upstream, which this program serves itself.
type caller struct {
	url    string
	shared *http.Client // nil: a client of its own for each request
}

func newCaller(shared bool) (*caller, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the upstream: %w", err)
	}
	upstream := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, body) })}
	go func() { _ = upstream.Serve(l) }() // to the end of the program
	c := &caller{url: "http://" + l.Addr().String()}
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
	stock, err := ask(client, r, c.url)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	reply(w, stock)
}

func ask(client *http.Client, r *http.Request, url string) (string, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}
