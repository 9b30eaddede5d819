package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/proxy"
)

// recorder is an upstream that reads requests as strictly as RFC 9112 allows, and answers
// 200. What it cannot read so it keeps as a fault.
type recorder struct {
	mu     sync.Mutex
	seen   []string // request lines and bodies
	faults []string
	check  func(tag, method, target, body string) // of each request, if it is set
}

func (rec *recorder) serve(t testing.TB) string {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					err := rec.request(in)
					if err == io.EOF {
						return
					}
					if err != nil {
						rec.mu.Lock()
						rec.faults = append(rec.faults, err.Error())
						rec.mu.Unlock()
						return
					}
					fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			}()
		}
	}()
	return l.Addr().String()
}

// request reads one request: lines end in CRLF, names are tokens, there is one length or
// chunked alone, and it is the proxy who sends it.
func (rec *recorder) request(in *bufio.Reader) error {
	line, err := crlf(in)
	if err != nil {
		return err
	}
	length, chunked, via, tag := -1, false, 0, ""
	for {
		field, err := crlf(in)
		if err != nil {
			return fmt.Errorf("in the head of %q: %w", line, err)
		}
		if field == "" {
			break
		}
		name, value, ok := strings.Cut(field, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t\x00") {
			return fmt.Errorf("field %q", field)
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			n, err := strconv.ParseUint(value, 10, 31)
			if err != nil || length >= 0 || chunked || value[0] == '+' {
				return fmt.Errorf("length %q in %q", value, line)
			}
			length = int(n)
		case "transfer-encoding":
			if value != "chunked" || chunked || length >= 0 {
				return fmt.Errorf("coding %q in %q", value, line)
			}
			chunked = true
		case "via":
			via++
		case "x-tag":
			tag += value
		}
	}
	if via != 1 {
		return fmt.Errorf("request %q has %d Via: it is not from the proxy", line, via)
	}
	body, err := payload(in, length, chunked)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return io.EOF // the client has broken off, and so has the proxy
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.seen = append(rec.seen, line+" "+body)
	if parts := strings.Split(line, " "); err == nil && rec.check != nil {
		rec.check(tag, parts[0], parts[min(1, len(parts)-1)], body)
	}
	return err
}

func crlf(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", io.EOF
	}
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok || strings.ContainsAny(text, "\r\x00") {
		return "", fmt.Errorf("line %q", line)
	}
	return text, nil
}

func payload(in *bufio.Reader, length int, chunked bool) (string, error) {
	var body bytes.Buffer
	if !chunked {
		_, err := io.CopyN(&body, in, int64(max(length, 0)))
		return body.String(), err
	}
	for {
		line, err := crlf(in)
		if err != nil {
			return "", err
		}
		n, err := strconv.ParseUint(line, 16, 31)
		if err != nil {
			return "", fmt.Errorf("chunk size %q", line)
		}
		if _, err := io.CopyN(&body, in, int64(n)); err != nil {
			return "", err
		}
		if end, err := crlf(in); err != nil || end != "" {
			return "", fmt.Errorf("chunk ends in %q, %w", end, err)
		}
		if n == 0 {
			return body.String(), nil
		}
	}
}

// smuggled is what a second reader would take for a request.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: inner\r\n\r\n"

// vectors are ends of requests that readers frame differently.
func vectors() map[string]string {
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)
	return map[string]string{
		"length and chunked":          "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"chunked and length":          "Transfer-Encoding: chunked\r\nContent-Length: " + strconv.Itoa(len(chunk)) + "\r\n\r\n" + chunk,
		"two lengths":                 "Content-Length: 0\r\nContent-Length: " + strconv.Itoa(len(smuggled)) + "\r\n\r\n" + smuggled,
		"a list of lengths":           "Content-Length: 0, " + strconv.Itoa(len(smuggled)) + "\r\n\r\n" + smuggled,
		"a signed length":             "Content-Length: +" + strconv.Itoa(len(smuggled)) + "\r\n\r\n" + smuggled,
		"an octal length":             "Content-Length: 0x10\r\n\r\n" + smuggled,
		"two codings":                 "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunk,
		"an unknown coding":           "Transfer-Encoding: xchunked\r\n\r\n" + chunk,
		"chunked not last":            "Transfer-Encoding: chunked, gzip\r\n\r\n" + chunk,
		"a tab before chunked":        "Transfer-Encoding:\tchunked\r\n\r\n" + chunk,
		"a vertical tab":              "Transfer-Encoding: \x0bchunked\r\n\r\n" + chunk,
		"a space before the colon":    "Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n" + chunk,
		"a folded coding":             "X: y\r\n Transfer-Encoding: chunked\r\n\r\n" + smuggled,
		"a bare LF in the head":       "X: y\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		"a bare CR in the head":       "X: y\rTransfer-Encoding: chunked\r\n\r\n" + chunk,
		"NUL":                         "X: y\x00\r\nContent-Length: 0\r\n\r\n" + smuggled,
		"a field without a name":      ": y\r\nContent-Length: 0\r\n\r\n" + smuggled,
		"a chunk size with a sign":    "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n" + smuggled,
		"a chunk size of hexadecimal": "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n" + smuggled,
		"a chunk size too large":      "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nhello\r\n0\r\n\r\n" + smuggled,
		"a chunk ended by LF":         "Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n" + smuggled,
		"a chunk extension with LF":   "Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n" + smuggled,
		"a trailer that frames":       "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 100\r\n\r\n" + smuggled,
		"lengths nominated":           "Connection: Content-Length\r\nContent-Length: " + strconv.Itoa(len(smuggled)) + "\r\n\r\n" + smuggled,
		"coding nominated":            "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		"a body on GET":               "Content-Length: " + strconv.Itoa(len(smuggled)) + "\r\n\r\n" + smuggled,
		"an upgrade that is refused":  "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + smuggled,
		"a field injected by a value": "X: a\\r\\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
	}
}

