package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// gone waits for the request's context to end, within patience.
func gone(j *journal, r *http.Request) {
	select {
	case <-r.Context().Done():
		j.note("done: %v, cause %v", r.Context().Err(), context.Cause(r.Context()))
	case <-time.After(patience):
		j.note("context did not end")
	}
}

// TestDiffContext compares when the request's context ends.
func TestDiffContext(t *testing.T) {
	leave := func(sent string) func(*client) {
		return func(c *client) { c.send(sent); c.until("begun"); c.Close() }
	}
	begun := func(then act) act {
		return func(j *journal, w http.ResponseWriter, r *http.Request) {
			flushed("begun")(j, w, r)
			then(j, w, r)
		}
	}
	wait := func(j *journal, _ http.ResponseWriter, r *http.Request) { gone(j, r) }
	agree(t, []exchange{
		{name: "client goes", talk: leave(request("/")), handler: begun(wait)},
		{name: "client goes, waiting from before", talk: leave(request("/")), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			done := r.Context().Done()
			flushed("begun")(j, w, r)
			<-done
			j.note("%v", r.Context().Err())
		}},
		{name: "client goes, Err is polled", talk: leave(request("/")), handler: begun(func(j *journal, w http.ResponseWriter, r *http.Request) {
			for by := time.Now().Add(patience); r.Context().Err() == nil && time.Now().Before(by); {
				runtime.Gosched()
			}
			j.note("%v", r.Context().Err())
		})},
		{name: "client goes, child context", talk: leave(request("/")), handler: begun(func(j *journal, w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
			defer cancel()
			<-ctx.Done()
			j.note("%v", ctx.Err())
		})},
		{name: "client goes, AfterFunc", talk: leave(request("/")), handler: begun(func(j *journal, w http.ResponseWriter, r *http.Request) {
			called := make(chan bool)
			context.AfterFunc(r.Context(), func() { close(called) })
			<-called
			j.note("%v", r.Context().Err())
		})},
		{name: "client goes, body read", talk: leave(post("hello")), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			begun(wait)(j, w, r)
		}},
		{name: "client goes, body unread", talk: leave(post("hello")), handler: begun(wait)},
		{name: "client goes, CloseNotify", talk: leave(request("/")), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			//lint:ignore SA1019 old middleware still asks for it
			gone := w.(http.CloseNotifier).CloseNotify()
			flushed("begun")(j, w, r)
			j.note("gone %v", <-gone)
		}},
		{name: "client stays, CloseNotify", send: request("/1") + request("/2"), methods: "GET GET", keeps: true, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			//lint:ignore SA1019 old middleware still asks for it
			gone := w.(http.CloseNotifier).CloseNotify()
			select {
			case <-gone:
				j.note("gone though the client stays")
			default:
			}
		}},
		{name: "asked for after the body was cut short", talk: func(c *client) {
			c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
			c.until("\r\n\r\n")
			c.send("he")
			c.Close()
		}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			j.note("body %q %s", body, class(err))
			wait(j, w, r)
		}},
		{name: "asked for after a write failed", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
			_, err := w.Write(make([]byte, 10000))
			j.note("write %s", class(err))
			wait(j, w, r)
		}},
	})
}

