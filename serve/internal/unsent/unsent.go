// Package unsent takes back what a handler said of an answer that did not come.
package unsent

import (
	"net/http"
	"strings"
)

// describing are the fields that describe an answer. Others, such as the request's identifier,
// are of whatever is sent instead, too.
var describing = []string{"Accept-Ranges", "Content-Digest", "Content-Disposition", "Content-Encoding", "Content-Language",
	"Content-Length", "Content-Location", "Content-Md5", "Content-Range", "Content-Type", "Digest", "Etag", "Expires",
	"Last-Modified", "Repr-Digest", "Surrogate-Control", "Trailer"}

// Forget takes those fields away: a cache must not keep an error for as long as the answer would
// have been good, and no client must unpack one that is not compressed. Caches have fields of their
// own beside Cache-Control, whose names end like that (RFC 9213).
func Forget(h http.Header) {
	for _, field := range describing {
		delete(h, field)
	}
	for field := range h {
		if strings.HasSuffix(field, "Cache-Control") {
			delete(h, field)
		}
	}
}
