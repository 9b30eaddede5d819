package tunnel

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Extended translates WebSockets by HTTP/2 (RFC 8441) into those by HTTP/1.1 for Next: GET with
// Upgrade, and a Hijack that gives the stream. Next may be any handler of WebSockets. Other
// requests are passed on as they are.
//
// The standard library's server takes them only in programs that were started with http2xconnect=1
// in GODEBUG.
type Extended struct{ Next http.Handler }

func (e *Extended) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || r.ProtoMajor != 2 || !asksWebSocket(r.Header[":protocol"]) {
		e.Next.ServeHTTP(w, r)
		return
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	key := base64.StdEncoding.EncodeToString(random[:])
	in := r.WithContext(r.Context())
	in.Method, in.Proto, in.ProtoMajor, in.ProtoMinor = http.MethodGet, "HTTP/1.1", 1, 1
	in.Body, in.ContentLength, in.Header = http.NoBody, 0, r.Header.Clone()
	delete(in.Header, ":protocol")
	in.Header["Connection"], in.Header["Upgrade"], in.Header["Sec-Websocket-Key"] = []string{"Upgrade"}, []string{"websocket"}, []string{key}
	a := &asked{ResponseWriter: w, r: r, accept: acceptKey(key)}
	defer a.release()
	e.Next.ServeHTTP(a, in)
	a.finish()
}

// release ends the stream, if there is one, also where Next panics.
func (a *asked) release() {
	if a.stream != nil {
		_ = a.stream.Close() // always nil
	}
}

func asksWebSocket(protocol []string) bool {
	return len(protocol) == 1 && strings.EqualFold(protocol[0], "websocket")
}

// acceptKey is what a server of HTTP/1.1 answers to a key (RFC 6455, section 4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// asked is the answer to a request for a WebSocket.
type asked struct {
	http.ResponseWriter
	r       *http.Request
	accept  string
	begun   bool // the answer
	refused bool // what Next says goes nowhere
	stream  *stream
}

// WriteHeader answers. A status that would say that the WebSocket is open, though nobody has
// taken the stream, becomes 502.
func (a *asked) WriteHeader(status int) {
	if status >= http.StatusOK && !a.begun {
		a.begun = true
		if a.refused = status < http.StatusMultipleChoices; a.refused {
			refuse(a.ResponseWriter, http.StatusBadGateway)
			return
		}
	}
	if !a.refused {
		a.ResponseWriter.WriteHeader(status)
	}
}

func (a *asked) begin() {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
}

