package serve_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// writes answers with each string in a Write of its own, and notes the results.
func writes(parts ...string) act {
	return func(j *journal, w http.ResponseWriter, _ *http.Request) {
		for _, p := range parts {
			n, err := w.Write([]byte(p))
			j.note("wrote %d of %d %s", n, len(p), class(err))
		}
	}
}

// with sets header fields, given as name and value in turn, before then.
func with(then act, pairs ...string) act {
	return func(j *journal, w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			w.Header().Add(pairs[i], pairs[i+1])
		}
		then(j, w, r)
	}
}

// status writes the head before then.
func status(code int, then act) act {
	return func(j *journal, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		then(j, w, r)
	}
}

// asked are the ways in which the answers are asked for.
func asked() []string {
	return []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	}
}

// everyWay multiplies handlers with the ways of asking.
func everyWay(handlers map[string]act) []exchange {
	var table []exchange
	for name, h := range handlers {
		for _, send := range asked() {
			method, rest, _ := strings.Cut(send, " ")
			version := strings.Fields(rest)[1]
			about := fmt.Sprintf("%s/%s %s", name, method, version)
			if _, v, ok := strings.Cut(rest, "Connection: "); ok {
				about += " " + strings.TrimSpace(v)
			}
			table = append(table, exchange{name: about, handler: h, send: send, by: []carriage{whole}})
		}
	}
	return table
}

// TestDiffFraming compares how answers are framed: sniffed type, length,
// chunks, what HEAD gets and what closes the connection.
func TestDiffFraming(t *testing.T) {
	kb := strings.Repeat("k", 1<<10)
	agree(t, everyWay(map[string]act{
		"nothing":             writes(),
		"empty write":         writes(""),
		"small":               writes("hello"),
		"two writes":          writes("hel", "lo"),
		"2047 bytes":          writes(kb + kb[1:]),
		"2048 bytes":          writes(kb + kb),
		"2049 bytes":          writes(kb + kb + "k"),
		"64 KiB at once":      writes(strings.Repeat(kb, 64)),
		"64 KiB in parts":     writes(strings.Split(strings.Repeat(kb+",", 64), ",")...),
		"declared":            with(writes("hello"), "Content-Length", "5"),
		"declared in parts":   with(writes("hel", "lo"), "Content-Length", "5"),
		"declared zero":       with(writes(), "Content-Length", "0"),
		"declared large":      with(writes(kb, kb, kb, kb), "Content-Length", "4096"),
		"chunked by handler":  with(writes("hello"), "Transfer-Encoding", "chunked"),
		"identity by handler": with(writes("hello"), "Transfer-Encoding", "identity"),
		"unknown coding":      with(writes("hello"), "Transfer-Encoding", "gzip"),
		"close by handler":    with(writes("hello"), "Connection", "close"),
		"keep by handler":     with(writes("hello"), "Connection", "keep-alive"),
		"keep with length":    with(writes("hello"), "Connection", "keep-alive", "Content-Length", "5"),
		"other token":         with(writes("hello"), "Connection", "x-y"),
		"two tokens":          with(writes("hello"), "Connection", "x-y, z"),
		"status 201":          status(201, writes("made")),
		"status 204":          status(204, writes("nope")),
		"status 204 length":   with(status(204, writes()), "Content-Length", "3"),
		"status 304":          status(304, writes("nope")),
		"status 304 fields":   with(status(304, writes()), "Content-Length", "3", "Content-Type", "a/b", "ETag", `"x"`),
		"status 404":          status(404, writes()),
		"status 418 text":     status(418, writes("teapot")),
		"status 599 unknown":  status(599, writes("odd")),
		"status 999":          status(999, writes("odd")),
		"type given":          with(writes("<html>"), "Content-Type", "text/x"),
		"type given empty":    with(writes("<html>"), "Content-Type", ""),
		"encoding given":      with(writes("<html>"), "Content-Encoding", "gzip"),
		"trailer declared":    with(trailing("X-Sum", "1"), "Trailer", "X-Sum"),
		"trailer undeclared":  trailing(http.TrailerPrefix+"X-Sum", "1"),
		"trailer list":        with(trailing("X-B", "1"), "Trailer", "X-A, x-b"),
		"trailer forbidden":   with(trailing("Content-Length", "1"), "Trailer", "Content-Length, Trailer, Transfer-Encoding"),
		"trailer and length":  with(trailing("X-Sum", "1"), "Trailer", "X-Sum", "Content-Length", "4"),
		"date given":          with(writes("hello"), "Date", "Thu, 01 Jan 1970 00:00:00 GMT"),
		"date suppressed":     func(j *journal, w http.ResponseWriter, r *http.Request) { w.Header()["Date"] = nil },
		"type suppressed": func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "x")
		},
		"length suppressed": func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Length"] = nil
			io.WriteString(w, "x")
		},
		"connection suppress": func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.Header()["Connection"] = nil
			io.WriteString(w, "x")
		},
		"many fields": with(writes("hello"), "B", "2", "A", "1", "Set-Cookie", "b=1", "Set-Cookie", "a=2", "x-lower", "l"),
		"header after write": func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "x")
			w.Header().Set("Late", "1")
		},
		"header after head": func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.Header().Set("Late", "1")
		},
		"raw lower-case field": func(j *journal, w http.ResponseWriter, r *http.Request) { w.Header()["raw-name"] = []string{"1"} },
	}))
}

