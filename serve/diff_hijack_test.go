package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// take hijacks and hands the connection to then, which owns it.
func take(then func(*journal, net.Conn, *bufio.ReadWriter)) act {
	return func(j *journal, w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		j.note("hijack %s", class(err))
		if err != nil {
			return
		}
		defer conn.Close()
		then(j, conn, rw)
	}
}

// readsFour says that it is ready and reads four bytes, which nobody else may
// take from it.
func readsFour(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
	io.WriteString(conn, "ready")
	buf := make([]byte, 4)
	_, err := io.ReadFull(rw, buf)
	j.note("%q %s", buf, class(err))
}

func raw(_ *journal, conn net.Conn, _ *bufio.ReadWriter) { io.WriteString(conn, "raw bytes") }

// TestDiffHijack compares what a hijacker gets and what is left to the server.
func TestDiffHijack(t *testing.T) {
	agree(t, []exchange{
		{name: "write to the connection", send: request("/"), handler: take(raw)},
		{name: "write through the buffer", send: request("/"), handler: take(func(j *journal, _ net.Conn, rw *bufio.ReadWriter) {
			rw.WriteString("buffered")
			j.note("%s, buffered to read %d", class(rw.Flush()), rw.Reader.Buffered())
		})},
		{name: "bytes that came along", send: request("/") + "more", handler: take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
			buf := make([]byte, 4)
			_, err := io.ReadFull(rw, buf)
			j.note("%q %s", buf, class(err))
			conn.Write(buf)
		})},
		{name: "the preface of HTTP/2", send: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00", lenient: serve.Lenient{Preface: true}, handler: take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
			buf := make([]byte, len("SM\r\n\r\n\x00"))
			_, err := io.ReadFull(rw, buf)
			j.note("%q %s", buf, class(err))
			conn.Write(buf)
		})},
		{name: "talk", handler: take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			rw.Flush()
			line, err := rw.ReadString('\n')
			j.note("%q %s", line, class(err))
			fmt.Fprint(conn, "echo "+line)
		}), talk: func(c *client) {
			c.send(request("/", "Connection: Upgrade", "Upgrade: echo"))
			c.until("\r\n\r\n")
			c.send("hello\n")
			c.until("echo hello\n")
			c.drain()
		}},
		{name: "after the handler returned", keeps: true, talk: func(c *client) {
			c.send(request("/"))
			c.until("later")
			c.send("x")
			c.drain()
		}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			j.note("hijack %s", class(err))
			j.count(1)
			go func() {
				defer j.count(-1)
				defer conn.Close()
				io.WriteString(conn, "later")
				buf := make([]byte, 1)
				_, err := io.ReadFull(conn, buf)
				j.note("%q %s", buf, class(err))
				gone(j, r)
			}()
		}},
		{name: "write to the answer afterwards", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			take(raw)(j, w, r)
			n, err := w.Write([]byte("x"))
			j.note("write %d %s", n, class(err))
			w.WriteHeader(500)
			_, _, err = http.NewResponseController(w).Hijack()
			j.note("again %s", class(err))
		}},
	})
}

