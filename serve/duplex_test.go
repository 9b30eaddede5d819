package serve_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestDiffAnswerWhileRead wants a handler to answer while another goroutine of
// its reads the body, of which more comes only once the answer has begun.
func TestDiffAnswerWhileRead(t *testing.T) {
	const chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
	echo := func(j *journal, w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		j.note("duplex %s", class(rc.EnableFullDuplex()))
		reading, read := make(chan struct{}), make(chan string)
		go func() {
			io.ReadFull(r.Body, make([]byte, 1))
			close(reading)
			rest, err := io.ReadAll(r.Body)
			read <- string(rest) + " " + class(err)
		}()
		<-reading
		io.WriteString(w, "begun")
		j.note("flush %s", class(rc.Flush()))
		j.note("read %s", <-read)
		io.WriteString(w, "over")
	}
	rest := func(c *client) {
		c.until("begun")
		c.send("2\r\nbc\r\n0\r\n\r\n")
		c.until("0\r\n\r\n")
		c.end()
	}
	agree(t, []exchange{
		{name: "chunked", handler: echo, talk: func(c *client) { c.send(chunked + "\r\n1\r\na\r\n"); rest(c) }},
		{name: "after 100 Continue", handler: echo, talk: func(c *client) {
			c.send(chunked + "Expect: 100-continue\r\n\r\n")
			c.until("100 Continue\r\n\r\n")
			c.send("1\r\na\r\n")
			rest(c)
		}},
	})
}

// TestInformWhileRead wants informational answers and 100 Continue whole where the one
// comes of the handler and the other of a goroutine that reads the body, as with
// httputil.ReverseProxy.
func TestInformWhileRead(t *testing.T) {
	const hints = 50
	f := fortify(t, &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := make(chan struct{})
		go func() {
			io.Copy(io.Discard, r.Body)
			close(read)
		}()
		for range hints {
			w.WriteHeader(http.StatusEarlyHints)
		}
		<-read
		io.WriteString(w, "ok")
	})})
	for range 20 {
		nc := f.dial()
		io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi")
		nc.SetReadDeadline(time.Now().Add(long))
		all, err := io.ReadAll(nc)
		nc.Close()
		count := func(head string) int { return strings.Count(string(all), head) }
		if early, cont, ok := count("HTTP/1.1 103 Early Hints\r\n\r\n"), count("HTTP/1.1 100 Continue\r\n\r\n"), count("HTTP/1.1 200 OK\r\n"); err != nil || early != hints || cont != 1 || ok != 1 {
			t.Fatalf("got %d times 103, %d times 100, %d times 200, %v; want %d, 1, 1\n%s", early, cont, ok, err, hints, visible(string(all)))
		}
	}
	f.quiet()
}

// TestDiffTimeoutWhileRead wants http.TimeoutHandler to answer a client that
// closes in time, though the handler beneath is still reading the body.
func TestDiffTimeoutWhileRead(t *testing.T) {
	reading := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	agree(t, []exchange{{
		name: "connection closing", keeps: true, handler: mount(http.TimeoutHandler(reading, 50*time.Millisecond, "late")),
		talk: func(c *client) {
			c.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\nabc")
			c.until("late")
			c.finish()
		},
	}})
}

// TestClientGoneInDuplex has clients reset while one goroutine of the handler
// reads and another writes: the race detector sees whether what both learn of
// it is kept apart.
func TestClientGoneInDuplex(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		j := &journal{}
		run := start(t, s, whole, j, func(hs *http.Server) {
			hs.Handler = j.watch(func(_ *journal, w http.ResponseWriter, r *http.Request) {
				http.NewResponseController(w).EnableFullDuplex()
				done := make(chan struct{})
				go func() {
					defer close(done)
					io.Copy(io.Discard, r.Body)
				}()
				for range 100 {
					if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
						break
					}
				}
				<-done
			})
		})
		for range 20 {
			c := run.dial(t)
			c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc")
			c.until("x")
			c.Close()
		}
		j.settle(t)
		run.stop(t)
	})
}
