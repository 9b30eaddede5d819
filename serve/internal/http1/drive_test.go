package http1_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tarehq/tare/serve/internal/http1"
)

// The verdicts on a stream of requests.
const (
	accept     = "accept"     // every request was read whole
	body       = "body"       // the last one's body is not there yet
	incomplete = "incomplete" // not one head is complete
	reject     = "reject"
)

// An outcome is what a server makes of a stream.
type outcome struct {
	verdict  string
	status   int    // of the refusal
	reason   string // for it, if the reader is ours
	section  string // the head, size line or trailer section that ours refused
	skipped  bool   // ours dropped empty lines before a request
	cut      bool   // the last request's body was not read to its end
	trailer  int    // bytes of the longest trailer section, whole or not
	requests []request
}

// A request is what a handler sees.
type request struct {
	method, target, proto, host, url, body string
	length                                 int64
	fields, trailer                        http.Header
}

func (r request) String() string {
	return fmt.Sprintf("%q %q %q host %q url %q length %d body %q fields %q trailer %q",
		r.method, r.target, r.proto, r.host, r.url, r.length, r.body, r.fields, r.trailer)
}

// A stream feeds bytes to the functions under test as an engine does.
type stream struct {
	in      []byte
	step    int    // bytes a read brings
	section string // what was read last
	trailer int    // bytes of the longest trailer section
	skipped bool
	r, w    int // the buffer is in[r:w]
	o       http1.Options
}

// more brings the next bytes and reports false at the end.
func (s *stream) more() bool {
	if s.w == len(s.in) {
		return false
	}
	s.w = min(s.w+s.step, len(s.in))
	return true
}

// drive reads all requests of in, step bytes at a time.
func drive(in []byte, step int, lenient http1.Lenient) outcome {
	s := &stream{in: in, step: max(step, 1), o: http1.Options{Lenient: lenient}}
	var out outcome
	for {
		head, r, last, err := s.head()
		out.skipped = s.skipped
		if err != nil {
			return out.refused(s, err)
		}
		if head == nil {
			out.verdict = accept
			if len(out.requests) == 0 {
				out.verdict = incomplete
			}
			return out
		}
		if head.Expect == http1.OtherExpect {
			out.verdict, out.status = accept, http.StatusExpectationFailed
			return out // no handler sees it
		}
		whole, err := s.body(head, &r)
		out.trailer = s.trailer
		out.requests = append(out.requests, r)
		out.cut = !whole || err != nil
		if err != nil {
			return out.refused(s, err)
		}
		if !whole {
			out.verdict = body
			return out
		}
		if last {
			out.verdict = accept
			return out
		}
	}
}

func (o outcome) refused(s *stream, err error) outcome {
	var refusal *http1.Error
	if !errors.As(err, &refusal) {
		panic(err)
	}
	o.verdict, o.status, o.reason = reject, refusal.Status, refusal.Reason
	o.section = s.section
	return o
}

// measure measures the next head or trailer section; 0 if the stream ends first, or
// if early refuses what there is of it.
func (s *stream) measure(early func(b []byte, from int, o *http1.Options) error) (int, error) {
	for seen := 0; ; {
		b := s.in[s.r:s.w]
		if n := http1.End(b, seen); n > 0 {
			return n, nil
		}
		if early != nil {
			if err := early(b, seen, &s.o); err != nil {
				s.section = string(b)
				return 0, err
			}
		}
		seen = len(b)
		if !s.more() {
			return 0, nil
		}
	}
}

// head reads one head, nil at the end of the stream. After the last request
// the connection is closed or belongs to another protocol.
func (s *stream) head() (p *http1.Head, r request, last bool, err error) {
	for s.w-s.r < 4 && s.more() {
	}
	if n := http1.Skip(s.in[s.r:s.w]); n > 0 {
		s.r += n
		s.skipped = true
	}
	n, err := s.measure(http1.Early)
	if n == 0 {
		return nil, r, false, err
	}
	text := string(s.in[s.r : s.r+n])
	s.section = text
	s.r += n
	p = new(http1.Head)
	fields := http.Header{}
	if err := p.Parse(text, fields, make([]string, 0, 4), &s.o); err != nil {
		return nil, r, false, err
	}
	if p.Preface {
		return p, request{method: p.Method, target: p.Target, proto: p.Proto, url: "*"}, true, nil
	}
	var u url.URL
	if err := http1.URL(&u, p.Method, p.Target); err != nil {
		return nil, r, false, err
	}
	r = request{method: p.Method, target: p.Target, proto: p.Proto, host: p.Host, url: u.String(), length: p.Length, fields: fields}
	if u.Host != "" {
		r.host = u.Host
	}
	if p.HasTrailer && p.Length == http1.Chunked {
		delete(fields, "Trailer")
	}
	last = p.Close || p.Minor == 0 && !p.KeepAlive || p.Upgrade || p.Method == "CONNECT"
	return p, r, last, nil
}

// body reads the body and reports whether all of it was there.
func (s *stream) body(p *http1.Head, r *request) (whole bool, err error) {
	if p.Length != http1.Chunked {
		for int64(s.w-s.r) < p.Length && s.more() {
		}
		n := min(p.Length, int64(s.w-s.r))
		r.body = string(s.in[s.r : s.r+int(n)])
		s.r += int(n)
		return n == p.Length, nil
	}
	var c http1.Chunks
	var data []byte
	defer func() { r.body = string(data) }()
	for {
		n, part, done, err := c.Decode(s.in[s.r:s.w])
		if err != nil {
			s.section = firstLine(s.in[s.r+n : s.w])
			return false, err
		}
		data = append(data, part...)
		s.r += n
		if done {
			break
		}
		if n == 0 && !s.more() {
			return false, nil
		}
	}
	n, _ := s.measure(nil)
	if n == 0 {
		s.trailer = max(s.trailer, s.w-s.r)
		return false, nil
	}
	s.trailer = max(s.trailer, n)
	r.trailer = http.Header{}
	s.section = string(s.in[s.r : s.r+n])
	err = http1.Fields(s.section, r.trailer, &s.o)
	s.r += n
	return true, err
}

// firstLine returns a line without its end, unless it is nothing else.
func firstLine(b []byte) string {
	line, _, found := bytes.Cut(b, []byte("\n"))
	if found && len(line) == 0 {
		return "\n"
	}
	return strings.TrimSuffix(string(line), "\r")
}

// same reports whether two requests would look the same to a handler.
func same(a, b request) bool {
	return a.method == b.method && a.target == b.target && a.proto == b.proto && a.host == b.host &&
		a.url == b.url && a.body == b.body && a.length == b.length &&
		sameFields(a.fields, b.fields) && sameFields(a.trailer, b.trailer)
}

func sameFields(a, b http.Header) bool {
	if len(a) != len(b) {
		return false
	}
	for name, values := range a {
		if !slices.Equal(values, b[name]) {
			return false
		}
	}
	return true
}

// quote shows an input in a message.
func quote(b []byte) string {
	const most = 600
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return strings.ReplaceAll(fmt.Sprintf("%q", b), `\r\n`, "\\r\\n\n\t")
}
