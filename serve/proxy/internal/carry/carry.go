// Package carry copies answers' bodies.
package carry

import (
	"io"
	"sync"
)

// pieces are the buffers that answers are copied by. A handler has one while it copies.
type piece [32 << 10]byte

var pieces = sync.Pool{New: func() any { return new(piece) }}

// Body passes an answer's body on. It returns what stood against reading it, or against writing. flush is called after each piece but the last, if it
// is set.
func Body(to io.Writer, from io.Reader, flush func() error) (upstream, client error) {
	if own, ok := from.(interface {
		Pass(io.Writer) (read, write error)
	}); ok && flush == nil {
		return own.Pass(to)
	}
	buf := pieces.Get().(*piece)
	defer pieces.Put(buf)
	for {
		n, err := from.Read(buf[:])
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				return nil, werr
			}
			if flush != nil && err == nil { // the end is sent with what came before it
				if werr := flush(); werr != nil {
					return nil, werr
				}
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil, nil
		default:
			return err, nil
		}
	}
}
