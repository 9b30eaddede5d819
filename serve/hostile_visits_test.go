//go:build linux

package serve_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/serve"
)

// visit is one thing that clients do. It returns how many requests it sent. One
// that leaves the connection of no more use hangs up.
type visit struct {
	name   string
	weight int
	make   func(v *visitor) (int, error)
}

func visits() []visit {
	return []visit{
		{"pipelined", 15, (*visitor).pipelined},
		{"get", 40, (*visitor).get},
		{"kept", 10, (*visitor).keeps},
		{"post", 20, (*visitor).post},
		{"post in chunks", 15, (*visitor).postChunks},
		{"expecting 100", 3, (*visitor).expecting},
		{"body left unread", 5, (*visitor).unread},
		{"head", 10, (*visitor).head},
		{"flushed", 10, (*visitor).flushed},
		{"big", 5, (*visitor).big},
		{"error", 5, (*visitor).fails},
		{"aborted by the handler", 2, (*visitor).panics},
		{"refused", 2, (*visitor).refused},
		{"hijacked", 2, (*visitor).hijacked},
		{"closing", 2, (*visitor).closing},
		{"half-closed", 2, (*visitor).halfClosed},
		{"body cut off", 2, (*visitor).cutOff},
		{"reset while handled", 2, (*visitor).leaves},
		{"answer not read", 2, (*visitor).deaf},
		{"slow head", 3, (*visitor).slowHead},
		{"head given up", 2, (*visitor).givesUp},
		{"used late", 4, (*visitor).usesLate},
		{"upgraded", 2, (*visitor).upgraded},
		{"server shut down", 1, (*visitor).shutsDown},
	}
}

// visitor is one client, with a connection to each server.
type visitor struct {
	*soak
	*rand.Rand
	lines [4]*line
	which int
	*line // the connection to lines[which]
}

// line is a connection to a server.
type line struct {
	nc net.Conn
	br *bufio.Reader
}

// visitAll makes visits until enough requests were sent, or the time is up.
func (v *visitor) visitAll() {
	begin, sent, sum := time.Now(), 0, 0
	for _, kind := range v.kinds {
		sum += kind.weight
	}
	for v.goesOn() {
		i, at := 0, v.IntN(sum)
		for ; at >= v.kinds[i].weight; i++ {
			at -= v.kinds[i].weight
		}
		n, err := v.visit(v.kinds[i])
		if err != nil {
			v.t.Errorf("%s, server %d: %v", v.kinds[i].name, v.which, err)
		}
		v.left.Add(-int64(n))
		v.done[i].Add(int64(n))
		sent += n
		time.Sleep(time.Until(begin.Add(time.Duration(sent) * v.pace))) // pipelined visits make for long rests
	}
	for v.which = range v.lines {
		if v.line = v.lines[v.which]; v.line != nil {
			v.hangUp()
		}
	}
}

func (v *visitor) visit(kind visit) (int, error) {
	v.which = v.IntN(len(v.forts))
	if v.line = v.lines[v.which]; v.line == nil {
		nc, err := v.forts[v.which].reach()
		if err != nil {
			return 0, err
		}
		v.line = &line{nc, bufio.NewReaderSize(nc, 16<<10)}
		v.lines[v.which] = v.line
	}
	v.nc.SetDeadline(time.Now().Add(long))
	return kind.make(v)
}

// hangUp closes the connection.
func (v *visitor) hangUp() {
	v.nc.Close()
	v.lines[v.which] = nil
}

// id is a text that no other request has.
func (v *visitor) id() string { return strconv.FormatUint(v.Uint64(), 36) }

// send sends a request with further lines of head.
func (v *visitor) send(method, path, lines, body string) error {
	_, err := io.WriteString(v.nc, method+" "+path+" HTTP/1.1\r\nHost: soak\r\n"+lines+"\r\n"+body)
	return err
}

// reply is an answer.
type reply struct {
	status  int
	length  int // -1 = none declared
	chunked bool
	close   bool
	body    []byte
}

// hear reads an answer, to a HEAD request without a body.
func (l *line) hear(head bool) (r reply, err error) {
	if r, err = l.hearHead(); err != nil || head {
		return r, err
	}
	switch {
	case r.chunked:
		err = l.hearChunks(&r)
	case r.length >= 0:
		r.body = make([]byte, r.length)
		_, err = io.ReadFull(l.br, r.body)
	default:
		r.body, err = io.ReadAll(l.br)
	}
	return r, err
}

