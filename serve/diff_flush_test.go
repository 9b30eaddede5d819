package serve_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDiffFlush compares answers sent in pieces.
func TestDiffFlush(t *testing.T) {
	agree(t, everyWay(map[string]act{
		"parts":        flushed("a", "bc", "def"),
		"before any":   flushed("", "a"),
		"only flush":   flushed(""),
		"declared":     with(flushed("ab", "c"), "Content-Length", "3"),
		"type html":    flushed("<html>", "x"),
		"204":          status(204, flushed("")),
		"304":          status(304, flushed("")),
		"event stream": with(flushed("data: 1\n\n", "data: 2\n\n"), "Content-Type", "text/event-stream"),
		"head at once": func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(202)
			w.(http.Flusher).Flush()
			io.WriteString(w, "x")
		},
		"trailer behind": with(func(j *journal, w http.ResponseWriter, r *http.Request) {
			flushed("a")(j, w, r)
			w.Header().Set("X-Sum", "1")
		}, "Trailer", "X-Sum"),
		"header changed": func(j *journal, w http.ResponseWriter, r *http.Request) {
			flushed("a")(j, w, r)
			w.Header().Set("Late", "1")
			flushed("b")(j, w, r)
		},
		"large parts": flushed(strings.Repeat("a", 2<<10), strings.Repeat("b", 2<<10)),
	}))
}

// TestDiffFlushArrives wants a flushed part with the client before the handler
// goes on: it goes on when the client says so.
func TestDiffFlushArrives(t *testing.T) {
	agree(t, []exchange{{name: "step by step", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		j.note("duplex %s", class(rc.EnableFullDuplex()))
		buf := make([]byte, 1)
		for range 3 {
			_, err := io.ReadFull(r.Body, buf)
			j.note("read %q %s", buf, class(err))
			io.WriteString(w, "got "+string(buf))
			j.note("flush %s", class(rc.Flush()))
		}
	}, talk: func(c *client) {
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n")
		for _, s := range []string{"a", "b", "c"} {
			c.send(s)
			c.until("got " + s)
		}
		c.until("0\r\n\r\n")
		c.end()
	}}})
}

// polls lets a read deadline pass in the middle of the body, tells the client to go
// on, and reads the rest.
func polls(j *journal, w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	j.note("%s", class(rc.SetReadDeadline(time.Now().Add(30*time.Millisecond))))
	body, err := io.ReadAll(r.Body)
	j.note("%q %s", body, class(err))
	w.WriteHeader(http.StatusEarlyHints)
	j.note("%s", class(rc.SetReadDeadline(time.Time{})))
	body, err = io.ReadAll(r.Body)
	j.note("%q %s", body, class(err))
	j.note("close %s", class(r.Body.Close()))
}

// resumed sends the rest of a body when it is told to.
func resumed(framing, part, rest string) func(*client) {
	return func(c *client) {
		c.send("POST / HTTP/1.1\r\nHost: a\r\n" + framing + "\r\n\r\n" + part)
		c.until("103 Early Hints\r\n\r\n")
		c.send(rest)
		c.answer("POST")
		c.end()
	}
}

// TestDiffController compares what http.ResponseController can do.
func TestDiffController(t *testing.T) {
	past, far := time.Unix(1, 0), time.Now().Add(time.Hour)
	half := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe"
	atOnce := []carriage{whole, encrypted, veiled}
	agree(t, []exchange{
		{name: "every method", send: post("hello"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			j.note("%s %s %s", class(rc.SetReadDeadline(far)), class(rc.SetWriteDeadline(far)), class(rc.EnableFullDuplex()))
			j.note("%s %s", class(rc.SetReadDeadline(time.Time{})), class(rc.SetWriteDeadline(time.Time{})))
			body, err := io.ReadAll(r.Body)
			j.note("%q %s", body, class(err))
			j.note("%s", class(rc.Flush()))
			j.note("late duplex %s", class(rc.EnableFullDuplex()))
		}},
		{name: "read deadline past", send: half, talk: silentTalk(half), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%s", class(http.NewResponseController(w).SetReadDeadline(past)))
			_, err := io.ReadAll(r.Body)
			j.note("%s", class(err))
			_, err = io.ReadAll(r.Body)
			j.note("again %s", class(err))
			io.WriteString(w, "x")
		}},
		{name: "read deadline expires in handler", talk: silentTalk(half), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%s", class(http.NewResponseController(w).SetReadDeadline(time.Now().Add(30*time.Millisecond))))
			_, err := io.ReadAll(r.Body)
			j.note("%s", class(err))
			io.WriteString(w, "x")
		}},
		{name: "read deadline moved", talk: resumed("Content-Length: 5", "he", "llo"), handler: polls, by: atOnce},
		{name: "read deadline moved among chunks", talk: resumed("Transfer-Encoding: chunked", "2\r\nhe\r\n", "3\r\nllo\r\n0\r\n\r\n"), handler: polls, by: atOnce},
		{name: "read deadline of one request only", send: request("/1") + request("/2"), methods: "GET GET", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/1" {
				j.note("%s", class(http.NewResponseController(w).SetReadDeadline(far)))
			}
		}},
		{name: "write deadline past", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			j.note("%s", class(rc.SetWriteDeadline(past)))
			io.WriteString(w, "x")
			j.note("flush %s", class(rc.Flush()))
			j.note("flush again %s", class(rc.Flush()))
		}, by: []carriage{whole}},
		{name: "write deadline past, large", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%s", class(http.NewResponseController(w).SetWriteDeadline(past)))
			_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
			j.note("%s", class(err))
		}, by: []carriage{whole}},
		{name: "write deadline of one request only", send: request("/1") + request("/2"), methods: "GET GET", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/1" {
				j.note("%s", class(http.NewResponseController(w).SetWriteDeadline(far)))
			}
		}},
		{name: "interfaces", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			_, flusher := w.(http.Flusher)
			_, hijacker := w.(http.Hijacker)
			_, readerFrom := w.(io.ReaderFrom)
			_, stringWriter := w.(io.StringWriter)
			//lint:ignore SA1019 old middleware still asks for it
			_, notifier := w.(http.CloseNotifier)
			_, pusher := w.(http.Pusher)
			_, unwraps := w.(interface{ Unwrap() http.ResponseWriter })
			j.note("%v %v %v %v %v %v %v", flusher, hijacker, readerFrom, stringWriter, notifier, pusher, unwraps)
		}},
		{name: "write after the client went", talk: func(c *client) {
			c.send(request("/"))
			c.until("begun")
			c.Close()
		}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			flushed("begun")(j, w, r)
			<-r.Context().Done()
			failed := false
			for deadline := time.Now().Add(patience); !failed && time.Now().Before(deadline); {
				io.WriteString(w, strings.Repeat("x", 64<<10))
				failed = http.NewResponseController(w).Flush() != nil
			}
			j.note("%v, writes fail %v", r.Context().Err(), failed)
		}, by: []carriage{whole}},
	})
}

