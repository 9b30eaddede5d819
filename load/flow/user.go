package flow

import (
	"bytes"
	"container/heap"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/flow/script"
)

// user is somebody who takes a flow. Only one goroutine has it at a time; while its user
// thinks, it lies in the heap and none has.
type user struct {
	script.Walk // without a program between sessions
	script.Witness
	jar      http.CookieJar
	began    int64 // when it was to, in the run's nanoseconds
	intended int64 // when the next step is to begin
	waited   int64 // for answers
	reached  bool  // a request of the session found somebody
}

// clock is the heap of users who think, the next to go on first.
type clock []*user

func (c clock) Len() int           { return len(c) }
func (c clock) Less(i, j int) bool { return c[i].intended < c[j].intended }
func (c clock) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *clock) Push(x any) { *c = append(*c, x.(*user)) }

// Pop implements heap.Interface.
func (c *clock) Pop() any {
	last := len(*c) - 1
	u := (*c)[last]
	(*c)[last] = nil
	*c = (*c)[:last]
	return u
}

// due takes the user out who is to go on by now; nil is nobody.
func (c *clock) due(now int64) *user {
	if len(*c) == 0 || (*c)[0].intended > now {
		return nil
	}
	return heap.Pop(c).(*user)
}

// sender sends requests.
type sender struct {
	epoch     time.Time
	transport *http.Transport
	timeout   time.Duration
	redirects int
	cookies   bool
}

// outcome is what became of a request.
type outcome struct {
	status  int   // 0: no whole answer
	kind    kind  // of what went wrong
	err     error // nil: nothing
	untaken bool
	end     int64 // of the answer, in the run's nanoseconds
}

// kind is how a request went wrong.
type kind uint8

const (
	unverified kind = iota // answered
	dropped                // not sent
	refused
	reset
	timedOut
	short
	malformed
)

// count adds an outcome.
func (o *outcome) count(c *load.Counts) {
	c.Scheduled++
	if o.status > 0 {
		c.Status[o.status/100]++
		if o.err != nil {
			c.Unverified++
		}
		return
	}
	switch o.kind {
	case dropped:
		c.Dropped++
	case refused:
		c.Refused++
	case timedOut:
		c.Timeout++
	case short:
		c.Short++
	case malformed:
		c.Malformed++
	default:
		c.Reset++
	}
}

// maxAnswer bounds the bytes of an answer.
const maxAnswer = 64 << 20

var (
	errTooLong      = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	errTooManyHops  = errors.New("more redirects than the file allows")
	errStatusBeyond = errors.New("the status is outside 100 to 599")
)

// buffers hold bodies that are looked at. What is kept of one is bounded by keepBuffer.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keepBuffer = 1 << 20

func (s *sender) now() int64 { return int64(time.Since(s.epoch)) }

// send sends a user's request, reads the answer, checks it and takes the values.
func (s *sender) send(ctx context.Context, u *user, q *script.Request) outcome {
	req, err := q.Build(u.Known)
	if err != nil {
		return outcome{kind: dropped, err: err, end: s.now()}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	client := http.Client{Transport: s.transport, CheckRedirect: s.follow}
	if s.cookies {
		if u.jar == nil {
			u.jar, _ = cookiejar.New(nil) // which gives no error without options
		}
		client.Jar = u.jar
	}
	res, err := client.Do(req.WithContext(ctx))
	if err != nil {
		return outcome{kind: kindOf(err, reset), err: err, end: s.now()}
	}
	defer res.Body.Close()
	body := buffers.Get().(*bytes.Buffer)
	defer func() {
		if body.Cap() <= keepBuffer {
			body.Reset()
			buffers.Put(body)
		}
	}()
	var to io.Writer = io.Discard
	if q.NeedsBody {
		to = body
	}
	n, err := io.Copy(to, io.LimitReader(res.Body, maxAnswer+1))
	o := outcome{end: s.now()}
	switch {
	case err != nil:
		o.kind, o.err = kindOf(err, short), err
		return o
	case n > maxAnswer:
		o.kind, o.err = malformed, errTooLong
		return o
	case res.StatusCode < 100 || res.StatusCode > 599:
		o.kind, o.err = malformed, errStatusBeyond
		return o
	}
	var kept []*http.Cookie
	if u.jar != nil {
		kept = u.jar.Cookies(res.Request.URL)
	}
	o.status, o.err = res.StatusCode, q.Look(res, body.Bytes(), kept, u.Witness)
	o.untaken = errors.Is(o.err, script.ErrUntaken)
	return o
}

// follow decides on a redirect.
func (s *sender) follow(_ *http.Request, via []*http.Request) error {
	switch {
	case s.redirects == 0:
		return http.ErrUseLastResponse
	case len(via) > s.redirects:
		return errTooManyHops
	}
	return nil
}

// kindOf tells how a request went wrong; other is for what has no kind of its own.
func kindOf(err error, other kind) kind {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &cert):
		return refused
	case errors.As(err, &timeout) && timeout.Timeout():
		return timedOut
	case errors.Is(err, errTooManyHops), strings.Contains(err.Error(), "malformed"):
		return malformed
	}
	return other
}
