package load

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tarehq/tare/load/internal/alias"
	"github.com/tarehq/tare/load/internal/block"
	"github.com/tarehq/tare/load/internal/check"
	"github.com/tarehq/tare/load/internal/dial"
	"github.com/tarehq/tare/load/internal/http1"
	"github.com/tarehq/tare/load/internal/proxy"
	"github.com/tarehq/tare/load/internal/template"
)

// maxWeight bounds a target's weight.
const maxWeight = 1 << 20

// message is an encoded HTTP/1.1 request: whole when nothing in it varies, but
// for a long body, which is sent from where it is.
type message struct {
	fixed []byte            // nil when there are fields to fill
	tail  []byte            // to be sent after the rest
	head  template.Template // up to the value of Content-Length, or whole without a body
	body  template.Template
	sized bool // Content-Length's value, the empty line and the body follow head
}

// encode lays b out as an HTTP/1.1 request.
func (b *blueprint) encode(closing bool) message {
	parts := []template.Template{
		template.Literal(b.method + " " + b.origin), b.path, template.Literal(" HTTP/1.1\r\nHost: "), b.host, template.Literal("\r\n"),
	}
	for _, h := range b.header {
		parts = append(parts, template.Literal(h.name+": "), h.value, template.Literal("\r\n"))
	}
	if closing {
		parts = append(parts, template.Literal("Connection: close\r\n"))
	}
	m := message{body: b.body, tail: b.tail, sized: b.carriesLength()}
	if m.sized {
		parts = append(parts, template.Literal("Content-Length: "))
	} else {
		parts = append(parts, template.Literal("\r\n"))
	}
	m.head = template.Join(parts...)
	if !m.head.Dynamic() && !m.body.Dynamic() {
		m.fixed = m.appendTo([]byte{}, nil)
	}
	return m
}

// carriesLength reports whether the request states its body's length, which
// RFC 9110 asks of methods that expect a body even when there is none.
func (b *blueprint) carriesLength() bool {
	switch b.method {
	case "POST", "PUT", "PATCH":
		return true
	}
	return len(b.body) > 0 || len(b.tail) > 0
}

// appendTo appends the request without its tail.
func (m *message) appendTo(dst []byte, record []string) []byte {
	dst = m.head.AppendTo(dst, record)
	if m.sized {
		dst = strconv.AppendInt(dst, int64(m.body.Size(record)+len(m.tail)), 10)
		dst = append(dst, "\r\n\r\n"...)
		dst = m.body.AppendTo(dst, record)
	}
	return dst
}

// script is the compiled targets: what a run asks for, in which proportions.
// It is safe for concurrent use; its cursors are not.
type script struct {
	endpoints []dial.Endpoint
	targets   []*blueprint
	verify    []check.Check  // by target
	answers   []http1.Target // to the targets
	https     bool
	proxy     *proxy.Proxy // nil: none

	alias   alias.Table
	records [][]string    // the feeder's
	fed     atomic.Uint64 // records handed out
	share   float64       // of requests that go on a connection of their own
	seed    uint64
}

// newScript compiles o's targets.
func newScript(o *Options) (*script, error) {
	if len(o.Targets) == 0 {
		return nil, errors.New("checking options: no target: want at least one URL")
	}
	if !(o.NewConnections >= 0 && o.NewConnections <= 1) {
		return nil, fmt.Errorf("checking options: a share of new connections of %v is outside 0 to 1", o.NewConnections)
	}
	s := &script{share: o.NewConnections, seed: max(o.Seed, 1)}
	if o.Feeder != nil {
		s.records = o.Feeder.table.Records
	}
	if o.Proxy != "" {
		var err error
		if s.proxy, err = proxy.Parse(o.Proxy); err != nil {
			return nil, fmt.Errorf("checking options: proxy %q: %w", Shown(AbsoluteURL(o.Proxy)), err)
		}
	}
	weights := make([]int, len(o.Targets))
	known := map[dial.Endpoint]int{}
	for i := range o.Targets {
		t := &o.Targets[i]
		b, e, err := compileTarget(t, s.proxy, o)
		if err != nil {
			return nil, targetError(o, i, err)
		}
		if i == 0 {
			s.https = e.TLS
		} else if s.https != e.TLS {
			return nil, targetError(o, i, fmt.Errorf("scheme %q differs from the first target's: all share one", b.scheme))
		}
		n, ok := known[e]
		if !ok {
			n = len(s.endpoints)
			known[e], s.endpoints = n, append(s.endpoints, e)
		}
		b.endpoint, weights[i] = n, b.weight
		s.targets = append(s.targets, b)
		c, err := compileVerify(&t.Verify, b.head)
		if err != nil {
			return nil, targetError(o, i, err)
		}
		s.verify = append(s.verify, c)
	}
	for i := range s.verify {
		s.answers = append(s.answers, http1.Target{Bodiless: s.targets[i].head, Check: &s.verify[i]})
	}
	s.alias = alias.New(weights)
	return s, nil
}