// trailing answers with a body and sets a field after it.
func trailing(name, value string) act {
	return func(j *journal, w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "body")
		w.Header().Set(name, value)
	}
}

// TestDiffLengthChecked compares what becomes of an answer that is not as long
// as it said.
func TestDiffLengthChecked(t *testing.T) {
	agree(t, everyWay(map[string]act{
		"too much at once":     with(writes("hello"), "Content-Length", "3"),
		"too much in parts":    with(writes("he", "llo", "!"), "Content-Length", "3"),
		"too little":           with(writes("he"), "Content-Length", "5"),
		"nothing":              with(writes(), "Content-Length", "5"),
		"too little and large": with(writes(strings.Repeat("x", 5000)), "Content-Length", "6000"),
		"not a number":         with(writes("he"), "Content-Length", "two"),
		"negative":             with(writes("he"), "Content-Length", "-1"),
		"plus":                 with(writes("he"), "Content-Length", "+2"),
		"twice":                with(writes("he"), "Content-Length", "2", "Content-Length", "2"),
	}))
}

// TestDiffFields compares what becomes of names and values that are not fit
// for the wire.
func TestDiffFields(t *testing.T) {
	raw := func(name string, values ...string) act {
		return func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.Header()[name] = values
			j.note("wrote %s", class(second(io.WriteString(w, "x"))))
		}
	}
	agree(t, everyWay(map[string]act{
		"value with CRLF":       raw("X", "a\r\nInjected: 1"),
		"value with LF":         raw("X", "a\nInjected: 1"),
		"value with CR":         raw("X", "a\rb"),
		"value with NUL":        raw("X", "a\x00b"),
		"value with DEL":        raw("X", "a\x7fb"),
		"value with tab":        raw("X", "a\tb"),
		"value above ASCII":     raw("X", "\xe9é"),
		"value with edge space": raw("X", "  a  "),
		"value empty":           raw("X", ""),
		"no values":             raw("X"),
		"name with space":       raw("X Y", "1"),
		"name with colon":       raw("X:Y", "1"),
		"name with CRLF":        raw("X\r\nY", "1"),
		"name empty":            raw("", "1"),
		"name above ASCII":      raw("é", "1"),
		"trailer with CRLF": func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "x")
			w.Header().Set(http.TrailerPrefix+"X", "a\r\nInjected: 1")
		},
		"trailer name bad": func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "x")
			w.Header()[http.TrailerPrefix+"X Y"] = []string{"1"}
		},
	}))
}

func second(_ int, err error) error { return err }