func (a *asked) Write(p []byte) (int, error) {
	a.begin()
	if a.refused {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}

func (a *asked) Flush() { _ = a.FlushError() }

func (a *asked) FlushError() error {
	a.begin()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (a *asked) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Hijack gives the stream, on which the answer's head is written as by HTTP/1.1.
func (a *asked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if a.begun {
		return nil, nil, errors.New("tunnel: the request was answered")
	}
	ended := make(chan struct{})
	s := &stream{a: a, c: http.NewResponseController(a.ResponseWriter), ended: ended, in: newReader(a.r.Body, ended)}
	if err := errors.Join(s.c.SetReadDeadline(time.Time{}), s.c.SetWriteDeadline(time.Time{})); err != nil { // the server's are for requests
		return nil, nil, err
	}
	a.begun, a.stream = true, s
	return a.stream, bufio.NewReadWriter(bufio.NewReader(a.stream), bufio.NewWriter(a.stream)), nil
}

// finish waits until the stream is closed: it ends as the handler returns.
func (a *asked) finish() {
	if a.stream == nil {
		a.begin()
		return
	}
	select {
	case <-a.stream.ended:
	case <-a.r.Context().Done():
	}
	a.release()
	if !a.stream.mu.TryLock() {
		_ = a.stream.c.SetWriteDeadline(time.Unix(1, 0)) // ends a write that the client does not take
		a.stream.mu.Lock()
	}
	if !a.stream.open { // nobody has answered, and 200 would say that it is open
		a.stream.open = true
		refuse(a.ResponseWriter, http.StatusBadGateway)
	}
	a.stream.mu.Unlock() // whoever comes now sees that it is closed
	a.stream.gate.Lock()
	a.stream.left = true
	a.stream.gate.Unlock()
}

// mostHead is how many bytes the head of an answer may have.
const mostHead = 64 << 10

// stream is a request by HTTP/2 as a connection.
type stream struct {
	a     *asked
	c     *http.ResponseController
	over  atomic.Bool
	ended chan struct{} // closed once it is over
	in    *reader

	mu   sync.Mutex // held to write
	head []byte     // as much of the answer's as was written
	open bool       // the head has been sent

	gate sync.Mutex // held to set deadlines
	left bool       // the handler has returned, and nothing can be set

	writing bool      // guarded by gate, as is writeBy
	writeBy time.Time // HTTP/2's own would end a stream that nobody writes to
}

func (s *stream) Read(p []byte) (int, error) { return s.in.Read(p) }

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over.Load() {
		return 0, net.ErrClosed
	}
	if err := s.limit(true); err != nil {
		return 0, err
	}
	defer func() { _ = s.limit(false) }()
	rest := p
	if !s.open {
		var err error
		if rest, err = s.answerLocked(p); err != nil || !s.open {
			return len(p), err
		}
	}
	if len(rest) > 0 {
		if _, err := s.a.ResponseWriter.Write(rest); err != nil {
			return 0, err
		}
	}
	return len(p), s.c.Flush()
}

// answerLocked sends the head, once it is there, as HTTP/2 has it, and returns what came behind.
func (s *stream) answerLocked(p []byte) (rest []byte, err error) {
	s.head = append(s.head, p...)
	end := bytes.Index(s.head, []byte("\r\n\r\n"))
	if end < 0 {
		if len(s.head) > mostHead {
			return nil, errors.New("tunnel: the answer's head is too long")
		}
		return nil, nil
	}
	end += len("\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(s.head[:end])), nil)
	if err == nil && (res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Sec-Websocket-Accept") != s.a.accept) {
		err = errors.New("tunnel: the answer is none to a request for a WebSocket: " + res.Status)
	}
	if err != nil {
		s.open = true
		refuse(s.a.ResponseWriter, http.StatusBadGateway)
		_ = s.Close() // always nil; the answer goes out as the handler returns
		return nil, err
	}
	to := s.a.Header()
	clear(to)
	for name, values := range res.Header {
		if !slices.Contains([]string{"Connection", "Upgrade", "Sec-Websocket-Accept", "Keep-Alive", "Transfer-Encoding"}, name) {
			to[name] = values
		}
	}
	s.a.ResponseWriter.WriteHeader(http.StatusOK)
	s.open, rest, s.head = true, s.head[end:], nil
	return rest, nil
}

// Close ends the stream.
func (s *stream) Close() error {
	if !s.over.Swap(true) {
		close(s.ended)
		_ = s.a.r.Body.Close() // ends a read that waits
	}
	return nil
}

// SetReadDeadline sets the time by which reads have to end, one that waits included. Once it has
// passed, another one may be set.
func (s *stream) SetReadDeadline(t time.Time) error {
	if s.over.Load() {
		return net.ErrClosed
	}
	s.in.until.set(t)
	return nil
}

// SetWriteDeadline sets the time by which writes have to end, one that is under way included. To
// cut off a write ends the stream, as with TLS.
func (s *stream) SetWriteDeadline(t time.Time) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.left {
		return net.ErrClosed
	}
	if s.writeBy = t; !s.writing {
		return nil
	}
	return s.c.SetWriteDeadline(t)
}

// limit has the write deadline hold while a write is under way.
func (s *stream) limit(writing bool) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	switch {
	case s.left:
		return nil
	case !writing:
		s.writing = false
		if s.writeBy.IsZero() {
			return nil
		}
		return s.c.SetWriteDeadline(time.Time{})
	case s.writeBy.IsZero():
	case !s.writeBy.After(time.Now()):
		return os.ErrDeadlineExceeded
	default:
		if err := s.c.SetWriteDeadline(s.writeBy); err != nil {
			return err
		}
	}
	s.writing = true
	return nil
}

func (s *stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

func (s *stream) LocalAddr() net.Addr {
	if at, ok := s.a.r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return at
	}
	return address("")
}

func (s *stream) RemoteAddr() net.Addr { return address(s.a.r.RemoteAddr) }

// address is that of a request.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
