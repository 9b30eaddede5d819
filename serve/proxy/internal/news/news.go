// Package news passes informational answers on to a client.
package news

import (
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"

	"github.com/tarehq/tare/serve/proxy/internal/fields"
)

// News passes informational answers on, until the answer itself begins. It is safe for concurrent
// use once it has begun.
type News struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	over  bool
	old   bool // the client speaks HTTP/1.0, which has none
	calls *httptrace.ClientTrace
}

// Begin has news go to who sent the request.
func (n *News) Begin(w http.ResponseWriter, r *http.Request) { n.w, n.old = w, !r.ProtoAtLeast(1, 1) }

// Trace is for requests to upstreams whose news pass.
func (n *News) Trace() *httptrace.ClientTrace {
	if n.calls == nil {
		n.calls = &httptrace.ClientTrace{Got1xxResponse: n.Pass}
	}
	return n.calls
}

// Pass passes one on. 100 is the server's own to send, once the body is read.
func (n *News) Pass(status int, header textproto.MIMEHeader) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over || n.old || status == http.StatusContinue {
		return nil
	}
	to := n.w.Header()
	before := to.Clone()
	fields.CopyAnswer(to, http.Header(header))
	n.w.WriteHeader(status)
	clear(to)
	maps.Copy(to, before)
	return nil
}

// Stop has no more pass: the answer begins, or nobody could say whose they are.
func (n *News) Stop() {
	n.mu.Lock()
	n.over = true
	n.mu.Unlock()
}
