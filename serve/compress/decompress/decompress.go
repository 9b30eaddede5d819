// Package decompress unpacks the bodies of requests that come compressed by gzip or zstd
// (RFC 9110, section 8.4), up to a bound.
//
// A body that becomes longer than Options.Body fails with *http.MaxBytesError, as that of
// http.MaxBytesReader does, after no more than that was unpacked: a few kilobytes that
// become gigabytes cost no memory. Encodings that are not known, and more than one, get
// 415 with Accept-Encoding, which says what is (RFC 7694).
//
// The handler sees the body without Content-Encoding and Content-Length. Content-Digest and
// Repr-Digest (RFC 9530) are of the body as it came: verify them outside. Nothing is read
// before the handler does, and nothing is unpacked for who is refused on the way.
//
// Place: inside of limit, which bounds the bytes that arrive, and of what refuses.
//
// Cost: nothing for other requests. Decoders are pooled; one takes about 40 kB (gzip), or
// up to 8 MiB (zstd), the largest window that is accepted.
package decompress

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tarehq/tare/serve/chain"
)

// Options of the middleware.
type Options struct {
	// Body is how many bytes a body may become. 0: 8 MiB.
	Body int64
}

const (
	defaultBody = 8 << 20
	// window is what RFC 9659 has senders of zstd keep to.
	window = 8 << 20
)

// New returns the middleware, or an error if Options.Body is negative.
func New(o Options) (func(http.Handler) http.Handler, error) {
	if o.Body < 0 {
		return nil, fmt.Errorf("decompress: Options.Body is negative: %d", o.Body)
	}
	if o.Body == 0 {
		o.Body = defaultBody
	}
	return func(next http.Handler) http.Handler { return &handler{o.Body, next} }, nil
}

type handler struct {
	most int64
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "decompress", Rules: []chain.Rule{
		chain.After("limit", "it would limit what bodies become and not what arrives"),
		chain.After("accesslog", "requests that it refuses would not be logged"),
		chain.After("metrics", "requests that it refuses would not be counted"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var pool *sync.Pool
	// Elements of the list that are empty do not count (RFC 9110, section 5.6.1).
	switch strings.ToLower(strings.Trim(strings.Join(r.Header["Content-Encoding"], ","), " \t,")) {
	case "", "identity":
		h.next.ServeHTTP(w, r)
		return
	case "gzip", "x-gzip":
		pool = &gzips
	case "zstd":
		pool = &zstds
	default:
		w.Header().Set("Accept-Encoding", "gzip, zstd")
		http.Error(w, http.StatusText(http.StatusUnsupportedMediaType), http.StatusUnsupportedMediaType)
		return
	}
	b := &body{from: r.Body, pool: pool, left: h.most, most: h.most}
	defer b.release()
	r.Header.Del("Content-Encoding")
	r.Header.Del("Content-Length")
	r.Body, r.ContentLength = b, -1
	h.next.ServeHTTP(w, r)
}

// decoder is what both have.
type decoder interface {
	io.Reader
	Reset(io.Reader) error
}

var (
	gzips = sync.Pool{New: func() any { return new(gzip.Reader) }}
	zstds = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderLowmem(true),
			zstd.WithDecodeBuffersBelow(0)) // of a body that shows its bytes it would unpack all at once
		if err != nil {
			panic(err) // of options, which are constant
		}
		return d
	}}
)

// body is the unpacked one. A handler may read it on another goroutine, and after it has
// returned: the decoder is then that of another request, so that mu guards it.
type body struct {
	over       atomic.Bool // nobody is to read any more
	mu         sync.Mutex
	from       io.ReadCloser
	pool       *sync.Pool
	dec        decoder // nil: not begun
	left, most int64
	err        error // of all reads from now on
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over.Load() && (b.err == nil || b.err == io.EOF) {
		b.err = http.ErrBodyReadAfterClose
	}
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if b.dec == nil {
		b.dec = b.pool.Get().(decoder)
		if err := b.dec.Reset(b.from); err != nil {
			b.err = failure(err)
			return 0, b.err
		}
	}
	// One byte more than is left shows that there is more.
	if int64(len(p))-1 > b.left { // which may be the largest number there is
		p = p[:b.left+1]
	}
	n, err := b.dec.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), &http.MaxBytesError{Limit: b.most}
	}
	b.left -= int64(n)
	b.err = failure(err)
	return n, b.err
}

// failure has what is not a whole body in an encoding reported as such.
func failure(err error) error {
	var tooLong *http.MaxBytesError
	switch {
	case err == nil, err == io.EOF, errors.As(err, &tooLong):
		return err
	case errors.Is(err, io.EOF): // within a frame
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("decompress: unpacking the body: %w", err)
}

// Close ends reading.
func (b *body) Close() error {
	b.release()
	return b.from.Close()
}

// release ends the use of the decoder. It does not wait for a read on another goroutine, which
// waits for the client, who may wait for the answer: the pool does without that decoder.
func (b *body) release() {
	b.over.Store(true)
	if !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	if b.dec == nil {
		return
	}
	_ = b.dec.Reset(ended{}) // keeps no request's body
	b.pool.Put(b.dec)
	b.dec = nil
}

// ended has nothing to read.
type ended struct{}

func (ended) Read([]byte) (int, error) { return 0, io.EOF }
