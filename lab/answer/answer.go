// Package answer asks a server for a target once, as a load does, and checks what it answers.
package answer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/unit"
)

// Within bounds one request.
const Within = 10 * time.Second

// ReadyWithin bounds the time from fork to the first correct answer: a server that swallows
// a request while it starts is asked again.
const ReadyWithin = 2 * Within

// ReadyFor bounds the same by where a program listens, as study.Service says it: one that
// knows nothing of tare may take its time, as those in Java do.
func ReadyFor(listen string) time.Duration {
	if listen != "" {
		return 3 * ReadyWithin
	}
	return ReadyWithin
}

// Answer is what is known of one answer.
type Answer struct {
	Status int
	Header http.Header // nil: not known
	Length int64       // of the body, in bytes
	SHA256 string      // of the body
	Body   []byte      // nil: not known
}

// Check holds an answer against what the workload asks, with a message that
// shows both.
func Check(v study.Verify, a Answer) error {
	want := v.Status
	if want == 0 {
		want = http.StatusOK
	}
	if a.Status != want {
		return fmt.Errorf("status %d, want %d", a.Status, want)
	}
	if v.Length != nil && a.Length != *v.Length {
		return fmt.Errorf("body of %s, want %d", unit.Plural(a.Length, "byte"), *v.Length)
	}
	if v.SHA256 != "" && !strings.EqualFold(a.SHA256, v.SHA256) {
		return fmt.Errorf("body of %s with SHA-256 %s, want %s", unit.Plural(a.Length, "byte"), a.SHA256, v.SHA256)
	}
	if a.Body != nil && !bytes.Contains(a.Body, []byte(v.Contains)) {
		return fmt.Errorf("body %.80q does not contain %q", a.Body, v.Contains)
	}
	for name, value := range v.Header {
		if a.Header != nil && !slices.Contains(a.Header.Values(name), value) {
			return fmt.Errorf("header %s is %q, want %q", name, a.Header.Values(name), value)
		}
	}
	return nil
}

// mostShown is how many bytes of a body a difference shows.
const mostShown = 40

// Difference says in what an answer differs from another one to the same request: status,
// kind of content, or body, of which it shows where the two part. It is "" if they agree in
// these.
func (a Answer) Difference(from Answer) string {
	if a.Status != from.Status {
		return fmt.Sprintf("status %d, not %d", a.Status, from.Status)
	}
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		if got, want := a.Header.Get(name), from.Header.Get(name); got != want {
			return fmt.Sprintf("%s %q, not %q", name, got, want)
		}
	}
	if a.SHA256 == from.SHA256 {
		return ""
	}
	at, most := 0, min(len(a.Body), len(from.Body))
	for at < most && a.Body[at] == from.Body[at] {
		at++
	}
	text := unit.Plural(a.Length, "byte")
	if a.Length != from.Length {
		text += fmt.Sprintf(", not %d", from.Length)
	}
	if at == len(a.Body) && at == len(from.Body) {
		return text // they part behind what is known
	}
	return fmt.Sprintf("%s: from byte %d on %s, not %s", text, at+1, beginning(a.Body[at:]), beginning(from.Body[at:]))
}

// beginning quotes the first bytes of a body.
func beginning(body []byte) string {
	if len(body) > mostShown {
		return fmt.Sprintf("%q…", body[:mostShown])
	}
	return fmt.Sprintf("%q", body)
}

// Ask sends one request on a connection of its own and checks the answer.
func Ask(ctx context.Context, base string, g study.Target) error {
	a, err := Fetch(ctx, base, g)
	if err != nil {
		return err
	}
	return Check(g.Verify, a)
}

// Fetch sends one request on a connection of its own and returns the answer.
func Fetch(ctx context.Context, base string, g study.Target) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Within, fmt.Errorf("no whole answer within %v", Within))
	defer cancel()
	req, err := NewRequest(ctx, base, g)
	if err != nil {
		return Answer{}, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20, TLSClientConfig: TLS(base)}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return Answer{}, cmp.Or(context.Cause(ctx), err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return Answer{}, fmt.Errorf("reading the answer: %w", cmp.Or(context.Cause(ctx), err))
	}
	if res.StatusCode == http.StatusBadRequest && req.URL.Scheme == "http" && shakesHands(ctx, base) {
		return Answer{}, errors.New("it speaks TLS, and was asked without: ask https")
	}
	return New(res, body), nil
}

// shakesHands reports whether what listens at an http URL speaks TLS. Such servers answer
// 400 to a request in clear text.
func shakesHands(ctx context.Context, base string) bool {
	addr := strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/")
	c, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", addr) // nothing is sent
	if err == nil {
		c.Close()
	}
	return err == nil
}

// TLS is how an arm is asked by https. Nobody but this machine answers at its loopback
// addresses, so what listens there may show any certificate. Other hosts' are verified, as
// nil asks for.
func TLS(base string) *tls.Config {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback() {
		return nil
	}
	return &tls.Config{InsecureSkipVerify: true}
}

// FetchTwice returns the first of two answers, and whether the second had the same status
// and body.
func FetchTwice(ctx context.Context, base string, g study.Target) (first Answer, stable bool, err error) {
	if first, err = Fetch(ctx, base, g); err != nil {
		return first, false, err
	}
	again, err := Fetch(ctx, base, g)
	return first, first.Status == again.Status && first.SHA256 == again.SHA256, err
}

// NewRequest is the target's, as the load makes it.
func NewRequest(ctx context.Context, base string, g study.Target) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, cmp.Or(g.Method, http.MethodGet), base+g.Path, strings.NewReader(g.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range g.Header {
		if strings.EqualFold(name, "Host") {
			req.Host = value // net/http sends no Host of the header's
		} else {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// New describes a response whose body was read.
func New(res *http.Response, body []byte) Answer {
	sum := sha256.Sum256(body)
	header := res.Header
	if len(res.TransferEncoding) > 0 { // net/http takes the field away, which the load sees
		header = header.Clone()
		header["Transfer-Encoding"] = res.TransferEncoding
	}
	return Answer{
		Status: res.StatusCode, Header: header, Body: body,
		Length: int64(len(body)), SHA256: hex.EncodeToString(sum[:]),
	}
}
