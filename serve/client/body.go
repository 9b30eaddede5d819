package client

import (
	"io"
	"net/http"
	"time"
)

// What is read of an answer that nobody wants, so that its connection can be used again.
const (
	drainBytes = 4 << 10
	drainTime  = time.Second
)

// discard ends an answer that nobody wants. It does not wait for the upstream.
func discard(res *http.Response) {
	if res == nil {
		return
	}
	go func() {
		defer time.AfterFunc(drainTime, func() { res.Body.Close() }).Stop()
		_, _ = io.CopyN(io.Discard, res.Body, drainBytes)
		res.Body.Close()
	}()
}
