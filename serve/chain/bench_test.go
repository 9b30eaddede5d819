package chain_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/tarehq/tare/serve/chain"
)

// slot is a context with a place for the chain's state, as an engine's has.
type slot struct {
	context.Context
	held chain.Slot
}

// slotFor returns a context that derives from ctx and holds s, if that is not nil.
func slotFor(ctx context.Context, s *chain.State) *slot {
	kept := &slot{Context: ctx}
	kept.held.Store(s)
	return kept
}

func (s *slot) ChainSlot() *chain.Slot { return &s.held }

func (s *slot) Value(key any) any {
	if h := s.held.Load(); h != nil {
		if v := h.Value(key); v != nil {
			return v
		}
	}
	return s.Context.Value(key)
}

// answerOf is the engine's writer of the answer to a request with a slot.
type answerOf struct {
	http.ResponseWriter
	slot *slot
}

func (w *answerOf) ChainSlot() *chain.Slot      { return w.slot.ChainSlot() }
func (w *answerOf) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discard is a response writer that keeps nothing and can what HTTP/1's can.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}

type user struct{ Name string }

var ada = &user{"Ada"}

var keys = func() (all [50]*chain.Key[*user]) {
	for i := range all {
		all[i] = chain.NewKey[*user](fmt.Sprint("user", i))
	}
	return all
}()

type contextKey int

// layers are the middlewares that are compared: with others' means and with the
// chain's.
var layers = map[string]func(i int, next http.Handler) http.Handler{
	"noop":   func(_ int, next http.Handler) http.Handler { return &noop{next} },
	"value":  func(i int, next http.Handler) http.Handler { return &carriesValue{next, keys[i]} },
	"record": func(_ int, next http.Handler) http.Handler { return &records{next} },

	"noop-closure": func(_ int, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
	},
	"value-context": func(i int, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey(i), ada)))
		})
	},
	"record-writer": func(_ int, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sw := &statusWriter{ResponseWriter: w}
			next.ServeHTTP(sw, r)
			if sw.status == 0 {
				panic("nothing written")
			}
		})
	},
}

type noop struct{ next http.Handler }

func (h *noop) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.next.ServeHTTP(w, r) }

type carriesValue struct {
	next http.Handler
	key  *chain.Key[*user]
}

func (h *carriesValue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.next.ServeHTTP(w, h.key.With(r, ada))
}

type records struct{ next http.Handler }

func (h *records) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, rec := chain.Record(w)
	h.next.ServeHTTP(w, r)
	if rec.Status() == 0 {
		panic("nothing written")
	}
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

var pong = []byte("pong")

func answerPong(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pong) }

// stack returns layers around a handler: nested by hand if by has a dash.
func stack(by string, depth int) []func(http.Handler) http.Handler {
	mws := make([]func(http.Handler) http.Handler, depth)
	for i := range mws {
		mws[i] = func(next http.Handler) http.Handler { return layers[by](i, next) }
	}
	return mws
}

func nested(mws []func(http.Handler) http.Handler) http.Handler {
	var h http.Handler = http.HandlerFunc(answerPong)
	for i := len(mws) - 1; i >= 0; i-- {
		h = mws[i](h)
	}
	return h
}

func request(ctx context.Context) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		panic(err)
	}
	return r
}

// BenchmarkLayers compares what layers cost nested by hand and in a chain, whose
// state the engine keeps: mode=reuse resets it, mode=fresh makes it anew in
// place, as an engine does that allocates it with the request.
func BenchmarkLayers(b *testing.B) {
	for _, kind := range []string{"noop", "value", "record"} {
		for _, depth := range []int{0, 1, 10, 50} {
			hand := map[string]string{"noop": "noop-closure", "value": "value-context", "record": "record-writer"}[kind]
			b.Run(fmt.Sprintf("kind=%s/depth=%d/mode=nested", kind, depth), func(b *testing.B) {
				h, r, w := nested(stack(hand, depth)), request(b.Context()), &discard{http.Header{}}
				b.ReportAllocs()
				for b.Loop() {
					h.ServeHTTP(w, r)
				}
			})
			h := chain.Must(chain.New(stack(kind, depth)...).Then(http.HandlerFunc(answerPong)))
			w := &discard{http.Header{}}
			b.Run(fmt.Sprintf("kind=%s/depth=%d/mode=reuse", kind, depth), func(b *testing.B) {
				s := new(chain.State)
				kept := slotFor(b.Context(), s)
				r, w := request(kept), &answerOf{w, kept}
				b.ReportAllocs()
				for b.Loop() {
					s.Reset()
					h.ServeHTTP(w, r)
				}
			})
			b.Run(fmt.Sprintf("kind=%s/depth=%d/mode=fresh", kind, depth), func(b *testing.B) {
				s := new(chain.State)
				kept := slotFor(b.Context(), s)
				r, w := request(kept), &answerOf{w, kept}
				b.ReportAllocs()
				for b.Loop() {
					*s = chain.State{}
					h.ServeHTTP(w, r)
				}
			})
			b.Run(fmt.Sprintf("kind=%s/depth=%d/mode=elsewhere", kind, depth), func(b *testing.B) {
				r := request(b.Context())
				b.ReportAllocs()
				for b.Loop() {
					h.ServeHTTP(w, r)
				}
			})
		}
	}
}
