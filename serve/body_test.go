//go:build linux

package serve_test

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestBodyRead posts bodies of many sizes, declared and in chunks, two at once, to handlers
// that read them in several ways.
func TestBodyRead(t *testing.T) {
	ways := map[string]func(body io.Reader) ([]byte, error){
		"all": io.ReadAll,
		"to buffer": func(body io.Reader) ([]byte, error) {
			var b bytes.Buffer
			_, err := io.Copy(&b, body)
			return b.Bytes(), err
		},
		"to writer": func(body io.Reader) ([]byte, error) {
			var b bytes.Buffer
			_, err := io.Copy(struct{ io.Writer }{&b}, body)
			return b.Bytes(), err
		},
		"bytewise": func(body io.Reader) (all []byte, err error) {
			for b := make([]byte, 1); err == nil; {
				var n int
				n, err = body.Read(b)
				all = append(all, b[:n]...)
			}
			if err == io.EOF {
				err = nil
			}
			return all, err
		},
	}
	each(t, func(t *testing.T, reuse bool) {
		s := &serve.Server{Reuse: reuse, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, err := ways[strings.ReplaceAll(r.URL.Path[1:], "-", " ")](r.Body)
			fmt.Fprintf(w, "%d %x %v\n", len(got), crc32.ChecksumIEEE(got), err)
		})}
		nc := bodyClient(t, s, func(l net.Listener) net.Listener { return l })
		br := bufio.NewReader(nc)
		for way := range ways {
			for _, size := range []int{1, 100, 3000, 4000, 4096, 5000, 20_000, 100_000} {
				body := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
				post := "POST /" + strings.ReplaceAll(way, " ", "-") + " HTTP/1.1\r\nHost: a\r\n"
				text := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", post, size, body, post, size, body)
				go io.WriteString(nc, text)
				for range 2 {
					answer, err := http.ReadResponse(br, nil)
					if err != nil {
						t.Fatalf("%s, %d bytes: %v", way, size, err)
					}
					got, _ := io.ReadAll(answer.Body)
					if want := fmt.Sprintf("%d %x <nil>\n", size, crc32.ChecksumIEEE(body)); string(got) != want {
						t.Errorf("%s, %d bytes: answer %q, want %q", way, size, got, want)
					}
				}
			}
		}
	})
}

// bodyClient serves s and returns a connection to it.
func bodyClient(t *testing.T, s *serve.Server, wrap func(net.Listener) net.Listener) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(wrap(l)) }()
	t.Cleanup(func() { s.Close(); <-served })
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(2 * long))
	return nc
}

// TestBodyWithHead posts bodies that do not fit the first buffer beside their heads: after the
// first, each comes with its head by one read.
func TestBodyWithHead(t *testing.T) {
	const posts, size = 20, 8 << 10
	var reads atomic.Int32
	s := &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); n != size || err != nil {
			t.Errorf("read %d, %v, want %d", n, err, size)
		}
		io.WriteString(w, "ok")
	})}
	nc := bodyClient(t, s, func(l net.Listener) net.Listener { return readCounter{l, &reads} })
	br := bufio.NewReader(nc)
	post := []byte(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size)))
	for range posts {
		if _, err := nc.Write(post); err != nil {
			t.Fatal(err)
		}
		if err := hearOK(br); err != nil {
			t.Fatal(err)
		}
	}
	if n := reads.Load(); n > posts+5 {
		t.Errorf("%d reads for %d requests, want about one each", n, posts)
	}
}

// readCounter counts the reads that brought something.
type readCounter struct {
	net.Listener
	reads *atomic.Int32
}

func (l readCounter) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	return &countedConn{nc, l.reads}, err
}

type countedConn struct {
	net.Conn
	reads *atomic.Int32
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.reads.Add(1)
	}
	return n, err
}