func (l *line) hearHead() (r reply, err error) {
	first, err := l.text()
	if err != nil {
		return r, err
	}
	if len(first) < 12 || !strings.HasPrefix(first, "HTTP/1.1 ") {
		return r, fmt.Errorf("status line %q", first)
	}
	r.length = -1
	if r.status, err = strconv.Atoi(first[9:12]); err != nil {
		return r, err
	}
	for {
		text, err := l.text()
		if err != nil || text == "" {
			return r, err
		}
		name, value, _ := strings.Cut(text, ": ")
		switch name {
		case "Content-Length":
			if r.length, err = strconv.Atoi(value); err != nil {
				return r, err
			}
		case "Transfer-Encoding":
			r.chunked = value == "chunked"
		case "Connection":
			r.close = value == "close"
		}
	}
}

// text reads a line.
func (l *line) text() (string, error) {
	text, err := l.br.ReadString('\n')
	if err != nil {
		return text, err
	}
	text, ok := strings.CutSuffix(text, "\r\n")
	if !ok {
		return text, fmt.Errorf("line %q", text)
	}
	return text, nil
}

func (l *line) hearChunks(r *reply) error {
	for {
		text, err := l.text()
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(text, 16, 31)
		if err != nil {
			return err
		}
		piece := make([]byte, n+2)
		if _, err := io.ReadFull(l.br, piece); err != nil {
			return err
		}
		if piece[n] != '\r' || piece[n+1] != '\n' {
			return fmt.Errorf("a chunk ends with %q", piece[n:])
		}
		if n == 0 {
			return nil
		}
		r.body = append(r.body, piece[:n]...)
	}
}

// expect reads an answer and compares it.
func (v *visitor) expect(status int, body string) error {
	r, err := v.hear(false)
	if err != nil {
		return err
	}
	if r.status != status || string(r.body) != body {
		return fmt.Errorf("answer %d %.100q, want %d %.100q", r.status, r.body, status, body)
	}
	if r.close {
		return errors.New("the answer closes the connection, want it kept")
	}
	return nil
}

// ended reads the connection's end and hangs up.
func (v *visitor) ended() error {
	defer v.hangUp()
	if b, err := v.br.ReadByte(); err != io.EOF {
		return fmt.Errorf("read %q, %v, want the connection's end", b, err)
	}
	return nil
}

