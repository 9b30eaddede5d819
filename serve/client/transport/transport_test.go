package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/client/transport"
)

func Example() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "seven in stock") }))
	defer s.Close()
	c := &http.Client{Transport: &transport.Transport{}} // one for the whole program
	res, err := c.Get(s.URL)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	fmt.Println(string(text))
	// Output: seven in stock
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// script serves each connection by f, one after the other, and returns its URL.
func script(t *testing.T, f func(n int, c net.Conn, in *bufio.Reader)) string {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(n, c, bufio.NewReader(c))
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// answering serves one request of each connection with bytes.
func answering(t *testing.T, text string) string {
	return script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(c, text)
	})
}

// TestAnswers is the table of what is read, and what is refused.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, method, answer string
		status               int // 0: an error
		body, wrong          string
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", ""},
		{"chunks", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\no\r\n1\r\nk\r\n0\r\n\r\n", 200, "ok", ""},
		{"to the end", "GET", "HTTP/1.1 200 OK\r\n\r\nok", 200, "ok", ""},
		{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", ""},
		{"no reason", "GET", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200, "ok", ""},
		{"no body", "GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", ""},
		{"not modified", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, "", ""},
		{"head", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", 200, "", ""},
		{"news", "GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", ""},
		{"two lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", 0, "", "more than one Content-Length"},
		{"length and chunked", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 0, "", "both"},
		{"chunked in HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, "", "HTTP/1.0"},
		{"unknown coding", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 0, "", "does not end with chunked"},
		{"signed length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", 0, "", "invalid Content-Length"},
		{"bare LF", "GET", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 0, "", ""},
		{"fold", "GET", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", 0, "", "white space at the start"},
		{"space before colon", "GET", "HTTP/1.1 200 OK\r\nX : a\r\n\r\n", 0, "", "invalid field name"},
		{"HTTP/2", "GET", "HTTP/2.0 200 OK\r\n\r\n", 0, "", "unsupported HTTP version"},
		{"not HTTP", "GET", "SSH-2.0-OpenSSH_9.2\r\n\r\n", 0, "", "malformed status line"},
		{"two digits", "GET", "HTTP/1.1 20 OK\r\n\r\n", 0, "", "malformed status line"},
		{"status 099", "GET", "HTTP/1.1 099 OK\r\n\r\n", 0, "", "malformed status line"},
		{"nothing", "GET", "", 0, "", "EOF"},
		{"half a head", "GET", "HTTP/1.1 200 OK\r\nX: ", 0, "", "unexpected EOF"},
		{"endless head", "GET", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100<<10), 0, "", "more than 65536 bytes"},
		{"endless news", "GET", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 200), 0, "", "more than 100 informational"},
		{"cut length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", 200, "ok", "unexpected EOF"},
		{"cut chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", 200, "ok", "unexpected EOF"},
		{"bad chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokk\r\n", 200, "ok", "not ended by CRLF"},
	} {
		tr := &transport.Transport{}
		r := must(http.NewRequest(c.method, answering(t, c.answer), nil))
		res, err := tr.RoundTrip(r)
		if c.status == 0 {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: got %v, %v, want an error with %q", c.name, res, err, c.wrong)
			}
			continue
		}
		if err != nil || res.StatusCode != c.status {
			t.Errorf("%s: got %v, %v, want %d", c.name, res, err, c.status)
			continue
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != c.body || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: got the body %q, %v, want %q and %q", c.name, body, err, c.body, c.wrong)
		}
	}
}

