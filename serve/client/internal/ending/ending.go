// Package ending tells when an answer is over.
package ending

import (
	"io"
	"net/http"
)

// With has end be called when the answer is over: at its body's end, where reading it fails and
// where it is closed, so perhaps more than once; or now if there is no answer.
func With(res *http.Response, err error, end func()) (*http.Response, error) {
	if err != nil || res == nil {
		end()
		return res, err
	}
	if res.Body == nil { // as a transport of the user's may leave it
		res.Body = http.NoBody
	}
	b := &body{res.Body, end}
	if w, ok := res.Body.(io.Writer); ok { // after 101
		res.Body = &stream{b, w}
	} else {
		res.Body = b
	}
	return res, nil
}

// body calls end when it is over.
type body struct {
	io.ReadCloser
	end func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// stream is a body that can be written to.
type stream struct {
	*body
	io.Writer
}
