// Package trailer says which fields behind a body a proxy passes on.
package trailer

import (
	"io"
	"net/http"

	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/proxy/internal/fields"
)

// Passes reports whether a field may pass behind a body, where readers may take it for one of the
// head: not if it frames, routes or authenticates, says who has passed the message on, or is for
// one hop, as are those that Connection has named.
func Passes(name string, named fields.Names) bool {
	return http1.TrailerAllowed(name) && !fields.OfOneHop(name) && !fields.Forwarding(name) && name != "Via" && !named.Have(name)
}

// Announced are the names of the trailers that a client has announced and that may pass.
func Announced(r *http.Request) (names []string) {
	named := fields.Nominated(r.Header["Connection"])
	for name := range r.Trailer {
		if Passes(name, named) {
			names = append(names, name)
		}
	}
	return names
}

// Body is a request's body with trailers behind it.
type Body struct {
	io.ReadCloser
	r  *http.Request // the client's
	To http.Header   // gets the trailers once the body has ended
}

// NewBody returns the body of a client's request, with trailers that have been announced.
func NewBody(body io.ReadCloser, r *http.Request, names []string) *Body {
	to := http.Header{}
	for _, name := range names {
		to[name] = nil
	}
	return &Body{body, r, to}
}

// Read implements io.Reader.
func (t *Body) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err == io.EOF {
		named := fields.Nominated(t.r.Header["Connection"])
		for name, values := range t.r.Trailer {
			if Passes(name, named) {
				t.To[name] = values
			}
		}
	}
	return n, err
}

// Pass adds what came behind an answer's body. Fields that were not announced need a
// prefix to be taken for such; promised is how many were, and named what Connection has named.
func Pass(w http.ResponseWriter, res *http.Response, promised int, named fields.Names) {
	if len(res.Trailer) == 0 {
		return
	}
	_ = http.NewResponseController(w).Flush() // a short answer would get a length, and no trailers
	var names []string
	for name := range res.Trailer {
		if Passes(name, named) {
			names = append(names, name)
		}
	}
	prefix := ""
	if len(names) != promised {
		prefix = http.TrailerPrefix
	}
	for _, name := range names {
		w.Header()[prefix+name] = res.Trailer[name]
	}
}
