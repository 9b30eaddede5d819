package serve

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/internal/reply"
)

// span is a part of the bytes to be written.
type span struct{ from, to int }

// facts are what decides the rest of a head, read off the handler's fields when
// it decided the status. The spans say where the fields stand that may have to
// be taken out again.
type facts struct {
	length, coding, kind, connection  span // Content-Length, Transfer-Encoding, Content-Type, Connection
	hasLength, hasKind, hasConnection bool
	codingIs                          string
	connectionIs                      string
	encoded                           bool // there is a Content-Encoding
	date                              bool
	trailers                          bool
	announced                         []string // names of trailers to come
}

// mostTold bounds the room that an answer's map has at once.
const mostTold = 32

// startHead writes the status line and the handler's fields, sorted by name.
func (w *response) startHead() {
	k := w.c.k
	k.out = reply.AppendStatus(k.out, w.is11, w.status)
	if len(w.header) == 0 {
		return
	}
	for _, f := range k.sorted(w.header) {
		w.field(f.Name, f.Values)
	}
	k.told = uint8(min(len(k.sorting), mostTold))
	clear(k.sorting) // nothing of the answer is kept
}

// sorted returns the fields in order, in memory that is used again.
func (k *buffers) sorted(fields http.Header) []reply.Field {
	k.sorting = reply.Sorted(k.sorting, fields)
	return k.sorting
}

// field writes one field and notes what follows from it.
func (w *response) field(name string, values []string) {
	k := w.c.k
	f := &k.facts
	if strings.HasPrefix(name, http.TrailerPrefix) {
		f.trailers = true
		return
	}
	from := len(k.out)
	k.out = w.c.e.lines.Append(k.out, name, values)
	at := span{from, len(k.out)}
	switch name {
	case "Content-Length":
		f.hasLength, f.length = true, at
		w.length(first(values))
	case "Transfer-Encoding":
		f.coding, f.codingIs = at, first(values)
	case "Content-Type":
		f.hasKind, f.kind = true, at
	case "Connection":
		f.hasConnection, f.connection, f.connectionIs = true, at, strings.Join(values, ",")
	case "Content-Encoding":
		f.encoded = first(values) != ""
	case "Date":
		f.date = true // also if there are no values: that suppresses it
	case "Trailer":
		for _, v := range values {
			f.trailers = true
			w.declare(v)
		}
	}
}

// length reads the Content-Length that the handler set.
func (w *response) length(v string) {
	if v == "" {
		return
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		w.c.e.s.logf("http: invalid Content-Length of %q", v)
		if !w.done.Load() { // else the map is the handler's, who may have kept it
			w.header.Del("Content-Length")
		}
		return
	}
	w.declared = n
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// declare notes a list of trailers to come.
func (w *response) declare(list string) {
	for name := range strings.SplitSeq(list, ",") {
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if name != "" && http1.TrailerAllowed(name) {
			w.c.k.facts.announced = append(w.c.k.facts.announced, name)
		}
	}
}

// writeTrailers writes the trailers that the handler has set.
func (w *response) writeTrailers() {
	k := w.c.k
	var at http.Header // most answers have none
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			if at == nil {
				at = http.Header{}
			}
			at[name] = values
		}
	}
	for _, name := range w.c.k.facts.announced {
		if at == nil {
			at = http.Header{}
		}
		for _, v := range w.header[name] {
			at.Add(name, v)
		}
	}
	for _, f := range k.sorted(at) {
		k.out = reply.AppendField(k.out, f.Name, f.Values)
	}
}

// inform sends an informational answer with the fields set so far, but not to a client of
// HTTP/1.0 (RFC 9110, section 15.2).
func (w *response) inform(status int) {
	if !w.is11 {
		return
	}
	if w.hasBody { // whose reader may be about to ask for it, as that of a proxy's transport
		w.x.body.asking.Lock()
		defer w.x.body.asking.Unlock()
	}
	k := w.c.k
	k.out = reply.AppendStatus(k.out, w.is11, status)
	for _, f := range k.sorted(w.header) {
		if f.Name != "Content-Length" && f.Name != "Transfer-Encoding" {
			k.out = reply.AppendField(k.out, f.Name, f.Values)
		}
	}
	k.out = append(k.out, "\r\n"...)
	w.c.flush()
}