func (v *visitor) pipelined() (int, error) {
	n := 2 + v.IntN(200)
	ids := make([]string, n)
	var out bytes.Buffer
	for i := range ids {
		ids[i] = v.id()
		out.WriteString("GET /n/" + ids[i] + " HTTP/1.1\r\nHost: soak\r\n\r\n")
	}
	if _, err := v.nc.Write(out.Bytes()); err != nil {
		return n, err
	}
	for _, id := range ids {
		if err := v.expect(http.StatusOK, id); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (v *visitor) get() (int, error) {
	id := v.id()
	if err := v.send("GET", "/n/"+id, "", ""); err != nil {
		return 1, err
	}
	return 1, v.expect(http.StatusOK, id)
}

func (v *visitor) keeps() (int, error) {
	id := v.id()
	if err := v.send("GET", "/keep/"+id, "X-Id: "+id+"\r\n", ""); err != nil {
		return 1, err
	}
	return 1, v.expect(http.StatusOK, id)
}

// random returns up to 20,000 bytes, most often few.
func (v *visitor) random() string {
	n := v.IntN(200)
	if v.IntN(10) == 0 {
		n *= 100
	}
	at := v.IntN(len(pattern) - n)
	return string(pattern[at : at+n])
}

func sumOf(body string) string {
	return fmt.Sprintf("%d %x", len(body), crc32.ChecksumIEEE([]byte(body)))
}

func (v *visitor) post() (int, error) {
	body := v.random()
	if err := v.send("POST", "/sum/", "Content-Length: "+strconv.Itoa(len(body))+"\r\n", body); err != nil {
		return 1, err
	}
	return 1, v.expect(http.StatusOK, sumOf(body))
}

// chunked cuts a body into chunks at random.
func (v *visitor) chunked(body string) string {
	var out strings.Builder
	for _, piece := range v.pieces(body) {
		fmt.Fprintf(&out, "%x\r\n%s\r\n", len(piece), piece)
	}
	return out.String() + "0\r\n\r\n"
}

// pieces cuts a text into pieces at random.
func (v *visitor) pieces(text string) (all []string) {
	for len(text) > 0 {
		n := 1 + v.IntN(len(text))
		all, text = append(all, text[:n]), text[n:]
	}
	return all
}

func (v *visitor) postChunks() (int, error) {
	body := v.random()
	out := v.chunked(body)
	cut := v.IntN(len(out))
	if err := v.send("POST", "/sum/", "Transfer-Encoding: chunked\r\n", out[:cut]); err != nil {
		return 1, err
	}
	if _, err := io.WriteString(v.nc, out[cut:]); err != nil {
		return 1, err
	}
	return 1, v.expect(http.StatusOK, sumOf(body))
}

func (v *visitor) expecting() (int, error) {
	body := v.random() + "!"
	if err := v.send("PUT", "/sum/", "Expect: 100-continue\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n", ""); err != nil {
		return 1, err
	}
	r, err := v.hearHead()
	if err != nil || r.status != http.StatusContinue {
		return 1, fmt.Errorf("status %d, %v, want 100", r.status, err)
	}
	if _, err := io.WriteString(v.nc, body); err != nil {
		return 1, err
	}
	return 1, v.expect(http.StatusOK, sumOf(body))
}

// unread sends a body of which the handler reads ten bytes, and one more request.
func (v *visitor) unread() (int, error) {
	body := v.random() + "0123456789"
	if err := v.send("POST", "/part/", "Content-Length: "+strconv.Itoa(len(body))+"\r\n", body); err != nil {
		return 1, err
	}
	if err := v.expect(http.StatusOK, "part"); err != nil {
		return 1, err
	}
	_, err := v.get()
	return 2, err
}

func (v *visitor) head() (int, error) {
	id := v.id()
	if err := v.send("HEAD", "/n/"+id, "", ""); err != nil {
		return 1, err
	}
	r, err := v.hear(true)
	if err == nil && (r.status != http.StatusOK || r.length != len(id)) {
		err = fmt.Errorf("answer %d with length %d, want 200 and %d", r.status, r.length, len(id))
	}
	return 1, err
}

func (v *visitor) flushed() (int, error) {
	id := v.id()
	if err := v.send("GET", "/flush/"+id, "", ""); err != nil {
		return 1, err
	}
	return 1, v.expect(http.StatusOK, "one two "+id)
}

func (v *visitor) big() (int, error) {
	n := v.IntN(len(pattern))
	if err := v.send("GET", "/big/"+strconv.Itoa(n), "", ""); err != nil {
		return 1, err
	}
	return 1, v.expect(http.StatusOK, string(pattern[:n]))
}

func (v *visitor) fails() (int, error) {
	id := v.id()
	if err := v.send("GET", "/error/"+id, "", ""); err != nil {
		return 1, err
	}
	return 1, v.expect(http.StatusTeapot, id+"\n")
}

func (v *visitor) panics() (int, error) {
	if err := v.send("GET", "/panic/", "", ""); err != nil {
		return 1, err
	}
	return 1, v.ended()
}

func (v *visitor) refused() (int, error) {
	bad := []string{
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"POST /sum/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
	}
	if _, err := io.WriteString(v.nc, bad[v.IntN(len(bad))]); err != nil {
		return 1, err
	}
	r, err := v.hear(false)
	if err == nil && (r.status != http.StatusBadRequest || !r.close) {
		err = fmt.Errorf("answer %d, closing %v, want 400 and closing", r.status, r.close)
	}
	v.hangUp()
	return 1, err
}

func (v *visitor) hijacked() (int, error) {
	id := v.id()
	if err := v.send("GET", "/hijack/"+id, "", "own words\n"); err != nil {
		return 1, err
	}
	text, err := v.br.ReadString('\n')
	if want := "taken " + id + " own words\n"; err != nil || text != want {
		return 1, fmt.Errorf("a hijacked connection says %q, %v, want %q", text, err, want)
	}
	return 1, v.ended()
}

func (v *visitor) closing() (int, error) {
	id := v.id()
	if err := v.send("GET", "/n/"+id, "Connection: close\r\n", ""); err != nil {
		return 1, err
	}
	r, err := v.hear(false)
	if err != nil || string(r.body) != id || !r.close {
		return 1, fmt.Errorf("answer %q, closing %v, %v, want %q and closing", r.body, r.close, err, id)
	}
	return 1, v.ended()
}

func (v *visitor) halfClosed() (int, error) {
	a, b := v.id(), v.id()
	if err := v.send("GET", "/n/"+a, "", "GET /n/"+b+" HTTP/1.1\r\nHost: soak\r\n\r\n"); err != nil {
		return 2, err
	}
	v.nc.(interface{ CloseWrite() error }).CloseWrite()
	for _, id := range []string{a, b} {
		if err := v.expect(http.StatusOK, id); err != nil {
			return 2, err
		}
	}
	return 2, v.ended()
}

// cutOff promises a longer body than it sends.
func (v *visitor) cutOff() (int, error) {
	err := v.send("POST", "/cut/", "Content-Length: 100000\r\n", v.random())
	v.leave()
	return 1, err
}

// leaves is gone before its request is answered.
func (v *visitor) leaves() (int, error) {
	err := v.send("GET", "/wait/", "", "")
	v.leave()
	return 1, err
}

// deaf asks for a big answer and leaves without reading it.
func (v *visitor) deaf() (int, error) {
	err := v.send("GET", "/big/60000", "", "")
	v.leave()
	return 1, err
}

// leave hangs up, half of the time with a reset.
func (v *visitor) leave() {
	if v.IntN(2) == 0 {
		reset(v.nc)
	}
	v.hangUp()
}

// slowHead sends its head in pieces, with rests between them.
func (v *visitor) slowHead() (int, error) {
	id := v.id()
	for _, piece := range v.pieces("GET /n/" + id + " HTTP/1.1\r\nHost: soak\r\n\r\n") {
		time.Sleep(time.Duration(v.IntN(5)) * time.Millisecond)
		if _, err := io.WriteString(v.nc, piece); err != nil {
			return 1, err
		}
	}
	return 1, v.expect(http.StatusOK, id)
}

// givesUp leaves in the middle of a head.
func (v *visitor) givesUp() (int, error) {
	_, err := io.WriteString(v.nc, "GET /never HTTP/1.1\r\nHost: so")
	v.leave()
	return 1, err
}

// usesLate has a goroutine of the handler go on with all that belongs to the request.
func (v *visitor) usesLate() (int, error) {
	id := v.id()
	if err := v.send("POST", "/late/"+id, "X-Id: "+id+"\r\nContent-Length: "+strconv.Itoa(len(id))+"\r\n", id); err != nil {
		return 1, err
	}
	return 1, v.expect(http.StatusOK, id)
}

// upgraded switches to a protocol that echoes lines, of which the first comes with the head.
func (v *visitor) upgraded() (int, error) {
	line := v.id() + "\n"
	if err := v.send("GET", "/upgrade/", "Connection: Upgrade\r\nUpgrade: echo\r\n", line); err != nil {
		return 1, err
	}
	r, err := v.hearHead()
	if err != nil || r.status != http.StatusSwitchingProtocols {
		return 1, fmt.Errorf("status %d, %v, want 101", r.status, err)
	}
	for more := v.IntN(5); ; more-- {
		if got, err := v.br.ReadString('\n'); err != nil || got != line {
			return 1, fmt.Errorf("an upgraded connection says %q, %v, want %q", got, err, line)
		}
		if more == 0 {
			break
		}
		line = v.id() + "\n"
		if _, err := io.WriteString(v.nc, line); err != nil {
			return 1, err
		}
	}
	v.leave()
	return 1, nil
}

// shutsDown shuts a server of its own down while four clients ask, and asks the visited one.
func (v *visitor) shutsDown() (int, error) {
	reuse := v.IntN(2) == 0
	sum := restart(v.t, 4, nil, func(h http.Handler) stopper {
		return &serve.Server{Handler: h, Limits: patient, Reuse: reuse}
	})
	if sum.lost+sum.unread > 0 || sum.handled != sum.answered {
		return sum.answered, fmt.Errorf("of a server that was shut down: %+v, want all that was handled answered, and none lost or unread", sum)
	}
	n, err := v.get()
	return sum.answered + n, err
}
