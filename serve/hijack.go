package serve

import (
	"bufio"
	"net"
	"net/http"

	"github.com/tarehq/tare/serve/internal/ahead"
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
	early := append([]byte(nil), k.buf[from:k.w]...)
	k.r = k.w
	in := bufio.NewReaderSize(ahead.NewReader(early, c.nc), max(bufSize, len(early)))
	if len(early) > 0 {
		in.Peek(len(early)) // Buffered tells of it
	}
	c.setState(http.StateHijacked)
	return c.nc, bufio.NewReadWriter(in, bufio.NewWriter(c.nc)), nil
}
