package serve_test

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestDiffSigned holds the deliberate differences: each must still be there, as
// its row of the table says, and each row must be held by an exchange.
func TestDiffSigned(t *testing.T) {
	table := signed()
	agreeAtOnce(t, table)
	var held []string
	for _, x := range table {
		held = append(held, x.row)
		if x.lenient != (serve.Lenient{}) {
			t.Run("undone "+x.name, func(t *testing.T) { x.undo(t) })
		}
	}
	slices.Sort(held)
	held = slices.Compact(held)
	if rows := rows(t); !slices.Equal(rows, held) {
		t.Errorf("rows of testdata/differences.md %q, exchanges for %q", rows, held)
	}
}

// undo wants no difference once the row's switch is set.
func (x exchange) undo(t *testing.T) {
	side := sides()[0].loosened(x.lenient)
	x.row = ""
	for _, by := range x.carriages() {
		x.judge(t, side.name+"/"+string(by), x.hold(t, control(), by), x.hold(t, side, by))
	}
}

// rows returns the names of the table's rows, sorted.
func rows(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		if len(cells) != 8 {
			t.Errorf("row %q has %d cells, want 6", line, len(cells)-2)
		}
		if sign := strings.TrimSpace(cells[2]); !slices.Contains([]string{"+", "-", "="}, sign) {
			t.Errorf("row %q: sign %q, want +, - or =", line, sign)
		}
		names = append(names, strings.Trim(strings.TrimSpace(cells[1]), "`"))
	}
	slices.Sort(names)
	return names
}

// signed are the exchanges that come out otherwise on purpose.
func signed() []exchange {
	return slices.Concat(signedTargets(), signedHeads(), signedBodies(), signedAnswers())
}

const refused400 = "HTTP/1.1 400 Bad Request\r\n"

// sent makes an exchange of a row; its name is the row's and what is sent.
func sent(row, send, want string) exchange {
	line, _, _ := strings.Cut(strings.TrimLeft(send, "\r\n"), "\r\n")
	return exchange{name: row + " " + line, row: row, send: send, want: want}
}

// undone gives x the switch that undoes its difference.
func undone(x exchange, l serve.Lenient) exchange {
	x.lenient = l
	return x
}

func signedTargets() []exchange {
	line := func(row, line, want string) exchange { return sent(row, line+"\r\nHost: a.example\r\n\r\n", want) }
	raw, path, host, user := serve.Lenient{RawTarget: true}, serve.Lenient{ConnectPath: true}, serve.Lenient{OtherHost: true, Connect: true}, serve.Lenient{UserInfo: true}
	return []exchange{
		line("refusal-reason", "GET /%zz HTTP/1.1", refused400),
		line("refusal-reason", "GET relative HTTP/1.1", refused400),
		line("refusal-reason", "GET  HTTP/1.1", refused400),
		undone(line("target-bytes", "GET /?a#frag HTTP/1.1", refused400), raw),
		undone(line("target-bytes", "GET /\xc3\xa9 HTTP/1.1", refused400), raw),
		line("target-form", "GET * HTTP/1.1", refused400),
		undone(line("target-form", "CONNECT /path HTTP/1.1", refused400), path),
		undone(line("target-form", "CONNECT a.example HTTP/1.1", refused400), path),
		undone(line("target-host", "GET http://b.example/x HTTP/1.1", refused400), host),
		undone(line("target-host", "GET https://b.example:8443/x HTTP/1.1", refused400), host),
		undone(line("target-host", "CONNECT b.example:443 HTTP/1.1", refused400), host),
		undone(line("connect-to-handler", "CONNECT a.example:443 HTTP/1.1", "HTTP/1.1 501 Not Implemented\r\n"), serve.Lenient{Connect: true}),
		undone(line("target-user", "GET http://user:pw@a.example/x HTTP/1.1", refused400), user),
	}
}