// finishHead decides how the body is framed and whether the connection is kept,
// and writes the rest of the head. p is the body's first piece, the whole of it
// if the handler has returned.
//
// The order of decisions is that of net/http, whose answers these must equal.
func (w *response) finishHead(p []byte) {
	w.c.reclaim()
	w.sent = true
	f := &w.c.k.facts
	keep := w.c.e.s.keepAlive()
	allowed := bodyAllowed(w.status)
	var add extra
	if w.done.Load() && !f.trailers && f.codingIs == "" && allowed && !f.hasLength && (!w.isHead || len(p) > 0) {
		w.declared = int64(len(p))
		add.length = true
	}
	add.connection = w.decideClose(keep, allowed)
	if w.hasBody && !w.close && !w.duplex && w.disposeBody() {
		add.connection = "close"
		w.cut(&f.connection)
	}
	if allowed {
		if !f.encoded && f.codingIs == "" && len(p) > 0 && !f.hasKind {
			add.kind = http.DetectContentType(p)
		}
	} else {
		w.cut(&f.length)
		if w.status == http.StatusNotModified {
			w.cut(&f.kind)
		}
	}
	add.chunked = w.frame()
	if w.close && (!keep || !http1.Token(f.connectionIs, "close")) && !w.switches() {
		w.cut(&f.connection)
		add.connection = ""
		if w.is11 {
			add.connection = "close"
		}
	}
	w.append(&add)
}

// extra is what the server adds to a head.
type extra struct {
	length     bool
	kind       string
	connection string
	chunked    bool
}

// decideClose decides whether the connection ends after the answer, and what the
// answer says of it.
func (w *response) decideClose(keep, allowed bool) (connection string) {
	f := &w.c.k.facts
	if w.wants10 && keep && f.hasLength && f.connectionIs == "keep-alive" {
		w.close = false
	}
	if w.wants10 && (w.isHead || w.declared != -1 || !allowed) {
		if !f.hasConnection {
			connection = "keep-alive"
		}
	} else if !w.is11 || w.wantsClose {
		w.close = true
	}
	if http1.Token(f.connectionIs, "close") || !keep {
		w.close = true
	}
	if w.hasBody && w.x.body.promised && w.c.unread.Load() {
		w.close = true
	}
	return connection
}

// disposeBody reads what the handler left of the request's body, and reports
// whether that is too much.
func (w *response) disposeBody() bool {
	switch w.x.body.drain(w.c.e.limits.drain) {
	case drainedNot:
		w.close = true
		return true
	case drainedBad:
		w.close = true
	}
	return false
}

// frame decides how the client finds the body's end, and reports whether by
// chunks.
func (w *response) frame() (chunked bool) {
	f := &w.c.k.facts
	sized := w.declared != -1
	if sized && f.codingIs != "" && f.codingIs != "identity" {
		w.c.e.s.logf("http: WriteHeader called with both Transfer-Encoding of %q and a Content-Length of %d", f.codingIs, w.declared)
		w.cut(&f.length)
		sized = false // though the handler is held to the length
	}
	switch {
	case w.isHead || !bodyAllowed(w.status) || sized:
		w.cut(&f.coding)
	case !w.is11:
		w.close = true
		w.cut(&f.coding)
	case f.codingIs == "identity":
		w.close = true
		w.cut(&f.coding)
	default:
		w.chunked = true
		if f.codingIs == "chunked" {
			w.cut(&f.coding)
		}
		w.cut(&f.length)
	}
	return w.chunked
}

// switches reports whether the answer is a switch of protocols, whose
// Connection field is the handler's.
func (w *response) switches() bool {
	return w.status == http.StatusSwitchingProtocols && http1.Token(w.c.k.facts.connectionIs, "upgrade")
}

// cut takes a field out of the head again.
func (w *response) cut(s *span) {
	n := s.to - s.from
	if n == 0 {
		return
	}
	k := w.c.k
	k.out = append(k.out[:s.from], k.out[s.to:]...)
	at := s.to
	s.to = s.from
	k.facts.shift(at, n)
}

// shift notes that n of the bytes before at were taken out.
func (f *facts) shift(at, n int) {
	for _, s := range []*span{&f.length, &f.coding, &f.kind, &f.connection} {
		if s.from >= at {
			s.from -= n
			s.to -= n
		}
	}
}

// append writes what the server adds to the head, and the head's end.
func (w *response) append(add *extra) {
	k := w.c.k
	if !w.c.k.facts.date {
		k.out = append(k.out, *w.c.e.clock.date.Load()...)
	}
	if add.length {
		k.out = append(k.out, "Content-Length: "...)
		k.out = append(strconv.AppendInt(k.out, w.declared, 10), "\r\n"...)
	}
	if add.kind != "" {
		k.out = append(append(append(k.out, "Content-Type: "...), add.kind...), "\r\n"...)
	}
	if add.connection != "" {
		k.out = append(append(append(k.out, "Connection: "...), add.connection...), "\r\n"...)
	}
	if add.chunked {
		k.out = append(k.out, "Transfer-Encoding: chunked\r\n"...)
	}
	k.out = append(k.out, "\r\n"...)
}
