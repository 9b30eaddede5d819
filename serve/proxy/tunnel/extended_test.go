package tunnel_test

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/proxy"
	_ "github.com/tarehq/tare/serve/proxy/internal/extended"
	"github.com/tarehq/tare/serve/proxy/tunnel"
)

// soon is in time for an answer, on a busy machine, too.
const soon = 400 * time.Millisecond

// shout takes WebSockets as servers of HTTP/1.1 do, and says what it hears in capitals.
func shout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.Header.Get("Upgrade") != "websocket" || r.Header.Get(":protocol") != "" {
		http.Error(w, "want a WebSocket", http.StatusUpgradeRequired)
		return
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	accept := base64.StdEncoding.EncodeToString(sum[:])
	if r.URL.Path == "/wrong" {
		accept = "wrong"
	}
	fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
	fmt.Fprintf(c, "Sec-WebSocket-Accept: %s\r\nX-Path: %s\r\n\r\nhello ", accept, r.URL.Path) // a first word with the head
	go func() {                                                                                // the handler returns before
		defer c.Close()
		for {
			line, err := rw.ReadString('\n')
			if err != nil || line == "bye\n" {
				return
			}
			if r.URL.Path == "/soon" {
				_ = c.SetWriteDeadline(time.Now().Add(soon))
			}
			if _, err := io.WriteString(c, strings.ToUpper(line)); err != nil {
				return
			}
		}
	}()
}

// http2 speaks HTTP/2 as far as a test needs it.
type http2 struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

// The frames, and a flag.
const (
	data, headers, reset, settings, ping = 0, 1, 3, 4, 6

	ack = 1
	end = 1 // of a stream
)

// dialHTTP2 returns a connection to a server that takes extended CONNECT.
func dialHTTP2(t *testing.T, addr string) *http2 {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	c := &http2{t, nc, bufio.NewReader(nc)}
	_, _ = io.WriteString(nc, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	c.write(settings, 0, 0, nil)
	kind, _, _, payload := c.read()
	for ; len(payload) >= 6; payload = payload[6:] {
		if kind == settings && binary.BigEndian.Uint16(payload) == 8 && binary.BigEndian.Uint32(payload[2:]) == 1 {
			return c
		}
	}
	t.Fatal("the server does not say that it takes extended CONNECT")
	return nil
}

func (c *http2) write(kind, flags byte, stream uint32, payload []byte) {
	c.t.Helper()
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = binary.BigEndian.AppendUint32(append(head, flags), stream)
	if _, err := c.Write(append(head, payload...)); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next frame that is not of the connection's own business.
func (c *http2) read() (kind, flags byte, stream uint32, payload []byte) {
	c.t.Helper()
	for {
		var head [9]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			c.t.Fatal(err)
		}
		length := binary.BigEndian.Uint32(head[:]) >> 8
		payload = make([]byte, length)
		if _, err := io.ReadFull(c.in, payload); err != nil {
			c.t.Fatal(err)
		}
		kind, flags, stream = head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case kind == settings && flags&ack == 0:
			c.write(settings, ack, 0, nil)
			return kind, flags, stream, payload
		case kind == data, kind == headers, kind == reset:
			return kind, flags, stream, payload
		}
	}
}

// ask sends the head of a request.
func (c *http2) ask(stream uint32, fields ...string) {
	c.t.Helper()
	var b []byte
	for i := 0; i < len(fields); i += 2 { // literals with new names, which no table keeps
		b = append(b, 0, byte(len(fields[i])))
		b = append(append(b, fields[i]...), byte(len(fields[i+1])))
		b = append(b, fields[i+1]...)
	}
	c.write(headers, 4, stream, b) // the end of the head
}

// status returns that of the next answer.
func (c *http2) status() string {
	c.t.Helper()
	for {
		kind, _, _, b := c.read()
		switch kind {
		case settings:
			continue
		case reset:
			return "reset"
		case headers:
		default:
			c.t.Fatalf("got a frame of type %d, want an answer", kind)
		}
		for len(b) > 0 && b[0]&0xe0 == 0x20 { // a size of the table
			b = b[1:]
		}
		if known := map[byte]string{0x88: "200", 0x8c: "400", 0x8d: "404", 0x8e: "500"}[b[0]]; known != "" {
			return known
		}
		if b[1] == 0x82 { // two bytes by Huffman's code
			return map[string]string{"\x6c\x01": "501", "\x6c\x02": "502"}[string(b[2:4])]
		}
		return string(b[2:5]) // after the name's index and the length
	}
}

// text reads the stream until there are so many bytes, or its end.
func (c *http2) text(n int) (got string) {
	c.t.Helper()
	for len(got) < n {
		kind, flags, _, b := c.read()
		if kind == data {
			got += string(b)
		}
		if kind == reset || flags&end != 0 && kind != settings {
			return got
		}
	}
	return got
}

