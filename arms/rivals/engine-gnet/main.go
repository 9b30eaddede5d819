//tare:module github.com/panjf2000/gnet/v2

// Command engine-gnet answers what the engine study asks on panjf2000/gnet, which
// moves bytes and knows nothing of HTTP: as its authors' HTTP example does, this
// reads no more of a request than it needs, the request line and the body's
// length. It shows what an engine costs that does not parse.
package main

import (
	"bytes"
	"net"
	"strconv"

	"github.com/panjf2000/gnet/v2"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
)

func main() {
	arm.Main(arm.Options{Serve: serve})
}

// serve hands connections to gnet's event loops, one a CPU.
func serve(l net.Listener) error {
	loops, err := gnet.NewClient(newLoop(), gnet.WithMulticore(true), gnet.WithLogger(silent{}))
	if err != nil {
		return err
	}
	if err := loops.Start(); err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		if _, err := loops.Enroll(c); err != nil {
			return err
		}
	}
}

// loop answers what has come on a connection.
type loop struct {
	gnet.BuiltinEventEngine
	plain, object, page, missing []byte // whole answers
}

func newLoop() *loop {
	return &loop{
		plain:   answer("200 OK", answers.Text, answers.Plain()),
		object:  answer("200 OK", answers.JSON, answers.Object()),
		page:    answer("200 OK", answers.Text, answers.Page()),
		missing: answer("404 Not Found", answers.Text, []byte(answers.NotFound)),
	}
}

func answer(status, contentType string, body []byte) []byte {
	head := "HTTP/1.1 " + status + "\r\nContent-Type: " + contentType + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	return append([]byte(head), body...)
}

// OnTraffic answers each whole request in the connection's buffer.
func (l *loop) OnTraffic(c gnet.Conn) gnet.Action {
	var out []byte
	for {
		in, err := c.Peek(-1)
		if err != nil {
			return gnet.Close
		}
		n, reply := l.reply(in)
		if n == 0 {
			break
		}
		out = append(out, reply...)
		if _, err := c.Discard(n); err != nil {
			return gnet.Close
		}
	}
	if len(out) > 0 {
		if _, err := c.Write(out); err != nil {
			return gnet.Close
		}
	}
	return gnet.None
}

// reply returns how many bytes the first request has, 0 if it is not whole, and
// its answer.
func (l *loop) reply(in []byte) (int, []byte) {
	head := bytes.Index(in, []byte("\r\n\r\n"))
	if head < 0 {
		return 0, nil
	}
	n := head + len("\r\n\r\n")
	switch {
	case begins(in, "GET "+answers.PlainPath+" "):
		return n, l.plain
	case begins(in, "GET "+answers.JSONPath+" "):
		return n, l.object
	case begins(in, "GET "+answers.PagePath+" "):
		return n, l.page
	case begins(in, "POST "+answers.EchoPath+" "):
		length := contentLength(in[:n])
		if len(in) < n+length {
			return 0, nil
		}
		return n + length, answer("200 OK", answers.Text, in[n:n+length])
	}
	return n, l.missing
}

func begins(in []byte, line string) bool {
	return len(in) >= len(line) && string(in[:len(line)]) == line
}

// contentLength reads the length of the body, 0 if the head says none.
func contentLength(head []byte) int {
	const name = "\r\nContent-Length: "
	at := bytes.Index(head, []byte(name))
	if at < 0 {
		return 0
	}
	digits, _, _ := bytes.Cut(head[at+len(name):], []byte("\r\n"))
	n, err := strconv.Atoi(string(digits))
	if err != nil {
		return 0
	}
	return n
}

// silent is a logger of gnet's that says nothing: it would announce its start.
type silent struct{}

func (silent) Debugf(string, ...any) {}
func (silent) Infof(string, ...any)  {}
func (silent) Warnf(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}
