package serve_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// program is a request and what its handler does, drawn from bytes, so that
// the space of both can be sampled and fuzzed.
type program struct {
	send, method string
	times        int // that the request is sent, pipelined
	steps        []step
}

// step is one thing that a handler does.
type step struct {
	name string
	do   act
}

// tape deals choices out of bytes; at its end every choice is the first.
type tape []byte

func (t *tape) pick(n int) int {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return int(b) % n
}

func one[T any](t *tape, of ...T) T { return of[t.pick(len(of))] }

// drawn makes the program of a tape.
func drawn(data []byte) program {
	t := tape(data)
	p := program{method: one(&t, "GET", "POST", "HEAD", "PUT")}
	version := one(&t, "1.1", "1.1", "1.0")
	lines := []string{p.method + " /p HTTP/" + version, "Host: a"}
	if v := one(&t, "", "", "close", "keep-alive"); v != "" {
		lines = append(lines, "Connection: "+v)
	}
	body := strings.Repeat("b", one(&t, 0, 5, 3000, 6000))
	switch {
	case version == "1.1" && t.pick(2) == 1:
		lines = append(lines, "Transfer-Encoding: chunked")
		if body != "" {
			body = hex(len(body)) + "\r\n" + body + "\r\n"
		}
		body += "0\r\n\r\n"
	case body != "":
		lines = append(lines, "Content-Length: "+itoa(len(body)))
	}
	expects := t.pick(8) == 7
	if expects {
		lines = append(lines, "Expect: 100-continue")
	}
	p.send = strings.Join(lines, "\r\n") + "\r\n\r\n" + body
	p.times = one(&t, 1, 1, 2, 3)
	for n := t.pick(8); n >= 0; n-- {
		s := drawStep(&t)
		if expects && s.name == closeBody {
			continue // row expect-closed
		}
		if s.name == "status 103" && strings.HasSuffix(lines[0], "HTTP/1.0") {
			continue // row inform-old
		}
		p.steps = append(p.steps, s)
	}
	return p
}

func drawStep(t *tape) step {
	switch t.pick(9) {
	case 0, 1:
		n := one(t, 0, 1, 100, 2047, 2048, 2049, 5000)
		return step{fmt.Sprintf("write %d", n), writes(strings.Repeat("w", n))}
	case 2:
		return step{"flush", flushed("")}
	case 3:
		code := one(t, 200, 201, 204, 304, 404, 103, 500)
		return step{fmt.Sprintf("status %d", code), status(code, writes())}
	case 4, 5:
		name, value := drawField(t)
		return step{fmt.Sprintf("%s: %s", name, value), func(_ *journal, w http.ResponseWriter, _ *http.Request) { w.Header().Set(name, value) }}
	case 6:
		n := one(t, 1, 4000, 100000)
		return step{fmt.Sprintf("read %d", n), func(j *journal, _ http.ResponseWriter, r *http.Request) {
			got, err := io.ReadFull(r.Body, make([]byte, n))
			j.note("read %d %s", got, class(err))
		}}
	case 7:
		n := one(t, 10, 1000, 3000)
		return step{fmt.Sprintf("copy %d", n), func(j *journal, w http.ResponseWriter, _ *http.Request) {
			got, err := io.Copy(w, io.LimitReader(bytes.NewReader(make([]byte, 4000)), int64(n)))
			j.note("copied %d %s", got, class(err))
		}}
	default:
		return drawRare(t)
	}
}

const closeBody = "close the body"

