package serve_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDiffKeepAlive compares when a connection is kept for another request.
func TestDiffKeepAlive(t *testing.T) {
	var table []exchange
	for _, version := range []string{"1.1", "1.0"} {
		for _, token := range []string{
			"", "close", "keep-alive", "Keep-Alive", "CLOSE", "close, keep-alive", "keep-alive, close", "x, keep-alive",
			"x", "closed", "upgrade", "keep-alive\r\nConnection: close", "", "\"close\"", " close ,",
		} {
			line := ""
			if token != "" {
				line = "Connection: " + token + "\r\n"
			}
			if version == "1.0" && strings.Contains(token, "close") && strings.Contains(token, "keep-alive") {
				continue // row close-prevails
			}
			table = append(table,
				exchange{name: version + " " + token, send: "GET / HTTP/" + version + "\r\nHost: a\r\n" + line + "\r\n"},
				exchange{name: version + " flushed " + token, handler: flushed("a", "b"), send: "GET / HTTP/" + version + "\r\nHost: a\r\n" + line + "\r\n"})
		}
	}
	off := func(s server) { s.SetKeepAlivesEnabled(false) }
	table = append(table,
		exchange{name: "disabled", send: request("/"), before: off},
		exchange{name: "disabled, keep-alive by handler", send: request("/"), before: off, handler: with(writes("x"), "Connection", "keep-alive")},
		exchange{name: "disabled, close by handler", send: request("/"), before: off, handler: with(writes("x"), "Connection", "close", "X", "y")},
		exchange{name: "proxy connection", send: request("/", "Proxy-Connection: close")},
	)
	agreeAtOnce(t, table)
}

// flushed writes each part and flushes it.
func flushed(parts ...string) act {
	return func(j *journal, w http.ResponseWriter, _ *http.Request) {
		for _, p := range parts {
			io.WriteString(w, p)
			j.note("flush %s", class(http.NewResponseController(w).Flush()))
		}
	}
}

// TestDiffPipeline compares requests that arrive together.
func TestDiffPipeline(t *testing.T) {
	get := func(path string) string { return request(path) }
	closing := "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	heard := make(chan bool, 1)
	hears := func(c *client) {
		c.send(get("/1") + get("/2"))
		status, _ := c.answer("GET")
		heard <- status == http.StatusOK
		c.answer("GET")
		c.end()
	}
	// begun begins the second answer, and goes on once the first is heard.
	begun := func(begin, goOn act) act {
		return func(j *journal, w http.ResponseWriter, r *http.Request) {
			begin(j, w, r)
			if r.URL.Path == "/2" {
				j.note("heard %t", <-heard)
			}
			goOn(j, w, r)
		}
	}
	nothing := writes()
	heads := func(code int) act {
		return func(_ *journal, w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("A", "b")
			h.Set("Content-Type", "text/plain")
			h.Set("Transfer-Encoding", "chunked")
			h.Set("X", "y")
			w.WriteHeader(code)
		}
	}
	agree(t, []exchange{
		{name: "first answer heard before the second is given", by: []carriage{whole, bytewise}, talk: hears, handler: begun(nothing, writes("x"))},
		{name: "first answer heard before the second goes on", talk: hears, handler: begun(writes("a"), writes("b"))},
		{name: "first answer heard before a long second goes on", talk: hears, handler: begun(writes(strings.Repeat("a", 3000)), writes(strings.Repeat("b", 3000)))},
		{name: "first answer heard before the second has a body", talk: hears, handler: begun(heads(http.StatusOK), writes("x"))},
		{name: "first answer heard before the second ends without a body", talk: hears, handler: begun(heads(http.StatusNotModified), nothing)},
		{name: "first answer heard before the second panics", talk: hears, handler: begun(writes("a"), func(_ *journal, _ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/2" {
				panic(http.ErrAbortHandler)
			}
		})},
		{name: "second answer too late by its handler's deadline", send: get("/1") + get("/2"), methods: "GET", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/2" {
				j.note("deadline %s", class(http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second))))
			}
			io.WriteString(w, r.URL.Path)
		}},
		{name: "second answer too late by its handler's deadline, begun", send: get("/1") + get("/2"), methods: "GET", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, r.URL.Path)
			if r.URL.Path == "/2" {
				j.note("deadline %s", class(http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second))))
			}
		}},
		{name: "two", send: get("/1") + get("/2"), methods: "GET GET"},
		{name: "sixteen", send: strings.Repeat(get("/n"), 16), methods: strings.Repeat("GET ", 16)},
		{name: "with bodies", send: post("one") + post("two") + get("/3"), methods: "POST POST GET"},
		{name: "chunked between", send: get("/1") + "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + get("/3"), methods: "GET POST GET"},
		{name: "head between", send: get("/1") + "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + get("/3"), methods: "GET HEAD GET"},
		{name: "after close", send: closing + get("/never"), methods: "GET"},
		{name: "bodies unread", send: post("one") + post("two") + get("/3"), methods: "POST POST GET", handler: writes("x")},
		{name: "large answers", send: strings.Repeat(get("/n"), 4), methods: "GET GET GET GET", handler: writes(strings.Repeat("x", 100<<10))},
		{name: "body once the first answer has come", talk: func(c *client) {
			c.send(get("/1") + "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
			c.answer("GET")
			c.send("hello")
			c.answer("POST")
			c.end()
		}},
		{name: "end of sending", handler: writes("x"), talk: func(c *client) { c.send(get("/1") + get("/2")); c.finish() }, by: []carriage{whole, bytewise}},
		{name: "context while the next waits", send: get("/1") + get("/2"), methods: "GET GET", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%s %v", r.URL.Path, r.Context().Err())
			flushed("a")(j, w, r)
			j.note("%s %v", r.URL.Path, r.Context().Err())
		}},
	})
}

