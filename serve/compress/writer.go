package compress

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// writer decides, when it knows enough, whether an answer is compressed. It has no Unwrap:
// what is written to the server's writer would overtake what is held back here, and layers
// inside must see that an answer has begun before the server does.
//
// A goroutine of the handler may write until after that has returned. The encoder is another answer's
// then, so mu guards it and what follows.
type writer struct {
	http.ResponseWriter
	c       *compressor
	r       *http.Request
	packed  *packed // nil: the client takes no encoding, and the answer only says that it could
	mu      sync.Mutex
	status  int32 // 0: the handler has not said
	decided bool
	closed  bool
	waits   atomic.Bool // the status is said, and the header waits for the decision
	said    http.Header // what it was then; nil: nobody has looked since
}

// packed is what is needed to compress an answer, and half of the memory.
type packed struct {
	encoding Encoding // that the client prefers
	held     []byte   // before the decision
	enc      *pooled  // nil: as it is
	bound    bool     // Content-Length says how long the answer is
	due      int64    // bytes of that which are not written yet
}

// write has b encoded.
func (k *packed) write(b []byte) (int, error) {
	if k.bound && int64(len(b)) > k.due {
		return 0, http.ErrContentLength // as the server has it
	}
	k.due -= int64(len(b))
	return k.enc.Write(b)
}

// newWriter returns a writer in one allocation. The encoding is empty if the client takes none.
func newWriter(w http.ResponseWriter, c *compressor, r *http.Request, e Encoding) *writer {
	if e == "" {
		return &writer{ResponseWriter: w, c: c, r: r}
	}
	both := &struct {
		w writer
		p packed
	}{writer{ResponseWriter: w, c: c, r: r}, packed{encoding: e}}
	both.w.packed = &both.p
	return &both.w
}

// encoder returns that of the answer, nil if it is not compressed.
func (w *writer) encoder() *pooled {
	if w.packed == nil {
		return nil
	}
	return w.packed.enc
}

var errClosed = errors.New("compress: write after the handler returned")

// WriteHeader takes the status. The header goes with the decision.
func (w *writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(status)
}

func (w *writer) writeHeader(status int) {
	switch {
	case w.closed:
		return
	case w.status != 0:
		if w.decided {
			w.ResponseWriter.WriteHeader(status) // the server says that it is superfluous
		}
		return
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.status = int32(status)
	w.waits.Store(true)
	if h := w.ResponseWriter.Header(); w.known(h) || !bodyAllowed(status) {
		w.decide(h, nil, false)
	}
}

// known reports whether the header says all that the decision needs.
func (w *writer) known(h http.Header) bool {
	return len(h["Content-Type"]) > 0 && (w.packed == nil || len(h["Content-Length"]) > 0)
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// Write writes a part of the body.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(p)
}

func (w *writer) write(p []byte) (int, error) {
	if w.closed {
		return 0, errClosed
	}
	if w.status == 0 {
		w.writeHeader(http.StatusOK)
	}
	if !w.decided {
		if k := w.packed; k != nil && len(k.held)+len(p) < w.c.o.Smallest && !w.known(w.ResponseWriter.Header()) {
			k.held = append(k.held, p...)
			return len(p), nil
		}
		if err := w.begin(p, true); err != nil {
			return 0, err
		}
	}
	if w.encoder() != nil {
		return w.packed.write(p)
	}
	return w.ResponseWriter.Write(p)
}

// WriteString writes a part of the body.
func (w *writer) WriteString(s string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.decided && !w.closed && w.encoder() == nil {
		return io.WriteString(w.ResponseWriter, s)
	}
	return w.write([]byte(s))
}

// ReadFrom writes what it reads, by the server's own way where nothing is compressed.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	if w.plain() {
		return io.Copy(w.ResponseWriter, src)
	}
	return io.Copy(struct{ io.Writer }{w}, src)
}

