package serve_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve"
)

// TestDiffRequestLine compares what a handler sees of the request line.
func TestDiffRequestLine(t *testing.T) {
	lines := []string{
		"GET / HTTP/1.1", "GET /a/b?c=d&e=%20 HTTP/1.1", "GET /%2e%2e/x HTTP/1.1", "GET //double//slash HTTP/1.1",
		"GET /a%2Fb HTTP/1.1", "GET /? HTTP/1.1", "GET /a;b=c HTTP/1.1", "GET /a\"<>^`{|} HTTP/1.1", "PATCH /p HTTP/1.1", "DELETE /d HTTP/1.1", "PUT /p HTTP/1.1",
		"OPTIONS /o HTTP/1.1", "TRACE /t HTTP/1.1", "BREW /pot HTTP/1.1", "get /lower HTTP/1.1", "M-SEARCH /x HTTP/1.1",
		"GET http://a.example/abs?q HTTP/1.1", "GET http://a.example HTTP/1.1", "OPTIONS * HTTP/1.1",
		"OPTIONS http://a.example HTTP/1.1", "OPTIONS http://a.example/o?q HTTP/1.1", "HEAD http://a.example?q HTTP/1.1",
	}
	var table []exchange
	for _, line := range lines {
		method, _, _ := strings.Cut(line, " ")
		table = append(table, exchange{name: line, send: line + "\r\nHost: a.example\r\n\r\n", methods: method})
	}
	preface, passed := "PRI * HTTP/2.0\r\n\r\n", serve.Lenient{Preface: true}
	table = append(table,
		exchange{name: "connect", send: "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", methods: "CONNECT", lenient: serve.Lenient{Connect: true}},
		exchange{name: "the preface of HTTP/2", send: preface + "SM\r\n\r\n", methods: "PRI", lenient: passed},
		exchange{name: "the preface behind a request", send: request("/") + preface, methods: "GET PRI", lenient: passed},
		exchange{name: "the preface, and an answer that says close", send: preface, lenient: passed, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			see(j, w, r)
		}},
		exchange{name: "the preface to a ServeMux", send: preface, lenient: passed, handler: mount(http.NewServeMux())},
	)
	agree(t, table)
}

