package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits on the parts of an answer that are held in memory or that a server
// could draw out without end.
const (
	maxHead      = 64 << 10 // header blocks, interim answers' included; also the trailer
	maxChunkLine = 4 << 10
)

var (
	errNotHTTP     = errors.New("the answer does not begin with HTTP/1.x")
	errTLS         = errors.New("the answer is TLS, not HTTP: use https://")
	errBareLineEnd = errors.New("a header line ends without a carriage return")
)

// parser reads HTTP/1.x answers as their bytes come in. It belongs to one
// worker, which keeps an answer for each connection.
type parser struct {
	script *script
	limit  int64      // bytes of one answer
	last   []seenHead // by target, from the first again when they are more
}

// seenHeads bounds the header blocks that a parser keeps: there may be thousands
// of targets, and of connections with a parser each.
const seenHeads = 64

// seenHead is the last header block seen for a target and what it said. Servers
// repeat themselves but for the date, so comparing a block with the last one
// mostly takes the place of parsing it: BenchmarkParse shows an eighth of the
// time. All bytes are compared; a new date is parsed once and repeated then.
type seenHead struct {
	target   int
	raw      []byte
	head     head
	verified bool // the header is as the target asks
}

// newParser is a parser for the answers to s's targets.
func newParser(s *script, limit int64) *parser {
	return &parser{script: s, limit: limit, last: make([]seenHead, min(len(s.targets), seenHeads))}
}

// answerState is what an answer's next byte belongs to.
type answerState uint8

const (
	inHead answerState = iota
	inBody
	inSize    // a chunk's size line
	inChunk   // its data
	afterData // the line end behind the data
	inTrailer
	untilClose
	finished
)

// answer is an answer being read. begin makes it ready for the next.
type answer struct {
	status   int
	keep     bool // after it, the connection may carry another request
	verified bool // it is as the target asks
	started  bool // something of it has come

	state  answerState
	checks bool // the body is verified
	target int
	left   int64  // of the body or the chunk
	size   int64  // bytes read so far
	head   int    // bytes of header blocks or trailer so far
	held   []byte // the beginning of a header block or line, from earlier reads
	body   stream
}

// begin makes a ready for the answer to a request for target.
func (a *answer) begin(target int) {
	a.state, a.target, a.started, a.size, a.head, a.held = inHead, target, false, 0, 0, a.held[:0]
}

// feed reads on in b. It consumes all of b unless the answer ends within, or is
// malformed, and keeps no reference to it.
func (p *parser) feed(a *answer, b []byte) (n int, done bool, err error) {
	a.started = a.started || len(b) > 0
	for n < len(b) && a.state != finished {
		m, err := p.step(a, b[n:])
		n += m
		if err != nil {
			return n, false, err
		}
	}
	if a.size += int64(n); a.size > p.limit {
		return n, false, p.tooLong()
	}
	return n, p.finish(a), nil
}

// eof ends the answer with its connection. It reports whether the answer is
// whole.
func (p *parser) eof(a *answer) bool {
	if a.state == untilClose {
		a.state = finished
	}
	return p.finish(a)
}

func (p *parser) tooLong() error {
	return fmt.Errorf("the answer is longer than the %d bytes allowed", p.limit)
}

// finish reports whether the answer is whole, and then verifies its body.
func (p *parser) finish(a *answer) bool {
	if a.state != finished {
		return false
	}
	if a.checks && a.verified {
		a.verified = a.body.ok()
	}
	return true
}

// step reads one part of the answer: a block, a line, or what there is of the
// body. It has a case a state.
func (p *parser) step(a *answer, b []byte) (int, error) {
	switch a.state {
	case inHead:
		return p.readHead(a, b)
	case inBody:
		n := a.data(b)
		if a.left == 0 {
			a.state = finished
		}
		return n, nil
	case untilClose:
		a.left = int64(len(b))
		return a.data(b), nil
	case inChunk:
		n := a.data(b)
		if a.left == 0 {
			a.state = afterData
		}
		return n, nil
	}
	return p.readLine(a, b)
}

// data passes on what of b belongs to the body or chunk.
func (a *answer) data(b []byte) int {
	n := int(min(a.left, int64(len(b))))
	if a.checks {
		a.body.Write(b[:n])
	}
	a.left -= int64(n)
	return n
}

var headEnd = []byte("\r\n\r\n")

// readHead reads a header block, whole or the next part of it.
func (p *parser) readHead(a *answer, b []byte) (int, error) {
	if len(a.held) == 0 {
		t := p.seen(a.target)
		if n := len(t.raw); n > 0 && t.target == a.target && n <= len(b) && string(b[:n]) == string(t.raw) {
			return n, p.accept(a, t.head, t.verified)
		}
		if i := bytes.Index(b, headEnd); i >= 0 {
			return i + len(headEnd), p.parse(a, b[:i+len(headEnd)])
		}
	}
	return p.holdHead(a, b)
}

