// Package unsent takes back what a handler said of an answer that did not come.
package unsent

import "net/http"

// describing are the fields that describe an answer. Others, such as the request's identifier,
// are of whatever is sent instead, too.
var describing = []string{"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language",
	"Content-Length", "Content-Location", "Content-Range", "Content-Type", "Etag", "Expires", "Last-Modified", "Trailer"}

// Forget takes those fields away: a cache must not keep an error for as long as the answer would
// have been good, and no client must unpack one that is not compressed.
func Forget(h http.Header) {
	for _, field := range describing {
		delete(h, field)
	}
}
