// Package upstream is what an arm calls: a server in the arm's own process, and the call.
//
// Both are the same for every arm, so that arms differ in their clients alone. It is not
// for services: their upstreams are elsewhere.
package upstream

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Start serves h on a loopback port of its own to the end of the program, and returns its
// URL without a path.
func Start(h http.Handler) (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("starting the upstream: %w", err)
	}
	go func() { _ = (&http.Server{Handler: h}).Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// Get returns the body of an answer. It reads the answer whole and closes it, so that its
// connection can be used again.
func Get(ctx context.Context, c *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}
