package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tarehq/tare/load/internal/check"
)

// Limits on the parts of an answer that are held in memory or that a server
// could draw out without end, in bytes.
const (
	MaxHead      = 64 << 10 // header blocks, interim answers' included; also the trailer
	maxChunkLine = 4 << 10
)

var (
	errNotHTTP     = errors.New("the answer does not begin with HTTP/1.x")
	errTLS         = errors.New("the answer is TLS, not HTTP: use https://")
	errBareLineEnd = errors.New("a header line ends without a carriage return")
)

// Target is what has to be known of a request to read its answer.
type Target struct {
	Bodiless bool // the answer has no body whatever its head says, as one to HEAD
	Check    *check.Check
}

// Parser reads HTTP/1.x answers as their bytes come in. It belongs to one
// worker, which keeps an Answer for each connection.
type Parser struct {
	targets []Target
	limit   int64      // bytes of one answer
	last    []seenHead // by target, from the first again when they are more
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
	head     Head
	verified bool // the header is as the target asks
}

// NewParser is a parser for answers to the targets, of up to limit bytes each.
func NewParser(targets []Target, limit int64) *Parser {
	return &Parser{targets: targets, limit: limit, last: make([]seenHead, min(len(targets), seenHeads))}
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

// Answer is an answer being read. Begin makes it ready for the next.
type Answer struct {
	Status   int
	Keep     bool // after it, the connection may carry another request
	Verified bool // it is as the target asks
	Started  bool // something of it has come

	state  answerState
	checks bool // the body is verified
	target int
	left   int64  // of the body or the chunk
	size   int64  // bytes read so far
	head   int    // bytes of header blocks or trailer so far
	held   []byte // the beginning of a header block or line, from earlier reads
	body   check.Stream
}

// Begin makes a ready for the answer to a request for target.
func (a *Answer) Begin(target int) {
	a.state, a.target, a.Started, a.size, a.head, a.held = inHead, target, false, 0, 0, a.held[:0]
}

// Feed reads on in b. It consumes all of b unless the answer ends within, or is
// malformed, and keeps no reference to it.
func (p *Parser) Feed(a *Answer, b []byte) (n int, done bool, err error) {
	a.Started = a.Started || len(b) > 0
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

// EOF ends the answer with its connection. It reports whether the answer is
// whole.
func (p *Parser) EOF(a *Answer) bool {
	if a.state == untilClose {
		a.state = finished
	}
	return p.finish(a)
}

func (p *Parser) tooLong() error {
	return fmt.Errorf("the answer is longer than the %d bytes allowed", p.limit)
}

// finish reports whether the answer is whole, and then verifies its body.
func (p *Parser) finish(a *Answer) bool {
	if a.state != finished {
		return false
	}
	if a.checks && a.Verified {
		a.Verified = a.body.OK()
	}
	return true
}

// step reads one part of the answer: a block, a line, or what there is of the
// body. It has a case a state.
func (p *Parser) step(a *Answer, b []byte) (int, error) {
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
func (a *Answer) data(b []byte) int {
	n := int(min(a.left, int64(len(b))))
	if a.checks {
		a.body.Write(b[:n])
	}
	a.left -= int64(n)
	return n
}

var headEnd = []byte("\r\n\r\n")

// readHead reads a header block, whole or the next part of it.
func (p *Parser) readHead(a *Answer, b []byte) (int, error) {
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
func (p *Parser) holdHead(a *Answer, b []byte) (int, error) {
	old := len(a.held)
	b = b[:min(len(b), MaxHead+1-a.head-old)]
	a.held = append(a.held, b...)
	const begins = "HTTP/1."
	if n := min(len(a.held), len(begins)); string(a.held[:n]) != begins[:n] {
		return len(b), notHTTP(a.held)
	}
	from := max(0, old-len(headEnd)+1)
	i := bytes.Index(a.held[from:], headEnd)
	if i < 0 {
		if a.head+len(a.held) > MaxHead {
			return len(b), fmt.Errorf("the header is longer than %d bytes", MaxHead)
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
func (p *Parser) parse(a *Answer, raw []byte) error {
	if len(raw) < 7 || string(raw[:7]) != "HTTP/1." {
		return errNotHTTP
	}
	h, err := Parse(raw, p.targets[a.target].Bodiless)
	if err != nil {
		return err
	}
	if a.head += len(raw); a.head > MaxHead {
		return fmt.Errorf("the header is longer than %d bytes", MaxHead)
	}
	if h.Status < 200 {
		return nil // interim: the answer is yet to come
	}
	verified := p.targets[a.target].Check.HeadOK(h.Status, raw)
	if len(raw) <= maxSeen {
		t := p.seen(a.target)
		*t = seenHead{a.target, append(t.raw[:0], raw...), h, verified}
	}
	return p.accept(a, h, verified)
}

// seen is where the last header block for target is kept, or another's that has the
// same place.
func (p *Parser) seen(target int) *seenHead { return &p.last[target%len(p.last)] }

// maxSeen bounds the length of a header block that is kept.
const maxSeen = 4 << 10

// accept begins the body that h announces.
func (p *Parser) accept(a *Answer, h Head, verified bool) error {
	a.Status, a.Keep, a.Verified = h.Status, h.Keep, verified
	c := p.targets[a.target].Check
	if a.checks = c.NeedsBody(); a.checks {
		a.body.Reset(c)
	}
	a.head, a.left = 0, h.Length
	switch {
	case h.Framing == ByChunks:
		a.state = inSize
	case h.Framing == ByClose:
		a.state = untilClose
	case h.Length == 0:
		a.state = finished
	case h.Length > p.limit:
		return p.tooLong()
	default:
		a.state = inBody
	}
	return nil
}

// readLine reads a line around the chunks, or the next part of it.
func (p *Parser) readLine(a *Answer, b []byte) (int, error) {
	limit := maxChunkLine
	switch a.state {
	case inTrailer:
		limit = MaxHead - a.head
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
			return n, fmt.Errorf("the trailer is longer than %d bytes", MaxHead)
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
func (p *Parser) takeLine(a *Answer, line []byte) error {
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
			return ErrField
		}
		a.head += len(line) + len(crlf)
	}
	return nil
}

// Cause is err, or what stands for it when the connection just ended.
func (a *Answer) Cause(err error) error {
	if err == nil || err == io.EOF {
		err = errors.New("the server closed the connection")
	}
	if a.Started {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return fmt.Errorf("awaiting the answer: %w", err)
}