// TestSmuggling sends what readers frame differently: the upstream sees nothing that it
// could frame otherwise than the proxy did, and no request that the proxy has not sent.
func TestSmuggling(t *testing.T) {
	for _, engine := range []string{"serve", "net/http"} {
		var rec recorder
		pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: rec.serve(t)}}}))
		defer pool.Close()
		h := must(proxy.New(proxy.Options{Pool: pool, Name: "edge-1"}))
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		run, end := (&http.Server{Handler: h}).Serve, func() {}
		if engine == "serve" {
			s := &serve.Server{Handler: h}
			run, end = s.Serve, func() { s.Close() }
		}
		go func() { _ = run(l) }()
		for _, method := range []string{"POST", "GET"} {
			for name, vector := range vectors() {
				c := must(net.Dial("tcp", l.Addr().String()))
				_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
				fmt.Fprintf(c, "%s /outer HTTP/1.1\r\nHost: outer\r\n%s", method, vector)
				_ = c.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, c)
				c.Close()
				rec.mu.Lock()
				for _, fault := range rec.faults {
					t.Errorf("%s, %s, %s: the upstream read %s", engine, method, name, fault)
				}
				rec.faults = nil
				rec.mu.Unlock()
			}
		}
		time.Sleep(50 * time.Millisecond) // the last one is on its way
		l.Close()
		end()
		rec.mu.Lock()
		if len(rec.seen) == 0 || len(rec.faults) > 0 {
			t.Errorf("%s: the upstream has seen %d requests, and read %q", engine, len(rec.seen), rec.faults)
		}
		rec.mu.Unlock()
	}
}

// TestBadAnswers has answers whose frame is in doubt not be passed on as if it were not.
func TestBadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   int    // status
		body   string // where the status is 200
	}{
		"two lengths":         {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", 502, ""},
		"a signed length":     {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", 502, ""},
		"an unknown coding":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nok", 502, ""},
		"no status":           {"HTTP/1.1\r\n\r\n", 502, ""},
		"not HTTP":            {"SSH-2.0-OpenSSH_9.2\r\n", 502, ""},
		"a field of two":      {"HTTP/1.1 200 OK\r\nX y: 1\r\nContent-Length: 2\r\n\r\nok", 502, ""},
		"an endless head":     {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 200<<10), 502, ""},
		"to the end":          {"HTTP/1.0 200 OK\r\n\r\nok", 200, "ok"},
		"length and chunked":  {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 502, ""},
		"204 with a length":   {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", 204, ""},
		"a bare CR":           {"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b=c\r\nContent-Length: 2\r\n\r\nok", 502, ""},
		"NUL":                 {"HTTP/1.1 200 OK\r\nX: a\x00\r\nContent-Length: 2\r\n\r\nok", 502, ""},
		"a CR in the reason":  {"HTTP/1.1 200 OK\rX: a\r\nContent-Length: 2\r\n\r\nok", 502, ""},
		"longer than it says": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", 200, "ok"},
		"endless news":        {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 200), 502, ""},
		"news of two lines":   {"HTTP/1.1 103 Early Hints\r\nLink: </a>\rX: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 502, ""},
		"an answer too short": {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", -1, ""},
	} {
		var counted runs
		address := bad(t, &counted, func(conn net.Conn) { _, _ = io.WriteString(conn, c.answer) })
		url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, address)
		res, err := http.Get(url)
		if err != nil && c.want < 0 {
			continue // nothing of it had been passed on
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		switch {
		case c.want < 0:
			if err == nil {
				t.Errorf("%s: got %d %q, want it to break off", name, res.StatusCode, body)
			}
		case res.StatusCode != c.want, c.want < 300 && string(body) != c.body, err != nil:
			t.Errorf("%s: got %d %q, %v; want %d %q", name, res.StatusCode, body, err, c.want, c.body)
		}
	}
}

// TestSerial has two requests of one connection get their own answers.
func TestSerial(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: up}}}))
	defer pool.Close()
	s := httptest.NewServer(must(proxy.New(proxy.Options{Pool: pool})))
	defer s.Close()
	c := must(net.Dial("tcp", s.Listener.Addr().String()))
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(c, "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
	in := bufio.NewReader(c)
	for _, want := range []string{"/a", "/b"} {
		res := must(http.ReadResponse(in, nil))
		if body, err := io.ReadAll(res.Body); string(body) != want {
			t.Errorf("got %q, %v, want %q", body, err, want)
		}
	}
}
