package compat

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// patience is how long something may take that takes no time where it works.
	patience = 2 * time.Second
	// limit is when a request counts as hung.
	limit = 4 * time.Second
	// pulse is the path that every probe's server answers itself.
	pulse = "/compat/pulse"
)

// Trial is one execution of a probe on a server. It belongs to one goroutine.
type Trial struct {
	server   Server
	findings []Finding
	url      string // of the server, once it serves
	addr     string
	client   *http.Client
	cleanups []func()
}

// gaveUp ends a trial that cannot go on.
type gaveUp struct{}

// Run runs one trial of the probe on a server and returns what it found. It does
// not stop the server that it starts, which ends with the process.
func (p Probe) Run(s Server) []Finding {
	t := &Trial{server: s, client: &http.Client{
		Timeout:       limit,
		Transport:     &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	defer t.client.CloseIdleConnections()
	t.guard(p.run)
	for _, f := range t.cleanups {
		f()
	}
	t.guard((*Trial).alive)
	return t.findings
}

// guard runs a part of a trial, which may give up.
func (t *Trial) guard(part func(*Trial)) {
	defer func() {
		if v := recover(); v != nil && v != (gaveUp{}) {
			panic(v)
		}
	}()
	part(t)
}

// alive asks whether the server still serves after what the probe did to it.
func (t *Trial) alive() {
	if t.url == "" {
		return
	}
	c := &http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Get(t.url + pulse)
	if err != nil {
		t.breaks("afterwards the server does not answer: %s", reason(err))
		return
	}
	res.Body.Close()
	t.must(res.StatusCode == http.StatusNoContent, "afterwards the server answers %d", res.StatusCode)
}

// serve starts the server with h.
func (t *Trial) serve(h http.Handler) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err) // no fault of the server's
	}
	t.addr = l.Addr().String()
	t.url = "http://" + t.addr
	go t.server.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pulse {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.ServeHTTP(w, r)
	}))
}

func (t *Trial) breaks(format string, args ...any) {
	t.findings = append(t.findings, Finding{Breaks, fmt.Sprintf(format, args...)})
}

// must notes that the server breaks the probe unless ok.
func (t *Trial) must(ok bool, format string, args ...any) {
	if !ok {
		t.breaks(format, args...)
	}
}

// need is must, and the trial cannot go on without it.
func (t *Trial) need(ok bool, format string, args ...any) {
	if !ok {
		t.breaks(format, args...)
		panic(gaveUp{})
	}
}

// promised notes that a promise of net/http is lost unless ok.
func (t *Trial) promised(ok bool, format string, args ...any) {
	if !ok {
		t.findings = append(t.findings, Finding{Degrades, fmt.Sprintf(format, args...)})
	}
}

// answer is an answer that was read whole.
type answer struct {
	status  int
	header  http.Header
	trailer http.Header
	body    string
}

// request makes a request to the server. Fields are "Name: value".
func (t *Trial) request(method, path, body string, fields ...string) *http.Request {
	var payload io.Reader
	if body != "" {
		payload = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, t.url+path, payload)
	if err != nil {
		panic(err) // the probe is wrong
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return r
}

// send sends a request and reads the answer, without which the trial is over.
func (t *Trial) send(r *http.Request) answer {
	a, err := t.trySend(r)
	t.need(err == nil, "%s %s: %s", r.Method, r.URL.Path, reason(err))
	return a
}

func (t *Trial) trySend(r *http.Request) (answer, error) {
	res, err := t.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, res.Trailer, string(body)}, err
}

// get asks for a path.
func (t *Trial) get(path string, fields ...string) answer {
	return t.send(t.request(http.MethodGet, path, "", fields...))
}

// wants breaks unless an answer has this status and body.
func (t *Trial) wants(a answer, status int, body string) {
	t.must(a.status == status, "status %d instead of %d", a.status, status)
	t.must(a.body == body, "body %s instead of %s", short(a.body), short(body))
}

// field breaks unless an answer has this header field.
func (t *Trial) field(a answer, name, want string) {
	got := strings.Join(a.header.Values(name), ", ")
	t.must(got == want, "%s is %q instead of %q", name, got, want)
}

// dial opens a connection that lasts no longer than a hang.
func (t *Trial) dial() (net.Conn, *bufio.Reader) {
	c, err := net.Dial("tcp", t.addr)
	t.need(err == nil, "connecting: %s", reason(err))
	_ = c.SetDeadline(time.Now().Add(limit))
	t.cleanups = append(t.cleanups, func() { c.Close() })
	return c, bufio.NewReader(c)
}

// within waits for something that takes no time where it works.
func within[T any](c <-chan T) (T, bool) {
	select {
	case v := <-c:
		return v, true
	case <-time.After(patience):
		var zero T
		return zero, false
	}
}

// short quotes a body, or says how long it is.
func short(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("[%d bytes]", len(s))
	}
	return fmt.Sprintf("%q", s)
}

// reason says what went wrong, without addresses, which differ between trials.
func reason(err error) string {
	var timeout net.Error
	switch {
	case err == nil:
		return "nothing"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the answer is cut short"
	case errors.Is(err, io.EOF), strings.Contains(err.Error(), "connection reset"), strings.Contains(err.Error(), "broken pipe"):
		return "the connection is closed without an answer"
	case strings.Contains(err.Error(), "connection refused"):
		return "connections are refused"
	}
	text := err.Error()
	if i := strings.LastIndex(text, "\": "); i >= 0 {
		text = text[i+3:]
	}
	return text
}

// journal is a log that handlers write and trials read.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// awaits reports whether the journal comes to hold the text: middlewares that log
// do so when the client has its answer already.
func (j *journal) awaits(text string) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if strings.Contains(j.String(), text) {
			return true
		}
	}
	return false
}
