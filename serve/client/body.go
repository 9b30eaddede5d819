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

// discard ends an answer that nobody wants. It does not wait for the upstream. A transport of
// the user's may answer without a body, or with one that panics: nobody asks for what it says.
func discard(res *http.Response) {
	if res == nil || res.Body == nil {
		return
	}
	go func() {
		defer ignorePanic()
		defer time.AfterFunc(drainTime, func() { closeQuietly(res.Body) }).Stop()
		defer res.Body.Close() // also if reading panics
		_, _ = io.CopyN(io.Discard, res.Body, drainBytes)
	}()
}

func closeQuietly(body io.Closer) {
	defer ignorePanic()
	_ = body.Close()
}

func ignorePanic() { _ = recover() }