// TestReuse has connections be used again, and not once something came that nobody asked
// for, or they have ended.
func TestReuse(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for name, c := range map[string]struct {
		first string
		then  func(net.Conn)
		want  string // the body of the second answer
	}{
		"kept":               {ok, nil, "1"},
		"closed":             {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", nil, "2"},
		"HTTP/1.0":           {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", nil, "2"},
		"a second answer":    {ok + "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npoisoned", nil, "2"},
		"a later one":        {ok, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npoisoned") }, "2"},
		"ended":              {ok, func(c net.Conn) { c.Close() }, "2"},
		"more than declared": {ok + "!", nil, "2"},
	} {
		if runtime.GOOS != "linux" && c.then != nil {
			continue // nothing tells there that a connection has ended
		}
		after := make(chan struct{})
		url := script(t, func(n int, conn net.Conn, in *bufio.Reader) {
			for i := 0; ; i++ {
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				if n == 1 && i == 0 {
					_, _ = io.WriteString(conn, c.first)
					if c.then != nil {
						<-after
						c.then(conn)
						after <- struct{}{}
					}
					continue
				}
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", n)
			}
		})
		tr := &transport.Transport{}
		ask := func() string {
			res, err := tr.RoundTrip(must(http.NewRequest("GET", url, nil)))
			if err != nil {
				return err.Error()
			}
			defer res.Body.Close()
			return string(must(io.ReadAll(res.Body)))
		}
		if got := ask(); got != "ok" {
			t.Errorf("%s: the first answer is %q", name, got)
		}
		if c.then != nil {
			after <- struct{}{}
			<-after
			time.Sleep(20 * time.Millisecond)
		}
		if got := ask(); got != c.want {
			t.Errorf("%s: the second answer is %q, want %q", name, got, c.want)
		}
	}
}

// TestEndedError tells the end of a connection that was kept, in place of an answer, from that of a new
// one.
func TestEndedError(t *testing.T) {
	url := script(t, func(n int, c net.Conn, in *bufio.Reader) {
		if n == 1 {
			_, _ = http.ReadRequest(in)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
		_, _ = http.ReadRequest(in)
	})
	tr := &transport.Transport{}
	if _, err := tr.RoundTrip(must(http.NewRequest("GET", url, nil))); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} { // the second one goes on a new connection
		_, err := tr.RoundTrip(must(http.NewRequest("GET", url, nil)))
		if _, got := errors.AsType[*transport.EndedError](err); err == nil || got != want {
			t.Errorf("request %d: got %v, want an EndedError: %t", i, err, want)
		}
	}
}

// TestBodies has requests' bodies of any size and frame come whole, with trailers.
func TestBodies(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading: %v", err)
		}
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "%d %d %v ", r.ContentLength, len(body), r.TransferEncoding)
		_, _ = w.Write(body)
		w.Header().Set("X-Sum", r.Trailer.Get("X-Sum"))
	}))
	defer s.Close()
	tr := &transport.Transport{}
	for _, size := range []int{0, 1, 8 << 10, 8<<10 + 1, 32 << 10, 100_000, 3 << 20} {
		data := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		for _, chunked := range []bool{false, true} {
			var body io.Reader = bytes.NewReader(data)
			want := fmt.Sprintf("%d %d [] ", size, size)
			if chunked {
				body = io.MultiReader(body)
				want = fmt.Sprintf("-1 %d [chunked] ", size)
			}
			r := must(http.NewRequest("POST", s.URL, body))
			if chunked {
				r.Trailer = http.Header{"X-Sum": {"42"}}
			}
			res, err := tr.RoundTrip(r)
			if err != nil {
				t.Errorf("%d bytes, chunked %t: %v", size, chunked, err)
				continue
			}
			got, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || string(got) != want+string(data) {
				t.Errorf("%d bytes, chunked %t: got %d bytes, %v, %.40q, want %.40q", size, chunked, len(got), err, got, want)
			}
			if sum := res.Trailer.Get("X-Sum"); chunked && sum != "42" {
				t.Errorf("%d bytes: the trailer is %q", size, sum)
			}
		}
	}
}