// TestDiffContextLasts compares contexts of clients that stay.
func TestDiffContextLasts(t *testing.T) {
	wait := func(j *journal, _ http.ResponseWriter, r *http.Request) { gone(j, r) }
	agree(t, []exchange{
		{name: "client ends sending", talk: func(c *client) { c.send(request("/")); c.finish() }, handler: wait, by: []carriage{whole}},
		{name: "ends with the request", keeps: true, send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			j.note("in the handler %v", ctx.Err())
			j.count(1)
			go func() {
				defer j.count(-1)
				gone(j, r.WithContext(ctx))
			}()
		}},
		{name: "deadline and values", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			_, ok := r.Context().Deadline()
			j.note("deadline %v, unknown value %v", ok, r.Context().Value("unknown"))
			j.note("local %v", r.Context().Value(http.LocalAddrContextKey))
			hs, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
			j.note("server %v", ok && hs.MaxHeaderBytes == 4321 && hs.Handler != nil && hs.ErrorLog != nil)
		}, config: func(hs *http.Server, _ *journal) { hs.MaxHeaderBytes = 4321 }},
		{name: "middleware adds a value", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			type key struct{}
			r = r.WithContext(context.WithValue(r.Context(), key{}, "v"))
			j.note("%v %v", r.Context().Value(key{}), r.Context().Value(http.ServerContextKey) != nil)
			r = r.Clone(r.Context())
			r.SetPathValue("a", "b")
			j.note("%q %v", r.PathValue("a"), r.Context().Err())
		}},
		{name: "client stays while the handler waits for a child", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
			defer cancel()
			<-ctx.Done()
			j.note("child %v, parent %v", ctx.Err(), r.Context().Err())
		}},
		{name: "next request arrives while waiting", talk: func(c *client) {
			c.send(request("/1"))
			c.until("begun")
			c.send(request("/2"))
			c.answer("GET")
			c.drain()
		}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/2" {
				w.Header().Set("Connection", "close")
				return
			}
			done := r.Context().Done()
			flushed("begun")(j, w, r)
			select {
			case <-done:
				j.note("done though the client stays")
			case <-time.After(50 * time.Millisecond):
				j.note("%v", r.Context().Err())
			}
		}},
	})
}

// TestDiffBaseContext compares BaseContext and ConnContext.
func TestDiffBaseContext(t *testing.T) {
	type key string
	agree(t, []exchange{{name: "values", send: request("/1") + request("/2"), methods: "GET GET",
		config: func(hs *http.Server, j *journal) {
			hs.BaseContext = func(l net.Listener) context.Context {
				j.note("base %s", l.Addr())
				return context.WithValue(context.Background(), key("base"), "b")
			}
			hs.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
				j.note("conn %s %v %v", c.RemoteAddr(), ctx.Value(key("base")), ctx.Value(http.ServerContextKey) != nil)
				return context.WithValue(ctx, key("conn"), "c")
			}
		},
		handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%v %v", r.Context().Value(key("base")), r.Context().Value(key("conn")))
		}},
		{name: "base cancelled", send: request("/"), by: []carriage{whole, bytewise, veiled}, config: func(hs *http.Server, j *journal) {
			hs.BaseContext = func(net.Listener) context.Context {
				ctx, cancel := context.WithCancelCause(context.Background())
				cancel(errors.New("base ended"))
				return ctx
			}
		}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) { gone(j, r) }},
	})
}

// TestDiffPanic compares what a panic leaves on the wire and in the log.
func TestDiffPanic(t *testing.T) {
	after := func(before act, v any) act {
		return func(j *journal, w http.ResponseWriter, r *http.Request) {
			before(j, w, r)
			panic(v)
		}
	}
	var table []exchange
	for name, before := range map[string]act{
		"at once": writes(), "after a write": writes("x"), "after a larger write": writes(strings.Repeat("x", 3<<10)),
		"after the head": status(201, writes()), "after a flush": flushed("x"), "after a whole answer": with(flushed("abc"), "Content-Length", "3"),
	} {
		table = append(table,
			exchange{name: name, handler: after(before, "boom"), send: request("/"), logs: 1},
			exchange{name: name + " with a body", handler: after(before, "boom"), send: post("hello"), logs: 1},
			exchange{name: name + " abort", handler: after(before, http.ErrAbortHandler), send: request("/")},
			exchange{name: name + " wrapped abort", handler: after(before, fmt.Errorf("x: %w", http.ErrAbortHandler)), send: request("/"), logs: 1})
	}
	agree(t, append(table,
		exchange{name: "recovered", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			defer func() { j.note("%v", recover()); http.Error(w, "sorry", 500) }()
			panic("boom")
		}},
		exchange{name: "Goexit", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "x")
			runtime.Goexit()
		}},
		exchange{name: "second of two", send: request("/1") + request("/2"), methods: "GET GET", logs: 1, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/2" {
				panic("boom")
			}
		}},
	))
}
