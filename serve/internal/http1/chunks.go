package http1

import "bytes"

const (
	// maxChunkLine bounds a chunk's size line, its extensions included.
	maxChunkLine = 1024
	// maxChunkDigits bounds its size: 16 hexadecimal digits, leading zeros
	// included, are 64 bits.
	maxChunkDigits = 16
	// freeExtensions is how many bytes of extensions a body may carry, and
	// extensionShare how many bytes of data pay for one byte more. A signature
	// of 80 bytes on every chunk of 8 KiB stays far below.
	freeExtensions = 16 << 10
	extensionShare = 16
)

// Chunks decodes the chunked coding (RFC 9112, section 7.1). The zero value is
// ready for one body. Not safe for concurrent use.
type Chunks struct {
	left       int64 // data of this chunk still to come
	data       int64 // data so far
	extensions int64 // bytes of extensions so far
	state      chunkState
}

type chunkState uint8

const (
	atSize chunkState = iota
	inData
	atDataEnd
	atTrailer
)

// Decode reads from b: n bytes are used up, data is what they held of the body,
// a part of b[:n]. It wants more bytes than b has when n is 0 and done false.
// After the last chunk done is true, and the trailer section follows: any
// number of fields and an empty line. The error is an [*Error].
func (c *Chunks) Decode(b []byte) (n int, data []byte, done bool, err error) {
	for {
		rest := b[n:]
		switch c.state {
		case inData:
			if len(rest) == 0 {
				return n, nil, false, nil
			}
			data = rest[:min(int64(len(rest)), c.left)]
			c.left -= int64(len(data))
			c.data += int64(len(data))
			if c.left == 0 {
				c.state = atDataEnd
			}
			return n + len(data), data, false, nil
		case atDataEnd:
			if len(rest) > 0 && rest[0] != '\r' || len(rest) > 1 && rest[1] != '\n' {
				return n, nil, false, errChunkEnd
			}
			if len(rest) < 2 {
				return n, nil, false, nil
			}
			n += 2
			c.state = atSize
		case atSize:
			used, err := c.size(rest)
			if err != nil || used == 0 {
				return n, nil, false, err
			}
			n += used
		case atTrailer:
			return n, nil, true, nil
		}
	}
}

// Within reports whether data of a chunk is still to come.
func (c *Chunks) Within() bool { return c.state == inData }

// size reads a size line and returns its length, 0 if it is not complete.
func (c *Chunks) size(b []byte) (int, error) {
	end := bytes.IndexByte(b[:min(len(b), maxChunkLine)], '\n')
	if end < 0 {
		if len(b) >= maxChunkLine {
			return 0, errChunkLong
		}
		return 0, nil
	}
	if end == 0 || b[end-1] != '\r' {
		return 0, errLineEnd
	}
	line := b[:end-1]
	digits := 0
	var size uint64
	for digits < len(line) && is(line[digits], hexChar) {
		size = size<<4 | uint64(hexValue(line[digits]))
		if digits++; digits > maxChunkDigits {
			return 0, errChunkSize
		}
	}
	if digits == 0 {
		return 0, errChunkLine
	}
	if size > 1<<63-1 {
		return 0, errChunkSize
	}
	if ext := line[digits:]; len(ext) > 0 {
		if err := c.extension(ext); err != nil {
			return 0, err
		}
	}
	c.left, c.state = int64(size), inData
	if size == 0 {
		c.state = atTrailer
	}
	return end + 1, nil
}

// extension checks and counts what follows a size. Extensions are ignored, as
// RFC 9112, section 7.1.1 wants, but not for ever.
func (c *Chunks) extension(ext []byte) error {
	if !validExtensions(ext) {
		return errChunkLine
	}
	c.extensions += int64(len(ext))
	if c.extensions > freeExtensions+c.data/extensionShare {
		return errExtensions
	}
	return nil
}

// validExtensions reports whether s is a list of extensions, each a semicolon,
// a name, and perhaps a value that is a token or a quoted string.
func validExtensions(s []byte) bool {
	for len(s) > 0 {
		s = bytes.TrimLeft(s, " \t")
		if len(s) == 0 || s[0] != ';' {
			return false
		}
		s = bytes.TrimLeft(s[1:], " \t")
		name := tokenLength(s)
		if name == 0 {
			return false
		}
		s = s[name:]
		value := bytes.TrimLeft(s, " \t")
		if len(value) == 0 || value[0] != '=' {
			continue
		}
		s = bytes.TrimLeft(value[1:], " \t")
		n := tokenLength(s)
		if n == 0 {
			n = quotedLength(s)
		}
		if n == 0 {
			return false
		}
		s = s[n:]
	}
	return true
}

func tokenLength(s []byte) int {
	n := 0
	for n < len(s) && is(s[n], tokenChar) {
		n++
	}
	return n
}

// quotedLength returns the length of the quoted string at the start of s, 0 if
// there is none (RFC 9110, section 5.6.4).
func quotedLength(s []byte) int {
	if len(s) == 0 || s[0] != '"' {
		return 0
	}
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			return i + 1
		case c == '\\':
			if i++; i < len(s) && (s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f) {
				return 0
			}
		case c < ' ' && c != '\t' || c == 0x7f:
			return 0
		}
	}
	return 0
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