// TestDiffRequestHeader compares the header as a handler sees it.
func TestDiffRequestHeader(t *testing.T) {
	agree(t, []exchange{
		{name: "canonical names", send: request("/", "x-lower-case: 1", "ACCEPT: 2", "X_Under: 3", "e-Tag: 4")},
		{name: "repeated", send: request("/", "A: 1", "a: 2", "A: 3")},
		{name: "white space around values", send: request("/", "A:  1\t ", "B:2", "C: ", "D:")},
		{name: "bytes above ASCII", send: request("/", "A: \xe9\xc3\xa9")},
		{name: "commas and quotes", send: request("/", `A: "x, y", z`)},
		{name: "cookies", send: request("/", "Cookie: a=1; b=2", "Cookie: c=3")},
		{name: "host in upper case", send: "GET / HTTP/1.1\r\nHOST: A.Example:80\r\n\r\n"},
		{name: "host empty", send: "GET / HTTP/1.1\r\nHost:\r\n\r\n", lenient: serve.Lenient{EmptyHost: true}},
		{name: "host empty in 1.0", send: "GET / HTTP/1.0\r\nHost:\r\n\r\n"},
		{name: "host absent in 1.0", send: "GET / HTTP/1.0\r\n\r\n"},
		{name: "host of version 6", send: "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"},
		{name: "connect without the port in Host", send: "CONNECT b.example:443 HTTP/1.1\r\nHost: b.example\r\n\r\n", lenient: serve.Lenient{Connect: true}},
		{name: "pragma", send: request("/", "Pragma: no-cache")},
		{name: "pragma and cache control", send: request("/", "Pragma: no-cache", "Cache-Control: max-age=0")},
		{name: "upgrade", send: request("/", "Connection: upgrade", "Upgrade: websocket")},
		{name: "upgrade without connection", send: request("/", "Upgrade: websocket")},
		{name: "upgrade to HTTP/2", send: request("/", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")},
		{name: "upgrade in 1.0", send: "GET / HTTP/1.0\r\nConnection: upgrade, keep-alive\r\nUpgrade: websocket\r\n\r\n"},
		{name: "te", send: request("/", "TE: trailers")},
		{name: "many", send: request("/", manyLines(90)...)},
		{name: "browser", send: request("/",
			"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0)", "Accept: text/html,*/*;q=0.8", "Accept-Language: en",
			"Accept-Encoding: gzip, br", "Sec-Fetch-Mode: navigate", "DNT: 1", "Upgrade-Insecure-Requests: 1", "Priority: u=0, i")},
	})
}

func manyLines(n int) []string {
	var all []string
	for i := range n {
		all = append(all, "X-N"+itoa(i)+": value "+itoa(i))
	}
	return all
}

// TestDiffRequestBody compares bodies and what the request says of them.
func TestDiffRequestBody(t *testing.T) {
	chunked := "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n"
	agree(t, []exchange{
		{name: "declared", send: post("hello")},
		{name: "declared empty", send: post("")},
		{name: "post without length", send: "POST / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{name: "get with body", send: "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"},
		{name: "large", send: post(strings.Repeat("0123456789abcdef", 20<<10)), by: []carriage{whole, encrypted}},
		{name: "chunked", send: chunked + "\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"},
		{name: "chunked empty", send: chunked + "\r\n0\r\n\r\n"},
		{name: "chunked upper-case size", send: chunked + "\r\nA\r\n0123456789\r\n0\r\n\r\n"},
		{name: "chunked leading zeros", send: chunked + "\r\n0005\r\nhello\r\n000\r\n\r\n"},
		{name: "chunk extension", send: chunked + "\r\n5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n"},
		{name: "coding in mixed case", send: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
		{name: "trailers declared", send: chunked + "Trailer: X-Sum, X-B\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\nx-b: 8\r\n\r\n"},
		{name: "trailers undeclared", send: chunked + "\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n"},
		{name: "trailer declared without a name", send: chunked + "Trailer: ,\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		{name: "trailer declared and absent", send: chunked + "Trailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		{name: "chunked cut short", talk: func(c *client) {
			c.send(chunked + "\r\n5\r\nhe")
			c.until("103 Early Hints\r\n\r\n") // what ends the context while the body is unread is another matter
			c.finish()
		}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.head(r)
			w.WriteHeader(http.StatusEarlyHints)
			seeBody(j, w, r)
		}, by: []carriage{whole, bytewise}},
		{name: "chunk size not a number", send: chunked + "\r\nxyz\r\n"},
		{name: "chunk without its end", send: chunked + "\r\n3\r\nabcdef\r\n0\r\n\r\n"},
	})
}

// TestDiffReadsBody compares readings of the body other than all of it.
func TestDiffReadsBody(t *testing.T) {
	agree(t, []exchange{
		{name: "form", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%s %v %v", class(r.ParseForm()), r.Form, r.PostForm)
		}, send: "POST /?q=1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\na=1&b=2"},
		{name: "multipart", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("%s %v", class(r.ParseMultipartForm(1<<10)), r.MultipartForm.Value)
		}, send: post("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n", "Content-Type: multipart/form-data; boundary=x")},
		{name: "in small reads to the end", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			buf, total := make([]byte, 2), ""
			for {
				n, err := r.Body.Read(buf)
				total += string(buf[:n])
				if err != nil {
					j.note("%q %s", total, class(err))
					break
				}
			}
			n, err := r.Body.Read(buf)
			j.note("again %d %s", n, class(err))
			j.note("close %s", class(r.Body.Close()))
			n, err = r.Body.Read(buf)
			j.note("after close %d %s", n, class(err))
		}, send: post("hello world")},
		{name: "closed first", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			j.note("close %s", class(r.Body.Close()))
			n, err := r.Body.Read(make([]byte, 8))
			j.note("read %d %s", n, class(err))
		}, send: post("hello world")},
		{name: "no body read", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			n, err := r.Body.Read(make([]byte, 8))
			j.note("read %d %s, close %s", n, class(err), class(r.Body.Close()))
		}, send: request("/")},
		{name: "read after the answer began", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "early")
			http.NewResponseController(w).Flush()
			body, err := io.ReadAll(r.Body)
			j.note("body %q %s", body, class(err))
		}, send: post("hello")},
		{name: "read after a large answer", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "70000")
			io.WriteString(w, strings.Repeat("x", 70000))
			body, err := io.ReadAll(r.Body)
			j.note("body %q %s", body, class(err))
		}, send: post("hello")},
	})
}
