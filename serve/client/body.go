package client

import (
	"context"
	"io"
	"net/http"
	"time"
)

// endWith has cancel called when the answer is over: at its body's end or when it is
// closed, or now if there is none.
func endWith(res *http.Response, err error, cancel context.CancelFunc) (*http.Response, error) {
	if err != nil || res == nil {
		cancel()
		return res, err
	}
	b := &endingBody{res.Body, cancel}
	if w, ok := res.Body.(io.Writer); ok { // after 101
		res.Body = &endingStream{b, w}
	} else {
		res.Body = b
	}
	return res, nil
}

// endingBody calls end when it is over.
type endingBody struct {
	io.ReadCloser
	end context.CancelFunc
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// endingStream is a body that can be written to.
type endingStream struct {
	*endingBody
	io.Writer
}

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