// TestDiffExpect compares 100-continue.
func TestDiffExpect(t *testing.T) {
	head := func(lines ...string) string {
		return "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" + joinLines(lines) + "\r\n"
	}
	expect := "Expect: 100-continue"
	patient := func(c *client) {
		c.send(head(expect))
		c.until("100 Continue\r\n\r\n")
		c.send("hello")
		c.answer("POST")
		c.end()
	}
	agreeAtOnce(t, []exchange{
		{name: "waits for it", talk: patient},
		{name: "does not wait", send: head(expect) + "hello"},
		{name: "without a body", send: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n" + expect + "\r\n\r\n"},
		{name: "get", send: request("/", expect)},
		{name: "in 1.0", send: "POST / HTTP/1.0\r\nContent-Length: 5\r\n" + expect + "\r\n\r\nhello"},
		{name: "mixed case", send: head("expect: 100-Continue") + "hello"},
		{name: "list of expectations", send: head("Expect: 100-continue, x") + "hello"},
		{name: "another expectation", send: head("Expect: miracle") + "hello"},
		{name: "another expectation, and a request behind it", send: head("Expect: miracle") + "hello" + request("/never"), methods: "POST"},
		{name: "another expectation, and its body", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: miracle\r\n\r\n2a\r\n" + request("/never/x") + "\r\n0\r\n\r\n", methods: "POST"},
		{name: "another expectation in 1.0", send: "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\nExpect: miracle\r\n\r\nhello", methods: "POST"},
		{name: "options of the server", send: "OPTIONS * HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" + expect + "\r\n\r\nhello", methods: "OPTIONS"},
		{name: "body never read", send: head(expect), handler: writes("no")},
		{name: "refused", send: head(expect), handler: status(413, writes("no"))},
		{name: "body never read but sent", send: head(expect) + "hello", handler: writes("no")},
		{name: "flushed before reading", send: head(expect) + "hello", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			flushed("a")(j, w, r)
			body, err := io.ReadAll(r.Body)
			j.note("body %q %s", body, class(err))
		}},
		{name: "head before reading", send: head(expect) + "hello", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			body, err := io.ReadAll(r.Body)
			j.note("body %q %s", body, class(err))
			io.WriteString(w, "x")
		}},
		{name: "continue by handler", talk: func(c *client) {
			c.send(head(expect))
			c.until("100 Continue\r\n\r\n")
			c.send("hello")
			c.answer("POST")
			c.end()
		}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(100)
			body, err := io.ReadAll(r.Body)
			j.note("body %q %s", body, class(err))
		}},
		{name: "chunked", talk: func(c *client) {
			c.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + expect + "\r\n\r\n")
			c.until("100 Continue\r\n\r\n")
			c.send("3\r\nabc\r\n0\r\n\r\n")
			c.answer("POST")
			c.end()
		}},
		{name: "chunked, read as far as its data", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" + expect + "\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			n, err := r.Body.Read(make([]byte, 3))
			j.note("read %d %s, trailer %s", n, class(err), fields(r.Trailer))
		}, by: []carriage{whole, encrypted, veiled}},
		{name: "closed unread", send: head(expect) + "hello", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("close %s", class(r.Body.Close()))
			n, err := r.Body.Read(make([]byte, 8))
			j.note("read %d %s", n, class(err))
		}},
		{name: "answer known early", talk: func(c *client) {
			c.send(head(expect))
			c.answer("POST")
			c.end()
		}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusForbidden) }},
	})
}

