// Package request writes requests, with their bodies.
package request

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// AppendHead appends a request's head to b. chunked says how the body is framed.
func AppendHead(b []byte, r *http.Request) (head []byte, chunked bool) {
	b = append(b, cmp.Or(r.Method, http.MethodGet)...)
	b = append(b, ' ')
	b = append(b, r.URL.RequestURI()...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, cmp.Or(r.Host, r.URL.Host)...)
	b = append(b, "\r\n"...)
	for name, values := range r.Header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue // the frame is ours
		case "Te": // it is for this hop alone (RFC 9110, section 10.1.4)
			b = append(b, "Connection: TE\r\n"...)
		}
		for _, v := range values {
			if name == "User-Agent" && v == "" {
				continue
			}
			b = field(b, name, v)
		}
	}
	switch {
	case !HasBody(r):
		switch r.Method {
		case http.MethodPost, http.MethodPut, http.MethodPatch:
			b = append(b, "Content-Length: 0\r\n"...)
		}
	case r.ContentLength > 0:
		b = append(b, "Content-Length: "...)
		b = append(strconv.AppendInt(b, r.ContentLength, 10), "\r\n"...)
	default:
		chunked = true
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
		if names := trailerNames(r); len(names) > 0 {
			b = field(b, "Trailer", strings.Join(names, ", "))
		}
	}
	if r.Close {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...), chunked
}

func field(b []byte, name, value string) []byte {
	if n := len(value); n > 0 && (value[0] <= ' ' || value[n-1] <= ' ') { // few have a blank there, and to look for it takes longer than to copy
		value = strings.Trim(value, " \t")
	}
	b = append(append(b, name...), ": "...)
	return append(append(b, value...), "\r\n"...)
}

// HasBody reports whether there is a body; of a length of 0 it is unknown then.
func HasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

func trailerNames(r *http.Request) []string {
	var names []string
	for name := range r.Trailer {
		switch name = http.CanonicalHeaderKey(name); name {
		case "Transfer-Encoding", "Trailer", "Content-Length", "Host":
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var errLonger = errors.New("it is longer than the request's ContentLength")

// AppendBody appends a body whose length is known, and reads one byte more: to cut a body off
// would send another one.
func AppendBody(b []byte, r *http.Request) ([]byte, error) {
	at, n := len(b), int(r.ContentLength)
	b = append(b, make([]byte, n+1)...)
	switch got, err := io.ReadFull(r.Body, b[at:]); {
	case err == nil:
		return nil, errLonger
	case got == n && err == io.ErrUnexpectedEOF: // as is to be
		return b[:at+n], nil
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	default:
		return nil, err
	}
}

// ended reads one byte of a body that is to have come to its end.
func ended(body io.Reader, b []byte) error {
	switch _, err := io.ReadFull(body, b[:1]); err {
	case io.EOF:
		return nil
	case nil:
		return errLonger
	default:
		return err
	}
}

// piece is what a body is sent by.
type piece [32 << 10]byte

var pieces = sync.Pool{New: func() any { return new(piece) }}

// Send writes the body, and closes it. Of an unknown length it is written in chunks, a
// chunk for each read, and closed before the last one: no answer to the whole of it comes sooner.
func Send(to io.Writer, r *http.Request, chunked bool) error {
	closed := false
	defer func() {
		if !closed {
			r.Body.Close()
		}
	}()
	buf := pieces.Get().(*piece)
	defer pieces.Put(buf)
	left := r.ContentLength
	for {
		b, at := buf[:], 0
		if chunked {
			at = len("8000\r\n") // the size goes before what is read
			b = b[:len(b)-2]
		} else {
			b = b[:min(int64(len(b)), left)]
		}
		n, err := r.Body.Read(b[at:])
		if n > 0 {
			out := b[:n]
			if chunked {
				out = chunk(buf, at, n)
			}
			if _, werr := to.Write(out); werr != nil {
				return werr
			}
			left -= int64(n)
		}
		switch {
		case err == nil && (chunked || left > 0):
		case err != nil && err != io.EOF:
			return &BodyError{err}
		case chunked:
			closed = true
			r.Body.Close()
			_, err := to.Write(last(r))
			return err
		case left > 0:
			return &BodyError{io.ErrUnexpectedEOF}
		case err == nil:
			if err := ended(r.Body, buf[:]); err != nil {
				return &BodyError{err}
			}
			return nil
		default:
			return nil
		}
	}
}

// BodyError says that the request's body could not be read.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "reading the request's body: " + e.Err.Error() }

// Unwrap returns why.
func (e *BodyError) Unwrap() error { return e.Err }

// chunk puts n bytes that stand at a place into a frame, within the buffer.
func chunk(buf *piece, at, n int) []byte {
	size := strconv.FormatInt(int64(n), 16) + "\r\n"
	begin := at - len(size)
	copy(buf[begin:], size)
	copy(buf[at+n:], "\r\n")
	return buf[begin : at+n+2]
}

// last is the last chunk and the trailers.
func last(r *http.Request) []byte {
	b := []byte("0\r\n")
	for _, name := range trailerNames(r) {
		for _, v := range r.Trailer[name] {
			b = field(b, name, v)
		}
	}
	return append(b, "\r\n"...)
}