// holdHead puts together a header block that comes in parts.
func (p *parser) holdHead(a *answer, b []byte) (int, error) {
	old := len(a.held)
	b = b[:min(len(b), maxHead+1-a.head-old)]
	a.held = append(a.held, b...)
	const begins = "HTTP/1."
	if n := min(len(a.held), len(begins)); string(a.held[:n]) != begins[:n] {
		return len(b), notHTTP(a.held)
	}
	from := max(0, old-len(headEnd)+1)
	i := bytes.Index(a.held[from:], headEnd)
	if i < 0 {
		if a.head+len(a.held) > maxHead {
			return len(b), fmt.Errorf("the header is longer than %d bytes", maxHead)
		}
		return len(b), bareLineEnd(a.held[from:])
	}
	end := from + i + len(headEnd)
	err := p.parse(a, a.held[:end])
	a.held = a.held[:0]
	return end - old, err
}

// notHTTP is what is wrong with an answer that begins with b.
func notHTTP(b []byte) error {
	const alert = 0x15 // the type of a TLS record (RFC 8446, section 5.1)
	if b[0] == alert {
		return errTLS
	}
	return errNotHTTP
}

// bareLineEnd refuses a line end without a carriage return at once: waiting
// for the block's end would be waiting for the time-out.
func bareLineEnd(b []byte) error {
	for i, c := range b {
		if c == '\n' && i > 0 && b[i-1] != '\r' {
			return errBareLineEnd
		}
	}
	return nil
}

// parse reads a whole header block and keeps it for comparison.
func (p *parser) parse(a *answer, raw []byte) error {
	if len(raw) < 7 || string(raw[:7]) != "HTTP/1." {
		return errNotHTTP
	}
	h, err := parseHead(raw, p.script.targets[a.target].head)
	if err != nil {
		return err
	}
	if a.head += len(raw); a.head > maxHead {
		return fmt.Errorf("the header is longer than %d bytes", maxHead)
	}
	if h.status < 200 {
		return nil // interim: the answer is yet to come
	}
	verified := p.script.verify[a.target].headOK(h.status, raw)
	if len(raw) <= maxSeen {
		t := p.seen(a.target)
		*t = seenHead{a.target, append(t.raw[:0], raw...), h, verified}
	}
	return p.accept(a, h, verified)
}

// seen is where the last header block for target is kept, or another's that has the
// same place.
func (p *parser) seen(target int) *seenHead { return &p.last[target%len(p.last)] }

// maxSeen bounds the length of a header block that is kept.
const maxSeen = 4 << 10

// accept begins the body that h announces.
func (p *parser) accept(a *answer, h head, verified bool) error {
	a.status, a.keep, a.verified = h.status, h.keep, verified
	check := &p.script.verify[a.target]
	if a.checks = check.needsBody(); a.checks {
		a.body.reset(check)
	}
	a.head, a.left = 0, h.length
	switch {
	case h.framing == framedByChunks:
		a.state = inSize
	case h.framing == framedByClose:
		a.state = untilClose
	case h.length == 0:
		a.state = finished
	case h.length > p.limit:
		return p.tooLong()
	default:
		a.state = inBody
	}
	return nil
}

// readLine reads a line around the chunks, or the next part of it.
func (p *parser) readLine(a *answer, b []byte) (int, error) {
	limit := maxChunkLine
	switch a.state {
	case inTrailer:
		limit = maxHead - a.head
	case afterData:
		limit = len(crlf)
	}
	n := len(b)
	i := bytes.IndexByte(b, '\n')
	if i >= 0 {
		n = i + 1
	}
	if len(a.held)+n > limit {
		if a.state == inTrailer {
			return n, fmt.Errorf("the trailer is longer than %d bytes", maxHead)
		}
		return n, fmt.Errorf("a line of the chunked body is longer than %d bytes", limit)
	}
	line := b[:n]
	if i < 0 || len(a.held) > 0 {
		a.held = append(a.held, line...)
		line = a.held
	}
	if i < 0 {
		return n, nil
	}
	a.held = a.held[:0]
	text, ok := bytes.CutSuffix(line, crlf)
	if !ok {
		return n, errors.New("a line of the chunked body ends without a carriage return")
	}
	return n, p.takeLine(a, text)
}

// takeLine acts on a whole line around the chunks.
func (p *parser) takeLine(a *answer, line []byte) error {
	switch a.state {
	case inSize:
		size, ok := parseChunkSize(line)
		if !ok || !isText(line) {
			return errors.New("a chunk's size is not a hexadecimal number")
		}
		if size > p.limit {
			return p.tooLong()
		}
		a.left, a.state = size, inChunk
		if size == 0 {
			a.state = inTrailer
		}
	case afterData:
		if len(line) > 0 {
			return errors.New("a chunk is longer than its size")
		}
		a.state = inSize
	case inTrailer:
		if len(line) == 0 {
			a.state = finished
			return nil
		}
		if _, _, ok := cutField(line); !ok {
			return errField
		}
		a.head += len(line) + len(crlf)
	}
	return nil
}

// broken is what became of a request whose connection ended or broke before
// the answer was whole.
func (a *answer) broken() failure {
	if a.started {
		return failShort
	}
	return failReset
}

// cause is err, or what stands for it when the connection just ended.
func (a *answer) cause(err error) error {
	if err == nil || err == io.EOF {
		err = errors.New("the server closed the connection")
	}
	if a.started {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return fmt.Errorf("awaiting the answer: %w", err)
}