// TestBadRequests has nothing be sent that a server could take for something else.
func TestBadRequests(t *testing.T) {
	tr := &transport.Transport{}
	for want, change := range map[string]func(*http.Request){
		"is not a method":        func(r *http.Request) { r.Method = "GET /x HTTP/1.1\r\n" },
		"is not a host":          func(r *http.Request) { r.Host = "x\r\ny: z" },
		"is not a target":        func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1\r\nx: y" },
		"is not a field's name":  func(r *http.Request) { r.Header["X y"] = []string{"1"} },
		"that cannot be sent":    func(r *http.Request) { r.Header["X"] = []string{"a\r\nb: c"} },
		"URL of the scheme http": func(r *http.Request) { r.URL.Scheme = "ftp" },
		"needs Options.TLS":      func(r *http.Request) { r.URL.Scheme = "https" },
		"reading the request's": func(r *http.Request) {
			r.Method, r.ContentLength, r.Body = "PUT", 10, io.NopCloser(strings.NewReader("five"))
		},
		"it is longer than": func(r *http.Request) {
			r.Method, r.ContentLength, r.Body = "PUT", 3, io.NopCloser(strings.NewReader("five"))
		},
		"context canceled": func(r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			*r = *r.WithContext(ctx)
		},
	} {
		r := must(http.NewRequest("GET", answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), nil))
		change(r)
		if res, err := tr.RoundTrip(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v, want %q", res, err, want)
		}
	}
}

// late is a request's body that is whole before it tells of its end.
type late struct {
	left int
	told chan struct{} // closed: it tells
}

func (l *late) Read(p []byte) (int, error) {
	if l.left == 0 {
		<-l.told
		return 0, io.EOF
	}
	n := min(len(p), l.left)
	l.left -= n
	return n, nil
}

// TestClosedAtTheEnd closes a body while it is read to its end, which waits for the request's own
// to be sent: either the connection is closed, or the next request gets it, but not both.
func TestClosedAtTheEnd(t *testing.T) {
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	tr := &transport.Transport{Options: transport.Options{Conns: 1}}
	defer tr.CloseIdleConnections()
	for range 3 {
		const length = 64 << 10
		body := &late{length, make(chan struct{})}
		r := must(http.NewRequest("POST", url, body))
		r.ContentLength = length
		res := must(tr.RoundTrip(r))
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.ReadAll(res.Body) // it may be closed
		}()
		time.Sleep(10 * time.Millisecond) // so that it has most likely read all, and waits
		res.Body.Close()
		close(body.told)
		<-read
		if text, err := ask(tr, must(http.NewRequest("GET", url, nil))); err != nil || text != "ok" {
			t.Errorf("the next request got %q, %v", text, err)
		}
	}
}

// TestUntakenBody has a host that takes nothing of a body be found out in the time of an answer, and
// one that takes it slowly not be.
func TestUntakenBody(t *testing.T) {
	const size, patience = 32 << 20, 2 * time.Second // more than sockets hold
	done := make(chan struct{})
	defer close(done)
	url := script(t, func(n int, c net.Conn, in *bufio.Reader) {
		if n == 1 {
			<-done
			return
		}
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		for range 3 {
			time.Sleep(patience / 4)
			_, _ = io.CopyN(io.Discard, r.Body, 4<<20)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	tr := &transport.Transport{Options: transport.Options{HeaderTimeout: patience}}
	defer tr.CloseIdleConnections()
	send := func() (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return ask(tr, must(http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader(make([]byte, size)))))
	}
	_, err := send()
	if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing is taken: got %v, want a time-out of the transport's", err)
	}
	if text, err := send(); err != nil || text != "ok" {
		t.Errorf("it is taken slowly: got %q, %v", text, err)
	}
}

// TestEnds has a call end with its context, before and within the answer, and in time.
func TestEnds(t *testing.T) {
	stall := func(text string) string {
		return script(t, func(_ int, c net.Conn, in *bufio.Reader) {
			if _, err := http.ReadRequest(in); err == nil {
				_, _ = io.WriteString(c, text)
				_, _ = io.Copy(io.Discard, in)
			}
		})
	}
	tr := &transport.Transport{}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := tr.RoundTrip(must(http.NewRequestWithContext(ctx, "GET", stall(""), nil))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the answer: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	res, err := tr.RoundTrip(must(http.NewRequestWithContext(ctx, "GET", stall("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"), nil)))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := io.ReadAll(res.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("within the answer: %v", err)
	}
	res.Body.Close()
	const limit = 500 * time.Millisecond // a busy machine answers within it, too
	quick := &transport.Transport{Options: transport.Options{HeaderTimeout: limit}}
	for _, body := range []io.Reader{nil, io.MultiReader(strings.NewReader("x"))} {
		_, err = quick.RoundTrip(must(http.NewRequest("PUT", stall(""), body)))
		if t1, ok := errors.AsType[net.Error](err); !ok || !t1.Timeout() {
			t.Errorf("no answer in time: %v", err)
		}
	}
	res, err = quick.RoundTrip(must(http.NewRequest("GET", stall("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"), nil)))
	if err != nil {
		t.Fatal(err)
	}
	var closed atomic.Bool
	time.AfterFunc(limit*5/4, func() {
		closed.Store(true)
		res.Body.Close()
	})
	if _, err := io.ReadAll(res.Body); err == nil || !closed.Load() {
		t.Errorf("the header's time ended the body: %v", err)
	}
}

// TestEarlyAnswer has an answer be read that comes before the request's body has ended.
func TestEarlyAnswer(t *testing.T) {
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
			_, _ = io.Copy(io.Discard, in)
		}
	})
	body, never := io.Pipe()
	defer never.Close()
	go func() { _, _ = never.Write([]byte("begun")) }()
	tr := &transport.Transport{}
	res, err := tr.RoundTrip(must(http.NewRequest("POST", url, body)))
	if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("got %v, %v", res, err)
	}
	if text, err := io.ReadAll(res.Body); string(text) != "no" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	res.Body.Close()
}

