package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// names are the values of the flag -layers.
const names = "none, one, two, three, five, flattened or merged"

// middleware is a layer around a handler.
type middleware = func(http.Handler) http.Handler

// service holds what the middlewares need.
type service struct {
	token   string
	user    *user // whom the token stands for
	metrics *metrics
	access  *slog.Logger // a line a request
	errors  *slog.Logger // recovered panics
}

// wrap puts the middlewares of that name around h; flattened has h's answer in itself.
func (s *service) wrap(name string, h http.Handler) (http.Handler, error) {
	auth, measure, recovery := auth(s.token, s.user), measure(s.metrics), recovery(s.errors)
	var chain []middleware // outermost first
	switch name {
	case "none":
	case "one":
		chain = []middleware{auth}
	case "two":
		chain = []middleware{auth, recovery}
	case "three":
		chain = []middleware{auth, measure, recovery}
	case "five":
		chain = []middleware{requestID(), accessLog(s.access), auth, measure, recovery}
	case "flattened":
		return &flattened{service: s, body: []byte(users)}, nil
	case "merged":
		chain = []middleware{merged(s)}
	default:
		return nil, fmt.Errorf("no layers %q: want %s", name, names)
	}
	for _, m := range slices.Backward(chain) {
		h = m(h)
	}
	return h, nil
}

// user is whom a request comes from.
type user struct {
	ID   int
	Name string
}

type (
	userKey      struct{} // of the *user in a request's context
	requestIDKey struct{} // of the string
)

// auth lets the bearer of the token through and puts that user into the
// context, for the handlers that ask who it is.
func auth(token string, u *user) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !bears(r, token) {
				unauthorized(w)
				return
			}
			ctx := context.WithValue(r.Context(), userKey{}, u)
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

func bears(r *http.Request, token string) bool {
	got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(got), []byte(token)) == 1
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "unauthorized", http.StatusUnauthorized)
}

// statusWriter remembers what was answered.
type statusWriter struct {
	http.ResponseWriter
	status int // 0 until the header is written
	bytes  int
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
	n, err := w.ResponseWriter.Write(p)
	w.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// sent returns the status that the client gets if nothing more is written.
func (w *statusWriter) sent() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// measure counts and times what next answers.
func measure(m *metrics) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			sw := &statusWriter{ResponseWriter: w}
			next.ServeHTTP(sw, r)
			m.observe(r.Method, sw.sent(), time.Since(start))
		})
	}
}

// recovery answers 500 for a handler that panics, except to abort.
func recovery(log *slog.Logger) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if v := recover(); v != nil {
					recovered(w, r, log, v)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

func recovered(w http.ResponseWriter, r *http.Request, log *slog.Logger, v any) {
	if v == http.ErrAbortHandler {
		panic(v)
	}
	log.ErrorContext(r.Context(), "panic", "value", v, "path", r.URL.Path, "stack", string(debug.Stack()))
	http.Error(w, "internal server error", http.StatusInternalServerError)
}

// requestID names a request, unless the client did, to the client and to the
// layers inside.
func requestID() middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("X-Request-Id")
			if id == "" {
				var raw [16]byte
				rand.Read(raw[:])
				id = hex.EncodeToString(raw[:])
			}
			w.Header().Set("X-Request-Id", id)
			ctx := context.WithValue(r.Context(), requestIDKey{}, id)
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// accessLog logs a line for each request.
func accessLog(log *slog.Logger) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			sw := &statusWriter{ResponseWriter: w}
			next.ServeHTTP(sw, r)
			id, _ := r.Context().Value(requestIDKey{}).(string)
			log.LogAttrs(r.Context(), slog.LevelInfo, "request",
				slog.String("id", id),
				slog.String("method", r.Method),
				slog.String("path", r.URL.Path),
				slog.Int("status", sw.sent()),
				slog.Int("bytes", sw.bytes),
				slog.Duration("took", time.Since(start)))
		})
	}
}
