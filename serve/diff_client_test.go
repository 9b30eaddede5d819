package serve_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// client is one raw connection to a server; raw holds every byte it sent back.
// It is used by one goroutine.
type client struct {
	net.Conn
	by   carriage
	raw  []byte
	pos  int   // raw[:pos] was framed or waited for
	lost error // why reading ended
}

func (run *running) dial(t *testing.T) *client {
	t.Helper()
	conn, err := net.Dial("tcp", run.addr)
	if err != nil {
		t.Fatal(err)
	}
	if run.by == encrypted {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{Conn: conn, by: run.by}
}

// send writes s, a byte at a time if that is how the client carries. A server
// may have closed already; what it says by then is in what it sent.
func (c *client) send(s string) {
	if c.by != bytewise {
		io.WriteString(c.Conn, s)
		return
	}
	for i := range len(s) {
		if _, err := io.WriteString(c.Conn, s[i:i+1]); err != nil {
			return
		}
	}
}

// Read notes what it passes on.
func (c *client) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.raw = append(c.raw, p[:n]...)
	if errors.Is(err, os.ErrDeadlineExceeded) && c.lost == nil {
		c.raw = append(c.raw, "[no end within patience]"...)
	}
	if err != nil {
		c.lost = err
	}
	return n, err
}

// more reads once and says whether there may be more.
func (c *client) more() bool {
	buf := make([]byte, 64<<10)
	_, err := c.Read(buf)
	return err == nil
}

// until reads as far as the end of s.
func (c *client) until(s string) {
	for {
		if i := bytes.Index(c.raw[c.pos:], []byte(s)); i >= 0 {
			c.pos += i + len(s)
			return
		}
		if !c.more() {
			c.raw = append(c.raw, ("[no " + s + "]")...)
			return
		}
	}
}

// answer reads one whole answer to a request of that method, interim answers
// before it too, and returns its status and body.
func (c *client) answer(method string) (int, string) {
	for {
		status, body := c.frame(method)
		if status >= 200 || status == http.StatusSwitchingProtocols || status == 0 {
			return status, body
		}
	}
}

func (c *client) frame(method string) (int, string) {
	passed := &counted{r: io.MultiReader(bytes.NewReader(c.raw[c.pos:]), c)}
	br := bufio.NewReader(passed)
	resp, err := http.ReadResponse(br, &http.Request{Method: method})
	if err != nil {
		c.skipHead()
		return 0, ""
	}
	// The body's reader may fail: an answer that was cut short is an answer.
	body, _ := io.ReadAll(resp.Body)
	c.pos += passed.n - br.Buffered()
	return resp.StatusCode, string(body)
}

// skipHead passes over a head that nobody can read, or all that there is.
func (c *client) skipHead() {
	const end = "\r\n\r\n"
	if i := bytes.Index(c.raw[c.pos:], []byte(end)); i >= 0 {
		c.pos += i + len(end)
		return
	}
	c.pos = len(c.raw)
}

// counted counts what passes, so that what a bufio.Reader consumed is known.
type counted struct {
	r io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

const last = "GET /end HTTP/1.1\r\nHost: end\r\nConnection: close\r\n\r\n"

// end asks one request more and reads to the end of the connection, so that
// the wire reports whether the connection had been kept.
func (c *client) end() {
	c.send(last)
	c.drain()
}

// drain reads to the end of the connection.
func (c *client) drain() {
	for c.lost == nil && c.more() {
	}
}

// finish closes the client's sending direction and reads to the end.
func (c *client) finish() {
	c.closeWrite()
	c.drain()
}

func (c *client) closeWrite() {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		cw.CloseWrite()
	}
}

// request is a plain request for path with extra header lines.
func request(path string, lines ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: a.example\r\n" + joinLines(lines) + "\r\n"
}

// post is a request with a body of declared length.
func post(body string, lines ...string) string {
	return "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: " + itoa(len(body)) + "\r\n" + joinLines(lines) + "\r\n" + body
}

func joinLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\r\n") + "\r\n"
}