// TestDiffUnreadBody compares what becomes of a body that the handler left.
func TestDiffUnreadBody(t *testing.T) {
	kib := func(n int) string { return strings.Repeat("b", n<<10) }
	chunk := func(body string) string {
		return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + hex(len(body)) + "\r\n" + body + "\r\n0\r\n\r\n"
	}
	some := func(j *journal, w http.ResponseWriter, r *http.Request) {
		n, err := io.ReadFull(r.Body, make([]byte, 10))
		j.note("read %d %s", n, class(err))
		io.WriteString(w, "x")
	}
	limited := func(limit int64) act {
		return func(j *journal, w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
			j.note("read %d %s", len(body), class(err))
			if err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			}
		}
	}
	upload := []carriage{whole, encrypted}
	table := []exchange{
		{name: "closed by handler in vain", send: strings.TrimSuffix(post("hello"), "hello"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%s", class(http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))))
			j.note("%s", class(r.Body.Close()))
		}},
		{name: "closed by handler, malformed", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
			handler: func(j *journal, w http.ResponseWriter, r *http.Request) { j.note("%s", class(r.Body.Close())) }},
		{name: "closed by handler", send: post(kib(1)), handler: func(j *journal, w http.ResponseWriter, r *http.Request) { j.note("%s", class(r.Body.Close())) }},
		{name: "given by handler", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("hello")), 5
			see(j, w, r)
		}},
		{name: "replaced by handler", send: post(kib(1)), handler: func(j *journal, w http.ResponseWriter, r *http.Request) { r.Body = http.NoBody }},
		{name: "within MaxBytesReader", send: post("hello"), handler: limited(5)},
		{name: "promised and not sent", send: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", handler: writes("x")},
		{name: "promised and not sent, flushed", send: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", handler: flushed("x")},
		{name: "connection closing", send: post(kib(1), "Connection: close"), handler: writes("x")},
		{name: "trailers behind", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", handler: writes("x")},
		{name: "answered in parts after a broken chunk", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			j.note("read, failed %v", err != nil)
			writes("why ", "not")(j, w, r)
		}},
		{name: "broken chunk behind", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", handler: writes("x")},
	}
	for _, n := range []int{1, 100, 255, 256, 300} {
		table = append(table,
			exchange{name: itoa(n) + " KiB", send: post(kib(n)), handler: writes("x"), by: upload},
			exchange{name: itoa(n) + " KiB chunked", send: chunk(kib(n)), handler: writes("x"), by: upload},
			exchange{name: itoa(n) + " KiB partly read", send: post(kib(n)), handler: some, by: upload},
			exchange{name: itoa(n) + " KiB chunked partly read", send: chunk(kib(n)), handler: some, by: upload},
			exchange{name: itoa(n) + " KiB flushed", send: post(kib(n)), handler: flushed("x"), by: upload})
	}
	agreeAtOnce(t, table)
}

// TestDiffTimeouts compares what a client gets that is too slow. The times are
// short and nothing depends on how long they really take.
func TestDiffTimeouts(t *testing.T) {
	short := 150 * time.Millisecond
	set := func(f func(*http.Server)) func(*http.Server, *journal) {
		return func(hs *http.Server, _ *journal) { f(hs) }
	}
	silent := func(sent string) func(*client) {
		return func(c *client) { c.send(sent); c.drain() }
	}
	table := []exchange{
		{name: "no head", talk: silent(""), config: set(func(s *http.Server) { s.ReadHeaderTimeout = short })},
		{name: "half a head", talk: silent("GET / HTTP/1.1\r\nHost: a\r\n"), config: set(func(s *http.Server) { s.ReadHeaderTimeout = short })},
		{name: "half a head, ReadTimeout", talk: silent("GET / HTTP/1.1\r\nHost: a\r\n"), config: set(func(s *http.Server) { s.ReadTimeout = short })},
		{name: "half a body", talk: silent("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe"), config: set(func(s *http.Server) { s.ReadTimeout = short })},
		{name: "half a chunked body", talk: silent("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"), config: set(func(s *http.Server) { s.ReadTimeout = short })},
		{name: "idle", talk: silent(request("/")), config: set(func(s *http.Server) { s.IdleTimeout = short })},
		{name: "idle by ReadTimeout", talk: silent(request("/")), config: set(func(s *http.Server) { s.ReadTimeout = short })},
		{name: "unread body never comes", talk: silent("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe"), handler: writes("x"), config: set(func(s *http.Server) { s.ReadTimeout = short })},
	}
	for i := range table { // a handshake, or byte after byte, may take longer than that
		table[i].by = []carriage{whole, veiled}
	}
	agree(t, table)
}

func hex(n int) string {
	const digits = "0123456789abcdef"
	if n < 16 {
		return digits[n : n+1]
	}
	return hex(n/16) + digits[n%16:n%16+1]
}