// targetError names the target that err is about.
func targetError(o *Options, i int, err error) error {
	shown := Shown(o.Targets[i].URL)
	if at := o.Targets[i].Source; at != "" {
		return fmt.Errorf("%s: target %q: %w", at, shown, err)
	}
	if len(o.Targets) == 1 {
		return fmt.Errorf("target %q: %w", shown, err)
	}
	return fmt.Errorf("target %d, %q: %w", i+1, shown, err)
}

// cursor is one worker's way through a script. What it draws depends on the
// seed and the worker's number only; the feeder's records are shared out among
// the workers in the order in which they ask.
type cursor struct {
	s   *script
	rng *rand.Rand
}

// expectsStatus reports whether a target says which status is right.
func (s *script) expectsStatus() bool {
	return slices.ContainsFunc(s.verify, func(c check.Check) bool { return c.Status != 0 })
}

// parser is one for the answers, of up to limit bytes each.
func (s *script) parser(limit int64) *http1.Parser { return http1.NewParser(s.answers, limit) }

func (s *script) cursor(worker int) *cursor {
	return &cursor{s: s, rng: rand.New(rand.NewPCG(s.seed, uint64(worker)))}
}

// next is the coming request, to be sent as head and then tail, and its target's
// index. Both are the script's own, not to be written to, but for a head with
// fields to fill: that is in *buf, which grows as need be, until the next call.
func (c *cursor) next(buf *[]byte) (head, tail []byte, target int) {
	target = c.pick()
	m := &c.s.targets[target].plain
	return c.s.encoded(m, buf), m.tail, target
}

// nextClosing is next with a request that asks the server to close the
// connection after its answer, which keeps the waiting state of a closed
// connection, and with it the local port, off the client.
func (c *cursor) nextClosing(buf *[]byte) (head, tail []byte, target int) {
	target = c.pick()
	m := &c.s.targets[target].closing
	return c.s.encoded(m, buf), m.tail, target
}

// closing draws whether the coming request goes on a connection of its own.
func (c *cursor) closing() bool {
	switch share := c.s.share; share {
	case 0:
		return false
	case 1:
		return true
	default:
		return c.rng.Float64() < share
	}
}

func (c *cursor) pick() int {
	if len(c.s.targets) == 1 {
		return 0
	}
	return c.s.alias.Pick(c.rng)
}

func (s *script) encoded(m *message, buf *[]byte) []byte {
	if m.fixed != nil {
		return m.fixed
	}
	*buf = m.appendTo((*buf)[:0], s.record())
	return *buf
}

// record is the feeder's next, from the first again after the last.
func (s *script) record() []string {
	i := s.fed.Add(1) - 1
	return s.records[i%uint64(len(s.records))]
}

// draw is the coming request's target and the record that fills its fields, if it has any.
func (c *cursor) draw() (target int, record []string) {
	target = c.pick()
	if c.s.targets[target].dynamic() {
		record = c.s.record()
	}
	return target, record
}

// blocks are the requests as HTTP/2's header blocks.
func (s *script) blocks() *block.Blocks {
	all := make([][]block.Field, len(s.targets))
	for i, b := range s.targets {
		all[i] = b.fields()
	}
	return block.New(all)
}

// fields are those of b's requests (RFC 9113, section 8.3.1).
func (b *blueprint) fields() []block.Field {
	all := []block.Field{
		{Name: ":method", Value: template.Literal(b.method)}, {Name: ":scheme", Value: template.Literal(b.scheme)},
		{Name: ":authority", Value: b.host}, {Name: ":path", Value: b.path},
	}
	for _, h := range b.header {
		all = append(all, block.Field{Name: strings.ToLower(h.name), Value: h.value})
	}
	if b.carriesLength() {
		size := block.Field{Name: "content-length", Sized: b.body.Dynamic()}
		if !size.Sized {
			size.Value = template.Literal(strconv.Itoa(b.body.Size(nil) + len(b.tail)))
		}
		all = append(all, size)
	}
	return all
}

// request is the coming request in net/http's form, for the engine whose
// protocol is a library's. The caller owns it.
func (c *cursor) request() (req *http.Request, target int) {
	target, rec := c.draw()
	b := c.s.targets[target]
	host := b.host.Fill(rec)
	// Opaque is sent as it is, so the target keeps the user's escapes. What begins
	// with two slashes is taken for a host there, and cut off again.
	opaque := b.path.Fill(rec)
	if strings.HasPrefix(opaque, "//") {
		opaque = "//" + host + opaque
	}
	header := make(http.Header, len(b.header))
	for _, h := range b.header {
		header.Add(h.name, h.value.Fill(rec))
	}
	req = &http.Request{
		Method: b.method,
		URL:    &url.URL{Scheme: b.scheme, Host: host, Opaque: opaque},
		Host:   host,
		Header: header,
	}
	if b.tail != nil {
		req.ContentLength, req.Body = int64(len(b.tail)), bodyReader{bytes.NewReader(b.tail)}
	}
	if len(b.body) > 0 {
		body := b.body.AppendTo(nil, rec)
		req.ContentLength = int64(len(body))
		req.Body = http.NoBody
		if len(body) > 0 {
			req.Body = bodyReader{bytes.NewReader(body)}
		}
	}
	return req, target
}

// bodyReader is a request body that needs no closing.
type bodyReader struct{ *bytes.Reader }

func (bodyReader) Close() error { return nil }