// TestDiffSniff compares the sniffed type, which net/http takes from the first
// write alone.
func TestDiffSniff(t *testing.T) {
	handlers := map[string]act{"split": writes("<ht", "ml>"), "empty then html": writes("", "<html>")}
	for name, body := range map[string]string{
		"html": "<!DOCTYPE html>", "text": "plain", "xml": `<?xml version="1.0"?>`, "png": "\x89PNG\r\n\x1a\n", "json": `{"a":1}`,
		"binary": "\x00\x01\x02", "gzip": "\x1f\x8b\x08", "pdf": "%PDF-", "utf8": "é", "utf16": "\xff\xfea\x00",
		"late html": strings.Repeat(" ", 600) + "<html>",
	} {
		handlers[name] = writes(body)
	}
	agree(t, everyWay(handlers))
}

// TestDiffWriteHeader compares misuse of WriteHeader, also what is logged.
func TestDiffWriteHeader(t *testing.T) {
	code := func(codes ...int) act {
		return func(j *journal, w http.ResponseWriter, r *http.Request) {
			for _, c := range codes {
				func() {
					defer func() { j.note("%d: panic %v", c, recover()) }()
					w.WriteHeader(c)
				}()
			}
			io.WriteString(w, "x")
		}
	}
	agree(t, everyWay(map[string]act{
		"superfluous":       code(201, 202),
		"superfluous same":  code(200, 200),
		"interim too late":  code(200, 103),
		"zero":              code(0),
		"two digits":        code(99),
		"four digits":       code(1000),
		"negative":          code(-1),
		"after write":       func(j *journal, w http.ResponseWriter, r *http.Request) { io.WriteString(w, "x"); w.WriteHeader(500) },
		"switching":         status(101, writes("x")),
		"switching upgrade": with(status(101, writes("x")), "Connection", "Upgrade", "Upgrade", "x"),
	}))
	agree(t, slices.DeleteFunc(everyWay(map[string]act{
		"early hints": func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</s.css>; rel=preload")
			w.WriteHeader(103)
			w.Header().Set("Link", "</t.css>; rel=preload")
			w.WriteHeader(103)
			w.Header().Del("Link")
			io.WriteString(w, "x")
		},
		"processing":          code(102, 200),
		"interim with length": with(code(103, 200), "Content-Length", "1"),
		"continue":            code(100, 200),
		"continue twice":      code(100, 100, 200),
		"only interim":        status(103, writes()),
	}), func(x exchange) bool { return strings.Contains(x.send, "HTTP/1.0") })) // row inform-old
}

// TestDiffDepartures holds answers that the standards would have framed in
// another way to be http.Server's, whose handlers moved over must not notice.
func TestDiffDepartures(t *testing.T) {
	connect, passed := "CONNECT b:1 HTTP/1.1\r\nHost: b:1\r\n\r\n", serve.Lenient{Connect: true}
	agree(t, []exchange{
		{name: "connect, content with a length", send: connect, lenient: passed, methods: "GET", handler: writes("ok")},
		{name: "connect, content in chunks", send: connect, lenient: passed, methods: "GET", handler: flushed("ok")},
		{name: "101 for HTTP/1.0", send: "GET / HTTP/1.0\r\n\r\n", handler: status(http.StatusSwitchingProtocols, writes())},
		{name: "205 with content", send: request("/"), handler: status(http.StatusResetContent, writes("ok"))},
	})
}

// TestDiffDate wants a date that is now, to the second, on both sides.
func TestDiffDate(t *testing.T) {
	for _, s := range append(sides(), control()) {
		run := start(t, s, whole, &journal{}, func(hs *http.Server) { hs.Handler = http.NotFoundHandler() })
		before := time.Now().Truncate(time.Second)
		resp, err := http.Get("http://" + run.addr)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil || got.Before(before) || got.After(time.Now()) {
			t.Errorf("%s: Date %q (%v), want one between %v and now", s.name, resp.Header.Get("Date"), err, before)
		}
		http.DefaultClient.CloseIdleConnections()
		run.stop(t)
	}
}