// TestDiffHijackTiming compares hijacking at other moments than at once.
func TestDiffHijackTiming(t *testing.T) {
	agree(t, []exchange{
		{name: "after a write", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "answer")
			take(raw)(j, w, r)
		}},
		{name: "after a head", send: request("/"), handler: status(201, take(raw))},
		{name: "after a flush", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			flushed("answer")(j, w, r)
			take(raw)(j, w, r)
		}},
		{name: "body first", send: post("hello") + "more", methods: "POST", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			j.note("body %q %s", body, class(err))
			take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
				buf := make([]byte, 4)
				_, err := io.ReadFull(rw, buf)
				j.note("%q %s", buf, class(err))
			})(j, w, r)
		}},
		{name: "body unread", send: post("hello") + "more", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
				buf := make([]byte, 9)
				_, err := io.ReadFull(rw, buf)
				j.note("%q %s", buf, class(err))
			})(j, w, r)
		}},
		{name: "in the middle of a chunk", send: request("/", "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			buf := make([]byte, 2)
			_, err := io.ReadFull(r.Body, buf)
			j.note("body %q %s", buf, class(err))
			take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
				buf := make([]byte, 10)
				_, err := io.ReadFull(rw, buf)
				j.note("%q %s", buf, class(err))
			})(j, w, r)
		}},
		{name: "while another goroutine waits for the body", talk: func(c *client) {
			c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
			c.until("ready")
			c.send("more")
			c.drain()
		}, handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			read := make(chan error, 1)
			io.ReadFull(r.Body, make([]byte, len("half")))
			go func() {
				_, err := io.Copy(io.Discard, r.Body)
				read <- err
			}()
			eventually(t, "the body to be waited for", func() bool {
				return slices.ContainsFunc(stacks(), func(stack string) bool {
					return strings.Contains(stack, "[IO wait") && strings.Contains(stack, "(*body).Read(")
				})
			})
			take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
				j.note("read %s", class(<-read))
				readsFour(j, conn, rw)
			})(j, w, r)
		}},
		{name: "deadlines are cleared", config: func(hs *http.Server, _ *journal) { hs.ReadTimeout, hs.WriteTimeout = time.Hour, time.Hour },
			send: request("/") + "x", handler: take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
				j.note("%s", class(second(io.ReadFull(rw, make([]byte, 1)))))
				j.note("%s", class(conn.SetDeadline(time.Unix(1, 0))))
				j.note("%s", class(second(conn.Read(make([]byte, 1)))))
			})},
		{name: "context asked for before", talk: func(c *client) { c.send(request("/")); c.until("ready"); c.send("more"); c.drain() },
			handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
				done := r.Context().Done()
				take(readsFour)(j, w, r)
				select {
				case <-done:
					j.note("done in the handler")
				default:
				}
			}},
		{name: "context asked for afterwards", talk: func(c *client) { c.send(request("/")); c.until("ready"); c.send("more"); c.drain() },
			handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
				take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
					r.Context().Done()
					readsFour(j, conn, rw)
				})(j, w, r)
			}},
		{name: "connect", send: "CONNECT b:1 HTTP/1.1\r\nHost: b:1\r\n\r\ntunnel", lenient: serve.Lenient{Connect: true}, handler: take(func(j *journal, conn net.Conn, rw *bufio.ReadWriter) {
			buf := make([]byte, 6)
			_, err := io.ReadFull(rw, buf)
			j.note("%q %s", buf, class(err))
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\nend of tunnel")
		}), methods: "CONNECT"},
		{name: "in 1.0", send: "GET / HTTP/1.0\r\n\r\n", handler: take(raw)},
		{name: "second request on the connection", send: request("/1") + request("/2"), methods: "GET GET", handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/2" {
				take(raw)(j, w, r)
			}
		}},
		{name: "panic afterwards", logs: 1, send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			take(raw)(j, w, r)
			panic("after")
		}},
		{name: "context goes on", send: request("/"), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
			take(func(j *journal, conn net.Conn, _ *bufio.ReadWriter) { j.note("%v", r.Context().Err()) })(j, w, r)
			j.note("%v", r.Context().Err())
		}},
		{name: "type of the connection", send: request("/"), handler: take(func(j *journal, conn net.Conn, _ *bufio.ReadWriter) {
			_, cw := conn.(interface{ CloseWrite() error })
			_, rf := conn.(io.ReaderFrom)
			j.note("%T CloseWrite %v ReadFrom %v, %s to %s", conn, cw, rf, conn.RemoteAddr(), conn.LocalAddr())
		})},
	})
}

// increment is a service of net/rpc.
type increment struct{}

func (increment) Of(n int, sum *int) error {
	*sum = n + 1
	return nil
}

// TestNetRPC holds net/rpc over HTTP to work with the switches that docs/strictness.md
// names for it.
func TestNetRPC(t *testing.T) {
	h := rpc.NewServer()
	if err := h.RegisterName("Increment", increment{}); err != nil {
		t.Fatal(err)
	}
	f := fortify(t, &serve.Server{Handler: h, Lenient: serve.Lenient{ConnectPath: true, BareLF: true}})
	client, err := rpc.DialHTTPPath("tcp", f.addr, rpc.DefaultRPCPath)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for n := range 3 {
		var sum int
		if err := client.Call("Increment.Of", n, &sum); err != nil || sum != n+1 {
			t.Fatalf("call %d: got %d, %v", n, sum, err)
		}
	}
}
