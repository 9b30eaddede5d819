package http1

import "strings"

// framing is what the fields of a head say about where the message ends and
// whom it is for.
type framing struct {
	minor   int
	hosts   int
	length  string // Content-Length as it came
	codings int    // Transfer-Encoding lines
	last    string // the last transfer coding
	chunked int    // how often chunked was named
	unknown bool   // another coding was named
	empty   bool   // an item of the list was empty
}

// addCoding takes note of one Transfer-Encoding line. Several count as one list.
func (f *framing) addCoding(val string) {
	f.codings++
	if fold(val, "chunked") {
		f.last = "chunked"
		f.chunked++
		return
	}
	for more := true; more; {
		var item string
		item, val, more = strings.Cut(val, ",")
		item = TrimValue(item)
		f.last = item
		f.empty = f.empty || item == ""
		if fold(item, "chunked") {
			f.chunked++
		} else {
			f.unknown = true
		}
	}
}

// frame settles the body's length (RFC 9112, section 6.3).
func (p *Head) frame(f *framing, r *reader) error {
	if f.codings == 0 {
		return nil
	}
	switch {
	case f.minor == 0 && r.lenient.OldChunked:
		p.Close = true
		return nil
	case f.minor == 0:
		return errOldChunked
	case !fold(f.last, "chunked") || f.chunked > 1:
		return errCoding
	case f.empty:
		return errNoCoding
	case f.unknown:
		return errUnknown
	case p.HasLength && !r.lenient.LengthAndChunked:
		return errBoth
	}
	if p.HasLength {
		p.Close = true
		delete(r.h, "Content-Length")
	}
	p.HasLength, p.Length = false, Chunked
	return nil
}

// parseLength reads a Content-Length: digits only, at most 2⁶³−1.
func parseLength(s string) (int64, bool) {
	if s == "" {
		return 0, false
	}
	const most = 1<<63 - 1
	var n uint64
	for i := range len(s) {
		if !is(s[i], digitChar) || n > most/10 {
			return 0, false
		}
		if n = n*10 + uint64(s[i]-'0'); n > most {
			return 0, false
		}
	}
	return int64(n), true
}