func drawRare(t *tape) step {
	switch t.pick(4) {
	case 0:
		return step{"abort", func(*journal, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
	case 1:
		return step{closeBody, func(j *journal, _ http.ResponseWriter, r *http.Request) { j.note("close %s", class(r.Body.Close())) }}
	case 2:
		return step{"error", func(_ *journal, w http.ResponseWriter, _ *http.Request) { http.Error(w, "why", http.StatusTeapot) }}
	default:
		return step{"drop the length", func(_ *journal, w http.ResponseWriter, _ *http.Request) { w.Header().Del("Content-Length") }}
	}
}

func drawField(t *tape) (name, value string) {
	switch t.pick(7) {
	case 0, 1:
		return "Content-Length", one(t, "0", "1", "100", "101", "5000", "x")
	case 2:
		return "Content-Type", one(t, "text/x", "")
	case 3:
		return "Connection", one(t, "close", "keep-alive", "x")
	case 4:
		return "Trailer", "X-T"
	case 5:
		return one(t, http.TrailerPrefix+"X-U", "X-T"), "late"
	default:
		return "Transfer-Encoding", one(t, "identity", "chunked")
	}
}

func (p program) String() string {
	names := []string{fmt.Sprintf("%d × %.120q", p.times, p.send)}
	for _, s := range p.steps {
		names = append(names, s.name)
	}
	return strings.Join(names, "; ")
}

func (p program) exchange() exchange {
	return exchange{send: strings.Repeat(p.send, p.times), methods: strings.Repeat(p.method+" ", p.times), handler: func(j *journal, w http.ResponseWriter, r *http.Request) {
		for _, s := range p.steps {
			s.do(j, w, r)
		}
	}}
}

const keepAliveLine = "Connection: keep-alive\r\n"

func (p program) aborts() bool {
	return slices.ContainsFunc(p.steps, func(s step) bool { return s.name == "abort" })
}

// claims reports whether net/http's answer says that the connection is kept
// and closes it, as row keep-alive-claim of the table has it.
func (o outcome) claims() bool {
	return strings.Contains(o.wire, keepAliveLine) && !strings.Contains(o.wire, "204 No Content\r\nDate")
}

// overruns reports whether net/http's answer is longer than it says, or the
// handler copied after it had written too much, as row file-too-long of the
// table has it.
func (o outcome) overruns(method string) bool {
	if _, after, tooMuch := strings.Cut(o.seen, http.ErrContentLength.Error()); tooMuch && strings.Contains(after, "copied") {
		return true
	}
	br := bufio.NewReader(strings.NewReader(o.wire))
	for {
		resp, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil { // not to be framed, for instance two lengths
			return err != io.EOF && err != io.ErrUnexpectedEOF && strings.Contains(o.seen, "copied")
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode < 200 {
			continue
		}
		next, err := br.Peek(5)
		return err != io.EOF && string(next) != "HTTP/"
	}
}

func (p program) check(t *testing.T) {
	t.Helper()
	x := p.exchange()
	want := x.hold(t, control(), whole)
	if want.overruns(p.method) {
		return
	}
	claims := want.claims()
	if claims {
		want.wire = strings.Replace(want.wire, keepAliveLine, "", 1)
	}
	for _, s := range sides() {
		got := x.hold(t, s, whole)
		if claims {
			got.wire = strings.Replace(got.wire, keepAliveLine, "", 1)
		}
		if p.aborts() && (strings.HasPrefix(want.wire, got.wire) || strings.HasPrefix(got.wire, want.wire)) {
			got.wire = want.wire // row abort-partial
		}
		for _, d := range want.diff(got) {
			t.Errorf("%s: %s: %s", s.name, p, d)
		}
	}
}

// TestDiffPrograms runs programs drawn from a fixed seed.
func TestDiffPrograms(t *testing.T) {
	n := 500
	if testing.Short() {
		n = 100
	}
	rnd := rand.New(rand.NewPCG(7, 9112))
	for i := range n {
		data := make([]byte, 40)
		for k := range data {
			data[k] = byte(rnd.Uint32())
		}
		drawn(data).check(t)
		if t.Failed() {
			t.Fatalf("program %d of %d", i, n)
		}
	}
}

// FuzzDiff looks for a program that the two servers run otherwise.
func FuzzDiff(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 2, 1, 0, 3, 0, 4, 2, 6, 1, 4, 0})
	f.Fuzz(func(t *testing.T, data []byte) { drawn(data).check(t) })
}