// plain reports whether nothing is compressed, and decides that if the header says all.
func (w *writer) plain() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.decided && !w.closed && w.status == 0 && w.known(w.ResponseWriter.Header()) {
		w.writeHeader(http.StatusOK)
	}
	return w.decided && !w.closed && w.encoder() == nil
}

// begin decides, and writes what was held back. next is what follows that.
func (w *writer) begin(next []byte, enough bool) error {
	w.decide(w.ResponseWriter.Header(), next, enough)
	if w.packed == nil || len(w.packed.held) == 0 {
		return nil
	}
	held := w.packed.held
	w.packed.held = nil
	_, err := w.write(held)
	return err
}

// decide decides whether the answer is compressed, and sends its header. enough: the body has
// Options.Smallest bytes, or goes on for an unknown time.
func (w *writer) decide(h http.Header, next []byte, enough bool) {
	w.decided = true
	late := w.rewind(h)
	if w.status == http.StatusNotModified {
		addVary(h)
		w.weakenAsAsked()
	} else if is := w.mediaOf(h, next); (is.compressed || is.name == severalParts) && w.changeable(h) {
		addVary(h)
		if w.packed != nil && is.compressed && w.worth(h, enough) {
			w.compress(is.name)
		}
	}
	w.ResponseWriter.WriteHeader(int(w.status))
	for name, values := range late {
		if strings.HasPrefix(name, http.TrailerPrefix) || hasToken(h["Trailer"], name) {
			h[name] = values
		}
	}
}

// Header returns the answer's header. As with the server's writer, what changes it behind the status is
// for trailers, or comes too late. A handler that kept the header from before is not noticed.
func (w *writer) Header() http.Header {
	h := w.ResponseWriter.Header()
	if w.waits.Load() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.said == nil && !w.decided {
			w.said = h.Clone()
		}
	}
	return h
}

// rewind makes the header what it was when the status was said, and returns what it has become since.
func (w *writer) rewind(h http.Header) (late http.Header) {
	w.waits.Store(false)
	if w.said == nil {
		return nil
	}
	late = maps.Clone(h)
	clear(h)
	maps.Copy(h, w.said)
	return late
}

// severalParts is the type of a 206 of several ranges, which hides that of the whole.
const severalParts = "multipart/byteranges"

// worth reports whether an answer has a body that is long enough, and whole. It notes what
// Content-Length promises.
func (w *writer) worth(h http.Header, enough bool) bool {
	if length := h["Content-Length"]; len(length) > 0 {
		if n, err := strconv.ParseInt(length[0], 10, 64); err == nil {
			enough = n >= int64(w.c.o.Smallest)
			w.packed.bound, w.packed.due = true, n
		}
	}
	return enough && bodyAllowed(int(w.status)) && w.status != http.StatusPartialContent && h["Content-Range"] == nil
}

// mediaOf says what the body is. A type that is not set is found as the server would find
// it, and set if the server may see other bytes than these, as those that are compressed.
func (w *writer) mediaOf(h http.Header, next []byte) media {
	t, set := h["Content-Type"]
	switch {
	case len(t) > 0:
		return w.c.mediaOf(t[0])
	case set || len(h["Content-Encoding"]) > 0:
		return media{}
	}
	const looked = 512 // as DetectContentType does
	var start []byte
	if w.packed != nil {
		start = w.packed.held
	}
	if len(start)+len(next) == 0 {
		return media{}
	}
	if len(start) < looked {
		start = append(start[:len(start):len(start)], next[:min(len(next), looked-len(start))]...)
	}
	is := http.DetectContentType(start)
	if w.packed != nil {
		h["Content-Type"] = []string{is}
	}
	return w.c.mediaOf(is)
}

// changeable reports whether the answer is one that an encoding may be chosen for, if it
// is of such a type.
func (w *writer) changeable(h http.Header) bool {
	if hasToken(w.r.Header["Cache-Control"], "no-transform") {
		return false
	}
	if n := len(h); n <= 2 && len(h["Content-Type"]) > 0 && (n == 1 || len(h["Content-Length"]) > 0) {
		return true // there is nothing else, as in most answers
	}
	for _, name := range [...]string{"Content-Encoding", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest"} {
		if len(h[name]) > 0 || hasToken(h["Trailer"], name) {
			return false
		}
	}
	return !hasToken(h["Cache-Control"], "no-transform")
}