func signedHeads() []exchange {
	short := func(hs *http.Server, _ *journal) { hs.ReadHeaderTimeout = 150 * time.Millisecond }
	return []exchange{
		sent("refusal-reason", "GET / HTTP/1.1\r\n\r\n", refused400),
		{name: "refusal-head", row: "refusal-head", send: "HEAD / HTTP/1.1\r\n\r\n", want: refused400, wantNot: "missing Host"},
		sent("refusal-date", "GET / HTTP/1.1\r\n\r\n", "\r\nDate: MASKED\r\n"),
		sent("refusal-reason", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", refused400),
		sent("refusal-reason", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", refused400),
		sent("refusal-reason", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", refused400),
		sent("refusal-reason", "BROKEN\r\n\r\n", refused400),
		sent("refusal-reason", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\n\r\n", refused400),
		undone(sent("host-empty", "GET / HTTP/1.1\r\nHost: \r\n\r\n", refused400), serve.Lenient{EmptyHost: true}),
		undone(sent("preface-to-handler", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 505 HTTP Version Not Supported\r\n"), serve.Lenient{Preface: true}),
		{name: "spoiled-head", row: "spoiled-head", talk: func(c *client) { c.send("GET / HTTP/1.1\r\nHost: a\rb"); c.drain() }, config: short, want: refused400, by: []carriage{whole, veiled}},
		undone(sent("same-lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", refused400), serve.Lenient{SameLengths: true}),
		undone(sent("bare-lf", "GET / HTTP/1.1\nHost: a\nX: y\n\n", refused400), serve.Lenient{BareLF: true}),
		undone(sent("fold", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n  z\r\n\r\n", refused400), serve.Lenient{Fold: true}),
		undone(sent("old-chunked", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nhi", refused400), serve.Lenient{OldChunked: true}),
		sent("length-and-chunked", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", refused400),
		{name: "head-size", row: "head-size", send: request("/", "X: "+strings.Repeat("x", 3000)), want: "HTTP/1.1 431 Request Header Fields Too Large\r\n",
			config: func(hs *http.Server, _ *journal) { hs.MaxHeaderBytes = 1000 }},
		sent("head-count", request("/", manyLines(120)...), "HTTP/1.1 431 Request Header Fields Too Large\r\n"),
		sent("empty-line-before", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "seen"),
		sent("minor-version", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", `GET "/" HTTP/1.1 1.1`),
		{name: "half-a-line", row: "half-a-line", talk: func(c *client) { c.send("GET / HT"); c.drain() }, config: short, wantNot: "HTTP/1.1", by: []carriage{whole, veiled}},
	}
}

func signedBodies() []exchange {
	tooMuch := func(j *journal, w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 5))
		j.note("read %d %s", len(body), class(err))
	}
	cut := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"
	return []exchange{
		{name: "max-bytes-kept", row: "max-bytes-kept", send: post("hello!"), handler: tooMuch, want: "204 No Content"},
		{name: "max-bytes-kept handler", row: "max-bytes-kept", send: post("hello!"), want: "204 No Content",
			handler: mount(http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }), 5))},
		{name: "expect-closed", row: "expect-closed", send: post("hello", "Expect: 100-continue"), want: "204 No Content",
			handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(200)
				j.note("close %s", class(r.Body.Close()))
			}},
		{name: "cut-short", row: "cut-short", talk: func(c *client) { c.send(cut); c.finish() }, want: "Connection: close\r\n", by: []carriage{whole, bytewise}},
		{name: "cut-short, and read on", row: "cut-short", talk: func(c *client) { c.send(cut); c.finish() }, want: "again unexpected EOF", by: []carriage{whole, bytewise}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			_, err := r.Body.Read(make([]byte, 1))
			j.note("again %s", class(err))
		}},
		{name: "duplex-unread, a chunk malformed", row: "duplex-unread", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			flushed("x")(j, w, r)
			io.Copy(io.Discard, r.Body)
		}, wantNot: "204 No Content"},
		{name: "hijacked-body", row: "hijacked-body", send: post("hello"), want: "read 0 " + http.ErrBodyReadAfterClose.Error() + ", 5 buffered", by: []carriage{whole}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				j.note("hijack %v", err)
				return
			}
			defer conn.Close()
			n, err := r.Body.Read(make([]byte, 3))
			j.note("read %d %s, %d buffered", n, class(err), rw.Reader.Buffered())
		}},
		{name: "trailer-fields", row: "trailer-fields", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\nCookie: a=b\r\n\r\n", want: `trailer [X=["y"]]`},
		{name: "duplex-unread", row: "duplex-unread", send: post("hello"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%s", class(http.NewResponseController(w).EnableFullDuplex()))
			flushed("x")(j, w, r)
		}, wantNot: "panic"},
		{name: "unread-closed", row: "unread-closed", by: []carriage{whole}, handler: writes("x"), wantNot: "[no end within patience]", talk: func(c *client) {
			c.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\nabc")
			c.answer(http.MethodPost)
			c.SetDeadline(time.Now().Add(2 * time.Second))
			c.drain()
		}},
		{name: "request-changed", row: "request-changed", by: []carriage{whole}, send: "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", wantNot: "changed", handler: func(_ *journal, w http.ResponseWriter, r *http.Request) {
			r.Method = http.MethodGet
			io.WriteString(w, "changed")
		}},
		{name: "deadline-context", row: "deadline-context", send: request("/"), by: []carriage{whole}, want: "goes on", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%s", class(http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))))
			select {
			case <-r.Context().Done():
				j.note("%v", r.Context().Err())
			case <-time.After(time.Second):
				j.note("goes on")
			}
		}},
	}
}

func signedAnswers() []exchange {
	keep := "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
	return []exchange{
		{name: "keep-alive-claim disabled", row: "keep-alive-claim", send: keep, before: func(s server) { s.SetKeepAlivesEnabled(false) }, want: "seen", wantNot: "Connection: keep-alive"},
		{name: "keep-alive-claim coding", row: "keep-alive-claim", send: keep, handler: with(writes("hello"), "Content-Length", "5", "Transfer-Encoding", "chunked"), want: "hello", wantNot: "Connection: keep-alive"},
		sent("close-prevails", "GET / HTTP/1.0\r\nConnection: close, keep-alive\r\n\r\n", "seen"),
		sent("close-prevails", "GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", "seen"),
		{name: "close-by-handler capitals", row: "close-by-handler", send: request("/"), handler: with(writes("x"), "Connection", "Close"), want: "Connection: Close\r\n"},
		{name: "close-by-handler list", row: "close-by-handler", send: request("/"), handler: with(writes("x"), "Connection", "a, close"), want: "Connection: a, close\r\n"},
		{name: "inform-old", row: "inform-old", send: "GET / HTTP/1.0\r\n\r\n", handler: status(http.StatusEarlyHints, writes("x")), want: "HTTP/1.0 200 OK\r\n", wantNot: "HTTP/1.0 103"},
		{name: "expect-switched", row: "expect-switched", want: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n", send: "POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: b\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", handler: func(_ *journal, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Upgrade", "b")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}},
		{name: "chunk-bounds", row: "chunk-bounds", send: request("/"), handler: flushed(strings.Repeat("a", 10<<10)), want: "\r\n2800\r\naaa"},
		{name: "abort-partial", row: "abort-partial", send: "GET / HTTP/1.0\r\n\r\n", by: []carriage{whole}, wantNot: strings.Repeat("a", 1000), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.Copy(w, io.LimitReader(strings.NewReader(strings.Repeat("a", 1000)), 1000))
			panic(http.ErrAbortHandler)
		}},
		{name: "flush-after-hijack", row: "flush-after-hijack", send: request("/"), want: "flush " + http.ErrHijacked.Error(), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			j.note("hijack %s", class(err))
			conn.Close()
			j.note("flush %s", class(http.NewResponseController(w).Flush()))
		}},
		{name: "file-too-long", row: "file-too-long", send: request("/"), by: []carriage{whole}, want: "Content-Length: 1000\r\n", wantNot: strings.Repeat("b", 1001), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			f, err := os.CreateTemp("", "serve")
			if err != nil {
				j.note("%v", err)
				return
			}
			defer os.Remove(f.Name())
			defer f.Close()
			io.WriteString(f, strings.Repeat("b", 100<<10))
			f.Seek(0, io.SeekStart)
			w.Header().Set("Content-Length", "1000")
			n, err := io.Copy(w, f)
			j.note("copied %d %s", n, class(err))
		}},
	}
}