// TestContinue has a body wait for 100, and not be sent if the answer is another.
func TestContinue(t *testing.T) {
	for line, want := range map[string]bool{"HTTP/1.1 100 Continue\r\n\r\n": true, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n": false} {
		var sent atomic.Bool
		url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, line)
			if body, err := io.ReadAll(r.Body); err == nil && string(body) == "body" {
				sent.Store(true)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		})
		r := must(http.NewRequest("PUT", url, strings.NewReader("body")))
		r.Header.Set("Expect", "100-continue")
		var news []int
		r = r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, _ textproto.MIMEHeader) error {
			news = append(news, status)
			return nil
		}}))
		res, err := (&transport.Transport{}).RoundTrip(r)
		if err != nil || sent.Load() != want || (res.StatusCode == 200) != want || (len(news) == 1) != want {
			t.Errorf("%q: got %v, %v, the body was sent: %t, news %v", line, res, err, sent.Load(), news)
		}
	}
}

// TestSwitch gives the connection away, with what came behind the head.
func TestSwitch(t *testing.T) {
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello")
		_, _ = io.Copy(c, in)
	})
	r := must(http.NewRequest("GET", url, nil))
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "x")
	res, err := (&transport.Transport{}).RoundTrip(r)
	if err != nil || res.StatusCode != 101 {
		t.Fatalf("got %v, %v", res, err)
	}
	rw := res.Body.(io.ReadWriteCloser)
	defer rw.Close()
	got := make([]byte, 10)
	_, _ = io.WriteString(rw, "again")
	if _, err := io.ReadFull(rw, got); string(got) != "helloagain" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestMany has many callers at once, some of which go away, leave nothing behind.
func TestMany(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body)%7 == 0 {
			time.Sleep(time.Millisecond)
		}
		w.Header().Set("X-Path", r.URL.Path)
		_, _ = w.Write(body)
	}))
	defer s.Close()
	before := runtime.NumGoroutine()
	tr := &transport.Transport{Options: transport.Options{Idle: 8, IdleTimeout: 50 * time.Millisecond}}
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%10 == 0 {
				time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
			}
			text := strings.Repeat("x", i*31%20_000)
			res, err := tr.RoundTrip(must(http.NewRequestWithContext(ctx, "POST", fmt.Sprint(s.URL, "/", i), strings.NewReader(text))))
			if err != nil {
				if i%10 != 0 {
					t.Error(err)
				}
				return
			}
			defer res.Body.Close()
			if i%13 == 0 {
				return // without reading
			}
			got, err := io.ReadAll(res.Body)
			if i%10 != 0 && (err != nil || string(got) != text || res.Header.Get("X-Path") != fmt.Sprint("/", i)) {
				t.Errorf("%d: got %d bytes for %s, %v", i, len(got), res.Header.Get("X-Path"), err)
			}
		})
	}
	all.Wait()
	for range 100 {
		s.CloseClientConnections()
		if runtime.NumGoroutine() <= before+2 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}
