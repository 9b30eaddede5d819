// Package answers holds what every arm of the engine study answers, so that
// engines alone differ between them.
//
//	GET  /plain  5 bytes of text
//	GET  /json   1 KiB of JSON
//	GET  /page   64 KiB of text
//	POST /echo   the request's body, once it has been read whole
//	POST /count  the length of the request's body, likewise; only by Handler and fasthttp's arm
//	GET  /long   100 KiB of text; only by those two
//
// Nothing is routed but by comparing the path, and nothing is encoded. Every
// answer has a Content-Type and a Content-Length.
package answers

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// The paths.
const (
	PlainPath = "/plain"
	JSONPath  = "/json"
	PagePath  = "/page"
	EchoPath  = "/echo"
	CountPath = "/count"
	LongPath  = "/long"
)

// The content types. An echo is of the type Text.
const (
	Text = "text/plain; charset=utf-8"
	JSON = "application/json; charset=utf-8"
)

// NotFound is the body of every other path's answer, of the type Text and the
// status 404, as http.NotFound sends it.
const NotFound = "404 page not found\n"

// MostEcho is the size in bytes of the largest body that is echoed.
const MostEcho = 4 << 10

// Plain returns the body of GET /plain, 5 bytes.
func Plain() []byte { return []byte("hello") }

// Object returns the body of GET /json: an order, 1,024 bytes.
func Object() []byte {
	const size, end = 1 << 10, `"}`
	var b strings.Builder
	b.WriteString(`{"order":7,"items":[`)
	for i := range 16 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"item %d","price":%d,"stock":%d}`, 10+i, 10+i, 1990+i, 40+i)
	}
	b.WriteString(`],"note":"`)
	b.WriteString(strings.Repeat("-", size-len(end)-b.Len()))
	b.WriteString(end)
	return []byte(b.String())
}

// Page returns the body of GET /page: numbered lines, 65,536 bytes.
func Page() []byte { return lines(1024) }

// Long returns the body of GET /long: numbered lines, 102,400 bytes.
func Long() []byte { return lines(1600) }

// lines returns n numbered lines of 64 bytes each.
func lines(n int) []byte {
	const width = 64
	var b strings.Builder
	for i := range n {
		number := strconv.Itoa(i)
		b.WriteString(number)
		b.WriteString(strings.Repeat(".", width-1-len(number)))
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// Handler answers all of it in the standard library's way. A fixed answer
// allocates nothing, and nothing is kept of a request.
type Handler struct {
	plain, object, page, long fixed
	buffers                   sync.Pool // of *buffer, each taken while an echo is answered
}

// buffer has room for one byte more than is echoed, to tell what is longer.
type buffer [MostEcho + 1]byte

// New returns a handler, which is safe for concurrent use.
func New() *Handler {
	h := &Handler{
		plain:  newFixed(Text, Plain()),
		object: newFixed(JSON, Object()),
		page:   newFixed(Text, Page()),
		long:   newFixed(Text, Long()),
	}
	h.buffers.New = func() any { return new(buffer) }
	return h
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == EchoPath:
		h.echo(w, r)
	case r.Method == http.MethodPost && r.URL.Path == CountPath:
		count(w, r)
	case r.Method != http.MethodGet:
		missing(w)
	case r.URL.Path == PlainPath:
		h.plain.write(w)
	case r.URL.Path == JSONPath:
		h.object.write(w)
	case r.URL.Path == PagePath:
		h.page.write(w)
	case r.URL.Path == LongPath:
		h.long.write(w)
	default:
		missing(w)
	}
}

// missing answers as http.NotFound does, with a length for engines that do not
// find it out.
func missing(w http.ResponseWriter) {
	w.Header().Set("Content-Type", Text)
	w.Header().Set("Content-Length", strconv.Itoa(len(NotFound)))
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, NotFound)
}

// echo answers with what it read. Reading into a buffer that is kept spares
// every arm the same allocation, which would hide what an engine's own are.
func (h *Handler) echo(w http.ResponseWriter, r *http.Request) {
	buf := h.buffers.Get().(*buffer)
	defer h.buffers.Put(buf)
	n, err := io.ReadFull(r.Body, buf[:])
	switch err {
	case io.EOF, io.ErrUnexpectedEOF: // the body ended within the buffer
		answer := fixed{contentType: []string{Text}, length: []string{strconv.Itoa(n)}, body: buf[:n]}
		answer.write(w)
	case nil:
		http.Error(w, "the body is too long", http.StatusRequestEntityTooLarge)
	default:
		http.Error(w, "the body could not be read", http.StatusBadRequest)
	}
}

// count reads a body of any size as most handlers do.
func count(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	answer := newFixed(Text, strconv.AppendInt(nil, int64(len(body)), 10))
	answer.write(w)
}

// fixed is an answer made beforehand.
type fixed struct {
	contentType, length []string // header values, shared by all answers
	body                []byte
}

func newFixed(contentType string, body []byte) fixed {
	return fixed{[]string{contentType}, []string{strconv.Itoa(len(body))}, body}
}

// write sends the answer. A failure means that the client has gone, which no
// arm cares about.
func (f *fixed) write(w http.ResponseWriter) {
	header := w.Header()
	header["Content-Type"] = f.contentType
	header["Content-Length"] = f.length
	_, _ = w.Write(f.body)
}
