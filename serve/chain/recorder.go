package chain

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// Recorder sees what is answered to a request, once for all layers. It is part
// of the response writer, and like that not safe for concurrent use: a layer
// asks it after the handler has returned, or while it writes itself.
//
// It sees what reaches the writer that the chain was given: behind a layer that
// compresses, that is compressed.
type Recorder struct {
	w        http.ResponseWriter
	status   int // 0: nothing written
	bytes    int64
	hijacked bool
	came     time.Time        // zero: nobody asked
	now      func() time.Time // nil: nobody asked when
	first    time.Time
}

// Record returns a writer that records and its recorder: w itself if it does,
// as in a chain, or does so somewhere below what Unwrap methods lead to; else a
// new one around w. Middlewares call it in chains and without, and pass the
// writer on.
//
// The writer is an http.Flusher, http.Hijacker, http.Pusher or has CloseNotify
// just where w, or what it unwraps to, is. It is an io.ReaderFrom and
// io.StringWriter always: what those do does not depend on w, only how fast.
// http.ResponseController reaches w through it.
func Record(w http.ResponseWriter) (http.ResponseWriter, *Recorder) {
	if rec := recorderIn(w); rec != nil {
		return w, rec
	}
	b := new(bare)
	return b.attach(w), &b.Recorder
}

// recorderIn returns the nearest recorder that w is or unwraps to, or nil.
func recorderIn(w http.ResponseWriter) *Recorder {
	if r, ok := w.(recording); ok {
		return r.recorder()
	}
	r, ok := find[recording](w)
	if !ok {
		return nil
	}
	return r.recorder()
}

// recording is any writer of this package.
type recording interface{ recorder() *Recorder }

func (r *Recorder) recorder() *Recorder { return r }

// Status returns the status that was answered, 0 if none was: the server then
// answers 200 when the handler returns, or nothing if it panics. 1xx other than
// 101 does not count, as an answer follows.
func (r *Recorder) Status() int { return r.status }

// Bytes returns how many bytes of the body were written. To HEAD they are not
// sent.
func (r *Recorder) Bytes() int64 { return r.bytes }

// Written reports whether the header is gone, so that it is too late to change
// it or to answer otherwise.
func (r *Recorder) Written() bool { return r.status != 0 || r.hijacked }

// Hijacked reports whether a handler took over the connection.
func (r *Recorder) Hijacked() bool { return r.hijacked }

// Begun returns when the request came: when this was first called, so that all layers share
// one reading of the clock.
func (r *Recorder) Begun() time.Time {
	if r.came.IsZero() {
		r.came = time.Now()
	}
	return r.came
}

// Begun is that of the recorder that w is or unwraps to. Where there is none it is now.
func Begun(w http.ResponseWriter) time.Time {
	if rec := recorderIn(w); rec != nil {
		return rec.Begun()
	}
	return time.Now()
}

// Clock has the recorder ask now for the time when the header goes; see First.
// Until a layer asks for it the time is not taken, which costs as much as all
// else that the recorder does.
func (r *Recorder) Clock(now func() time.Time) { r.now = now }

// First returns when the header went, or a handler took over the connection. It is zero if neither
// did, or before Clock.
func (r *Recorder) First() time.Time { return r.first }

// Unwrap returns the writer recorded. What is written to that passes unseen.
func (r *Recorder) Unwrap() http.ResponseWriter { return r.w }

// Header returns the answer's header.
func (r *Recorder) Header() http.Header { return r.w.Header() }

// WriteHeader sends the header with that status.
func (r *Recorder) WriteHeader(status int) {
	r.w.WriteHeader(status)
	if status >= 200 || status == http.StatusSwitchingProtocols {
		r.begun(status)
	}
}

// Write writes a part of the body.
func (r *Recorder) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	r.wrote(int64(n), err)
	return n, err
}

// WriteString writes a part of the body.
func (r *Recorder) WriteString(s string) (int, error) {
	n, err := io.WriteString(r.w, s)
	r.wrote(int64(n), err)
	return n, err
}

// ReadFrom writes what it reads, by the writer's own ReadFrom where it has one.
func (r *Recorder) ReadFrom(src io.Reader) (n int64, err error) {
	if to, ok := r.w.(io.ReaderFrom); ok {
		n, err = to.ReadFrom(src)
	} else {
		n, err = io.Copy(struct{ io.Writer }{r.w}, src)
	}
	if n > 0 || err != nil {
		r.wrote(n, err)
	}
	return n, err
}

// wrote notes a write. One that wrote nothing and failed may not have sent the
// header either, unless it failed for being longer than the header says.
func (r *Recorder) wrote(n int64, err error) {
	if n == 0 && err != nil && !errors.Is(err, http.ErrContentLength) {
		return
	}
	r.bytes += n
	if r.status == 0 {
		r.begun(http.StatusOK)
	}
}

// begun notes that the header is gone, or with status 0 that the connection is.
func (r *Recorder) begun(status int) {
	if r.Written() {
		return // superfluous, as the server will say
	}
	r.status = status
	if r.now != nil {
		r.first = r.now()
	}
}

// flush sends what was written, and the header.
func (r *Recorder) flush() error {
	err := http.NewResponseController(r.w).Flush()
	r.wrote(0, err)
	return err
}

// hijack hands over the connection.
func (r *Recorder) hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(r.w).Hijack()
	if err == nil {
		r.begun(0)
		r.hijacked = true
	}
	return c, rw, err
}

// push starts to push a resource.
func (r *Recorder) push(target string, o *http.PushOptions) error {
	p, ok := find[http.Pusher](r.w)
	if !ok {
		return http.ErrNotSupported
	}
	return p.Push(target, o)
}

// gone returns the channel of CloseNotify, nil if there is none.
func (r *Recorder) gone() <-chan bool {
	if n, ok := find[closeNotifier](r.w); ok {
		return n.CloseNotify()
	}
	return nil
}

// find returns the outermost of what w is and unwraps to that is a T.
func find[T any](w http.ResponseWriter) (T, bool) {
	for {
		if t, ok := w.(T); ok {
			return t, true
		}
		u, ok := w.(unwrapper)
		if !ok {
			var none T
			return none, false
		}
		w = u.Unwrap()
	}
}

type unwrapper interface{ Unwrap() http.ResponseWriter }
