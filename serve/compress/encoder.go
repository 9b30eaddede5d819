package compress

import (
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// encoder is what all three have.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// kind is how an encoding is made.
type kind struct {
	field              []string // Content-Encoding
	index              int      // among the pools
	first, last, usual int      // levels
	make               func(to io.Writer, level int) encoder
}

// window bounds the memory of a zstd encoder, and what a browser needs (RFC 9659 asks for
// 8 MiB at most).
const window = 512 << 10

var kinds = map[Encoding]kind{
	Gzip: {[]string{"gzip"}, 0, 1, 9, 5, func(to io.Writer, level int) encoder {
		e, err := gzip.NewWriterLevel(to, level)
		return must(e, err)
	}},
	Brotli: {[]string{"br"}, 1, 0, 11, 4, func(to io.Writer, level int) encoder { return brotli.NewWriterLevel(to, level) }},
	Zstd: {[]string{"zstd"}, 2, 1, 4, 1, func(to io.Writer, level int) encoder {
		e, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.EncoderLevel(level)), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		return must(e, err)
	}},
}

// must panics if an encoder cannot be made of levels within its range.
func must[E encoder](e E, err error) encoder {
	if err != nil {
		panic(err)
	}
	return e
}

// pools have the encoders that are not in use, by kind and level.
var pools [3][12]sync.Pool

// pooled is an encoder that may be used for one answer after another. It belongs to one
// from take to give.
type pooled struct {
	encoder
	to   io.Writer
	pool *sync.Pool // nil: none
}

func (p *pooled) writeThrough(b []byte) (int, error) { return p.to.Write(b) }

// through is the writer of the encoder: where that leads changes with each answer.
type through struct{ p *pooled }

func (t through) Write(b []byte) (int, error) { return t.p.writeThrough(b) }

func take(e Encoding, level int, to io.Writer) *pooled {
	k := kinds[e]
	level = min(max(level, k.first), k.last)
	pool := &pools[k.index][level]
	p, ok := pool.Get().(*pooled)
	if !ok {
		p = &pooled{pool: pool}
		p.encoder = k.make(through{p}, level)
	} else {
		p.encoder.Reset(through{p})
	}
	p.to = to
	return p
}

// give ends the use of the encoder.
func (p *pooled) give() {
	p.to = nil
	if p.pool != nil {
		p.pool.Put(p)
	}
}

// nobody is the encoder of an answer to HEAD: the length of what it would have sent is not that of
// what GET gets.
type nobody struct{}

func (nobody) Write(p []byte) (int, error) { return len(p), nil }
func (nobody) Flush() error                { return nil }
func (nobody) Close() error                { return nil }
func (nobody) Reset(io.Writer)             {}
