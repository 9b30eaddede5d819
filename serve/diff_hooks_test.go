package serve_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// connKey is the context key under which these tests keep a connection.
type connKey struct{}

func keepConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}

// TestDiffForeignDeadlines has hooks and handlers set read deadlines on the
// connection itself.
func TestDiffForeignDeadlines(t *testing.T) {
	soon := 20 * time.Millisecond
	unread := func(want outcome) bool { // http.Server has a deadline hold for the first head, too
		none := want.seen == "\n" && soon < patience/4
		if none {
			soon *= 2
		}
		return none
	}
	body := func(j *journal, w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		j.note("%s %q %s", r.URL.Path, got, class(err))
		io.WriteString(w, "seen")
	}
	stalls := func(c *client) { c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe"); c.drain() }
	late := func(c *client) { // what was set before passes in the middle of a body
		for _, path := range []string{"/1", "/2"} {
			c.send("POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
			time.Sleep(2 * soon)
			c.send("llo")
			c.answer("POST")
		}
		c.end()
	}
	on := func(state http.ConnState) func(*http.Server, *journal) {
		return func(hs *http.Server, _ *journal) {
			soon := soon
			hs.ConnState = func(nc net.Conn, s http.ConnState) {
				if s == state {
					nc.SetReadDeadline(time.Now().Add(soon))
				}
			}
		}
	}
	agree(t, []exchange{
		{name: "by a handler", talk: stalls, by: []carriage{whole, encrypted, veiled},
			config: func(hs *http.Server, _ *journal) { hs.ConnContext = keepConn },
			handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
				r.Context().Value(connKey{}).(net.Conn).SetReadDeadline(time.Now().Add(soon))
				body(j, w, r)
			}},
		{name: "as a request comes", talk: stalls, by: []carriage{whole, encrypted, veiled}, handler: body, config: on(http.StateActive)},
		{name: "as a connection opens", talk: late, by: []carriage{whole, veiled}, handler: body, config: on(http.StateNew), again: unread},
		{name: "between requests", talk: late, by: []carriage{whole, encrypted, veiled}, handler: body, config: on(http.StateIdle)},
		{name: "with the context", talk: late, by: []carriage{whole, veiled}, handler: body, again: unread,
			config: func(hs *http.Server, _ *journal) {
				hs.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
					nc.SetReadDeadline(time.Now().Add(soon))
					return ctx
				}
			}},
	})
}
