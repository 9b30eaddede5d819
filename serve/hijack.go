package serve

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// hijack gives the connection to the handler, with what was read ahead.
func (c *conn) hijack() (net.Conn, *bufio.ReadWriter, error) {
	c.give(true)
	c.e.unlink(c)
	k := c.k
	from := k.r
	if b := k.x.body; b != nil && k.x.res.hasBody {
		from -= len(b.rest) // of a chunk that was decoded, and not read by the handler
	}
	ahead := append([]byte(nil), k.buf[from:k.w]...)
	k.r = k.w
	in := bufio.NewReaderSize(&aheadReader{ahead, c.nc}, max(bufSize, len(ahead)))
	if len(ahead) > 0 {
		in.Peek(len(ahead)) // Buffered tells of it
	}
	c.setState(http.StateHijacked)
	return c.nc, bufio.NewReadWriter(in, bufio.NewWriter(c.nc)), nil
}

// aheadReader reads what was read ahead, then the rest.
type aheadReader struct {
	ahead []byte
	from  io.Reader
}

func (r *aheadReader) Read(p []byte) (int, error) {
	if len(r.ahead) == 0 {
		return r.from.Read(p)
	}
	n := copy(p, r.ahead)
	r.ahead = r.ahead[n:]
	return n, nil
}
