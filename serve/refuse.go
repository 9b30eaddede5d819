package serve

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"github.com/tarehq/tare/serve/internal/http1"
)

// refuse answers a request that cannot be taken, and ends the connection: where
// the next request would begin is not known.
func (c *conn) refuse(err error) outcome {
	status, reason := http.StatusBadRequest, ""
	if e := (*http1.Error)(nil); errors.As(err, &e) {
		status, reason = e.Status, e.Reason
	}
	c.begin(phaseHandling) // what its head was allowed does not bound the answer
	line := strconv.Itoa(status) + " " + http.StatusText(status)
	body := line
	if reason != "" {
		body += ": " + reason
	}
	k := c.k
	k.out = append(append(append(k.out, "HTTP/1.1 "...), line...), "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"...)
	k.out = append(append(k.out, *c.e.clock.date.Load()...), "\r\n"...)
	if !bytes.HasPrefix(k.buf[k.r:k.w], []byte("HEAD ")) {
		k.out = append(k.out, body...)
	}
	return goLinger
}