func silentTalk(sent string) func(*client) {
	return func(c *client) { c.send(sent); c.drain() }
}

// TestDiffDuplex compares reading the body while the answer is on its way.
func TestDiffDuplex(t *testing.T) {
	copying := func(full bool) act {
		return func(j *journal, w http.ResponseWriter, r *http.Request) {
			if full {
				j.note("%s", class(http.NewResponseController(w).EnableFullDuplex()))
			}
			n, err := io.Copy(w, r.Body)
			j.note("copied %d %s", n, class(err))
		}
	}
	body := strings.Repeat("0123456789abcdef", 4<<10)
	agree(t, []exchange{
		{name: "copy", send: post("hello"), handler: copying(false)},
		{name: "copy large in chunks", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1770\r\n" + strings.Repeat("b", 6000) + "\r\n0\r\n\r\n",
			handler: copying(false), by: []carriage{whole, encrypted, veiled}},
		{name: "copy in full duplex", send: post("hello"), handler: copying(true)},
		{name: "copy large in full duplex", send: post(body), handler: copying(true), by: []carriage{whole, encrypted}},
		{name: "copy in full duplex 1.0", send: "POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", handler: copying(true)},
	})
}

// TestDiffWriteTimeout wants writes to fail once WriteTimeout is over, and not
// if the handler has lifted it.
func TestDiffWriteTimeout(t *testing.T) {
	everySide(t, func(t *testing.T, s side) {
		j := &journal{}
		run := start(t, s, whole, j, func(hs *http.Server) {
			hs.WriteTimeout = 50 * time.Millisecond
			hs.Handler = j.watch(func(j *journal, w http.ResponseWriter, r *http.Request) {
				rc := http.NewResponseController(w)
				if r.URL.Path == "/lifted" {
					j.note("lift %s", class(rc.SetWriteDeadline(time.Time{})))
					time.Sleep(200 * time.Millisecond)
					io.WriteString(w, "lifted")
					j.note("flush %s", class(rc.Flush()))
					return
				}
				var err error
				for deadline := time.Now().Add(patience); err == nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
					io.WriteString(w, "x")
					err = rc.Flush()
				}
				j.note("flush %s", class(err))
			})
		})
		for _, path := range []string{"/", "/lifted"} {
			c := run.dial(t)
			c.send(request(path))
			c.answer("GET")
			j.settle(t)
			if path == "/lifted" && !strings.Contains(string(c.raw), "lifted") {
				t.Errorf("without its deadline got %q, want the body", c.raw)
			}
		}
		if got, want := j.text(), "flush i/o timeout\nlift ok\nflush ok\n"; got != want {
			t.Errorf("handler saw %q, want %q", got, want)
		}
		run.stop(t)
	})
}

// TestDeadlineAfterReturn sets deadlines once the handler has returned: they are
// not for the connection's next request.
func TestDeadlineAfterReturn(t *testing.T) {
	var kept *http.ResponseController
	j := &journal{}
	run := start(t, sides()[0], whole, j, func(hs *http.Server) {
		hs.Handler = j.watch(func(j *journal, w http.ResponseWriter, r *http.Request) {
			if kept == nil {
				kept = http.NewResponseController(w)
				return
			}
			past := time.Unix(1, 0)
			if kept.SetReadDeadline(past) == nil || kept.SetWriteDeadline(past) == nil {
				t.Error("a deadline set after the handler's return is taken, want an error")
			}
		})
	})
	c := run.dial(t)
	for range 2 {
		c.send(request("/"))
		if status, _ := c.answer("GET"); status != http.StatusOK {
			t.Errorf("status %d, want 200", status)
		}
	}
	run.stop(t)
}
