// Package news passes informational answers on to a client.
package news

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"sync/atomic"

	"github.com/tarehq/tare/serve/proxy/internal/fields"
)

// News passes informational answers on, until the answer itself begins. It is safe for concurrent
// use once it has begun.
type News struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	over bool
	old  bool // the client speaks HTTP/1.0, which has none
	n    int  // that have come
}

const (
	most      = 100 // that pass
	mostConns = 100 // that one request may use
)

var (
	errEndless = errors.New("more than 100 informational answers")
	errChurn   = errors.New("each of 100 connections ended before the answer")
)

// Begin has news go to who sent the request.
func (n *News) Begin(w http.ResponseWriter, r *http.Request) { n.w, n.old = w, !r.ProtoAtLeast(1, 1) }

// Trace returns a context for a request to an upstream whose news pass.
//
// It ends after many connections: those of HTTP/2 that their server ends at once (GOAWAY) are
// followed by further ones for as long as the request lasts, as the standard library has it.
func (n *News) Trace(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var conns atomic.Int32
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: n.Pass,
		GetConn: func(string) {
			if conns.Add(1) > mostConns {
				cancel(errChurn)
			}
		},
	}), cancel
}

// Pass passes one on. 100 is the server's own to send, once the body is read.
func (n *News) Pass(status int, header textproto.MIMEHeader) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.n++; n.n > most {
		return errEndless
	}
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