func serveHTTP2(t *testing.T, h http.Handler) (addr string) {
	t.Helper()
	s := &serve.Server{Handler: &tunnel.Extended{Next: h}, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// TestExtended has WebSockets by HTTP/2 reach a handler and, through the proxy, a server, which
// know those of HTTP/1.1 alone.
func TestExtended(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", shout)
	mux.HandleFunc("/forbidden", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a page, and no WebSocket") })
	mux.HandleFunc("/nothing", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/closed", func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			c.Close()
		}
	})
	up := httptest.NewServer(mux)
	defer up.Close()
	pool, err := proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: up.Listener.Addr().String()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	through, err := proxy.New(proxy.Options{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]http.Handler{"handler": mux, "proxy": through} {
		c := dialHTTP2(t, serveHTTP2(t, h))
		ask := func(stream uint32, protocol, path string) {
			c.ask(stream, ":method", "CONNECT", ":protocol", protocol, ":scheme", "http", ":path", path, ":authority", "shop.example", "sec-websocket-version", "13")
		}
		ask(1, "websocket", "/ws")
		if got := c.status(); got != "200" {
			t.Errorf("%s: got %s", name, got)
			continue
		}
		if got := c.text(len("hello ")); got != "hello " {
			t.Errorf("%s: got %q", name, got)
		}
		for _, line := range []string{"one\n", "another\n"} {
			c.write(data, 0, 1, []byte(line))
			if got := c.text(len(line)); got != strings.ToUpper(line) {
				t.Errorf("%s: got %q for %q", name, got, line)
			}
		}
		c.write(data, 0, 1, []byte("bye\n"))
		if got := c.text(1); got != "" {
			t.Errorf("%s: got %q, want the end", name, got)
		}
		for stream, want := range map[uint32][2]string{3: {"/forbidden", "403"}, 5: {"/page", "502"}, 7: {"/nothing", "502"}, 9: {"/wrong", "502"}, 11: {"/closed", "502"}} {
			c := dialHTTP2(t, serveHTTP2(t, h))
			c.ask(stream, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", want[0], ":authority", "shop.example")
			if got := c.status(); got != want[1] {
				t.Errorf("%s: %s: got %s, want %s", name, want[0], got, want[1])
			}
		}
	}
	other := dialHTTP2(t, serveHTTP2(t, &tunnel.Connect{Next: mux}))
	other.ask(1, ":method", "CONNECT", ":protocol", "connect-udp", ":scheme", "http", ":path", "/", ":authority", "shop.example")
	if got := other.status(); got != "501" {
		t.Errorf("another protocol: got %s, want 501", got)
	}
}

// TestExtendedDeadline has a deadline to write that passes while nobody writes harm nothing, as
// with a connection.
func TestExtendedDeadline(t *testing.T) {
	c := dialHTTP2(t, serveHTTP2(t, http.HandlerFunc(shout)))
	c.ask(1, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", "/soon", ":authority", "shop.example")
	if got := c.status(); got != "200" {
		t.Fatalf("got %s", got)
	}
	c.text(len("hello "))
	for range 2 {
		time.Sleep(soon + 50*time.Millisecond) // the deadline passes
		c.write(data, 0, 1, []byte("one\n"))
		if got := c.text(4); got != "ONE\n" {
			t.Errorf("got %q", got)
		}
	}
}

// TestExtendedReadDeadline has deadlines to read be as those of a connection: one that has passed
// can be set anew, and nothing that comes meanwhile is lost.
func TestExtendedReadDeadline(t *testing.T) {
	before := runtime.NumGoroutine()
	type step func(c net.Conn) error
	steps, results := make(chan step), make(chan error)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
		_ = rw.Flush()
		for s := range steps {
			results <- s(c)
		}
	})
	c := dialHTTP2(t, serveHTTP2(t, h))
	c.ask(1, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", "/", ":authority", "shop.example")
	if got := c.status(); got != "200" {
		t.Fatalf("got %s", got)
	}
	passes := func(c net.Conn) error {
		if n, err := c.Read(make([]byte, 10)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("read %d bytes, %v, want no time left", n, err)
		}
		return nil
	}
	reads := func(want string) step {
		return func(c net.Conn) error {
			b := make([]byte, len(want))
			if n, err := io.ReadFull(c, b); err != nil || string(b) != want {
				return fmt.Errorf("read %q, %v, want %q", b[:n], err, want)
			}
			return nil
		}
	}
	in := func(d time.Duration) step {
		return func(c net.Conn) error { return c.SetReadDeadline(time.Now().Add(d)) }
	}
	none := func(c net.Conn) error { return c.SetReadDeadline(time.Time{}) }
	send := func(text string) step {
		return func(net.Conn) error {
			c.write(data, 0, 1, []byte(text))
			time.Sleep(50 * time.Millisecond) // it comes meanwhile
			return nil
		}
	}
	cut := func(c net.Conn) error { // a read that waits
		time.AfterFunc(30*time.Millisecond, func() { _ = c.SetReadDeadline(time.Now()) })
		return passes(c)
	}
	closed := func(c net.Conn) error {
		c.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("got %v once it is closed", err)
		}
		return nil
	}
	for i, s := range []step{
		in(20 * time.Millisecond), passes, passes, send("one"), passes, none, reads("on"), reads("e"),
		in(time.Minute), cut, passes, send("two"), in(time.Minute), reads("two"),
		in(20 * time.Millisecond), in(time.Minute), send("three"), reads("three"),
		in(-time.Second), send("four"), passes, in(time.Minute), reads("four"), closed,
	} {
		steps <- s
		if err := <-results; err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	close(steps)
	c.Close()
	for range 1000 {
		if runtime.NumGoroutine() <= before+3 { // the server's
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// TestExtendedEnds has a server see its client go, and the client its server.
func TestExtendedEnds(t *testing.T) {
	left := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			left <- err
			return
		}
		defer c.Close()
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
		_ = rw.Flush()
		_, err = rw.ReadByte()
		left <- err
	})
	c := dialHTTP2(t, serveHTTP2(t, h))
	c.ask(1, ":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", "/", ":authority", "shop.example")
	if got := c.status(); got != "200" {
		t.Fatalf("got %s", got)
	}
	c.Close()
	select {
	case err := <-left:
		if err == nil {
			t.Error("the server read something")
		}
	case <-time.After(30 * time.Second):
		t.Error("the server does not see its client go")
	}
}
