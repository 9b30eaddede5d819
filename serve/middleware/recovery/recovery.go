// Package recovery answers 500 when a handler panics, and logs the stack.
//
// It never writes over an answer that has begun: it then aborts the connection, so
// that the client sees a cut answer and not a whole one that is wrong.
// [http.ErrAbortHandler] passes through untouched. A panic on a goroutine that the
// handler started ends the process, as everywhere in Go.
//
// Place: outermost. A panic in a layer before it would not be caught. Layers behind
// it that log or count requests see a panic pass by and note it as a 500.
//
// Cost: one deferred function. In a chain it allocates nothing; elsewhere it makes a
// recorder of the answer.
package recovery

import (
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/safelog"
	"github.com/tarehq/tare/serve/internal/unsent"
	"github.com/tarehq/tare/serve/middleware/requestid"
)

// Options of the middleware. The zero value logs to [slog.Default] and answers a
// plain 500.
type Options struct {
	// Log gets an error record for each panic: id of package requestid, if there is one, method,
	// path, value and stack. If its handler panics too, the record is lost and the request
	// answered. Nil: [slog.Default].
	Log *slog.Logger
	// Answer writes the answer, if nothing was written yet. It gets what the handler
	// panicked with; do not show that to clients. Fields that described the answer that did
	// not come, such as Cache-Control, are gone. Nil: 500 and its text.
	Answer func(w http.ResponseWriter, r *http.Request, value any)
}

// New returns the middleware.
func New(o Options) func(http.Handler) http.Handler {
	if o.Answer == nil {
		o.Answer = answer
	}
	return func(next http.Handler) http.Handler { return &handler{o, next} }
}

type handler struct {
	o    Options
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "recovery", Rules: []chain.Rule{
		chain.First("it would not catch a panic in a layer before it"),
		chain.Once("the inner one answers, so the outer one never would"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, rec := chain.Record(w)
	defer h.recover(w, rec, r)
	h.next.ServeHTTP(w, r)
}

func (h *handler) recover(w http.ResponseWriter, rec *chain.Recorder, r *http.Request) {
	value := recover()
	switch {
	case value == nil:
		return
	case value == http.ErrAbortHandler:
		panic(value)
	}
	log := h.o.Log
	if log == nil {
		log = slog.Default()
	}
	attrs := []slog.Attr{slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("panic", value),
		slog.String("stack", string(debug.Stack()))}
	if id := requestid.From(r.Context()); id != "" { // as in the access log
		attrs = append(attrs, slog.String("id", id))
	}
	safelog.New(log).LogAttrs(r.Context(), slog.LevelError, "handler panicked", attrs...)
	if rec.Hijacked() {
		return // the connection is the handler's
	}
	if rec.Written() {
		panic(http.ErrAbortHandler)
	}
	unsent.Forget(w.Header())
	h.o.Answer(w, r, value)
}

func answer(w http.ResponseWriter, _ *http.Request, _ any) {
	http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
}