// compress makes what follows compressed. Options.Level may panic, and somebody inside may
// answer by this writer then: the header must not say yet that it is compressed.
func (w *writer) compress(mediaType string) {
	e := w.packed.encoding
	level, h := w.c.o.Level(e, mediaType), w.ResponseWriter.Header()
	h["Content-Encoding"] = kinds[e].field[:1:1]
	delete(h, "Content-Length")
	delete(h, "Accept-Ranges")
	if tag := h.Get("Etag"); strings.HasPrefix(tag, `"`) {
		h.Set("Etag", "W/"+tag)
	}
	if w.r.Method == http.MethodHead {
		w.packed.enc, w.packed.bound, w.packed.due = &pooled{encoder: nobody{}}, false, 0
		return
	}
	w.packed.enc = take(e, level, w.ResponseWriter)
}

// weakenAsAsked makes the ETag of a 304 weak if the client asked with it as a weak one: it
// has the compressed answer.
func (w *writer) weakenAsAsked() {
	h := w.ResponseWriter.Header()
	tag := h.Get("Etag")
	if strings.HasPrefix(tag, `"`) && strings.Contains(strings.Join(w.r.Header["If-None-Match"], ","), "W/"+tag) {
		h.Set("Etag", "W/"+tag)
	}
}

var vary = []string{"Accept-Encoding"}

func addVary(h http.Header) {
	before := h["Vary"]
	switch {
	case len(before) == 0:
		h["Vary"] = vary[:1:1] // of no more room: what adds to it makes its own
	case !hasToken(before, "accept-encoding") && !hasToken(before, "*"):
		h["Vary"] = append(before[:len(before):len(before)], vary[0])
	}
}

// hasToken reports whether a comma-separated list has the token.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(element, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// Flush sends what was written.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError sends what was written.
func (w *writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	if w.status == 0 {
		w.writeHeader(http.StatusOK)
	}
	if !w.decided {
		if err := w.begin(nil, true); err != nil {
			return err
		}
	}
	if enc := w.encoder(); enc != nil {
		if err := enc.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// SetReadDeadline, SetWriteDeadline and EnableFullDuplex are for http.ResponseController.
func (w *writer) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(w.ResponseWriter).SetReadDeadline(t)
}

func (w *writer) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

func (w *writer) EnableFullDuplex() error {
	return http.NewResponseController(w.ResponseWriter).EnableFullDuplex()
}

// close ends the answer after the handler has returned, and a write on another goroutine. It
// reports whether the answer is whole: one that is shorter than its Content-Length said, as of a
// file that was cut, is not, unless nobody waits for it any more.
func (w *writer) close() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.drop() // also if the server's writer panics
	h := w.ResponseWriter.Header()
	switch {
	case w.status == 0 && w.r.Method == http.MethodHead && w.known(h):
		w.writeHeader(http.StatusOK)
	case w.status == 0:
		if w.mediaOf(h, nil).compressed && w.changeable(h) {
			addVary(h)
		}
	case !w.decided:
		_ = w.begin(nil, false) // the server has the error, too
	}
	enc := w.encoder()
	if enc == nil {
		return true
	}
	if w.packed.due > 0 {
		return errors.Is(w.r.Context().Err(), context.Canceled)
	}
	_ = enc.Close()
	return true
}

// abort ends the answer of a handler that panics. It has a write that waits for the client fail.
func (w *writer) abort() {
	if !w.mu.TryLock() {
		_ = w.SetWriteDeadline(time.Unix(1, 0))
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	w.drop()
}

// drop ends the use of the encoder. What was held back is forgotten.
func (w *writer) drop() {
	w.closed = true
	if k := w.packed; k != nil {
		k.held = nil
		if k.enc != nil {
			k.enc.give()
			k.enc = nil
		}
	}
}
