package transport_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/client/transport"
)

// TestEarlyBird has an answer be read that comes before the request was sent, on a new
// connection: nothing tells of it later.
func TestEarlyBird(t *testing.T) {
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
		_, _ = io.Copy(io.Discard, in)
	})
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		time.Sleep(20 * time.Millisecond) // the answer is there
		return c, err
	}
	tr := &transport.Transport{Options: transport.Options{Dial: dial, HeaderTimeout: 5 * time.Second}}
	res, err := tr.RoundTrip(must(http.NewRequest("GET", url, nil)))
	if err != nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("got %v, %v", res, err)
	}
	res.Body.Close()
}

// TestHugeHead has a head come whole that no socket takes at once.
func TestHugeHead(t *testing.T) {
	const size = 24 << 20
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		time.Sleep(50 * time.Millisecond)
		n := 0
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if n += len(line); line == "\r\n" {
				break
			}
		}
		text := fmt.Sprint(n)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	})
	r := must(http.NewRequest("GET", url, nil))
	r.Header.Set("X", strings.Repeat("x", size))
	res, err := (&transport.Transport{}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	text := string(must(io.ReadAll(res.Body)))
	var n int
	if _, err := fmt.Sscan(text, &n); err != nil || n <= size || n > size+1000 {
		t.Errorf("the upstream has read %q bytes, want a little more than %d", text, size)
	}
}

// patient is a context with a time for the answer's header.
type patient struct {
	context.Context
	d time.Duration
}

func (p patient) HeaderTimeout() time.Duration  { return p.d }
func (p patient) Inform(int, http.Header) error { return nil }
func (p patient) Header() http.Header           { return nil }
func (p patient) Memory() *transport.Memory     { return nil }
func (p patient) request(url string) *http.Request {
	return must(http.NewRequestWithContext(p, "GET", url, nil))
}

// TestLapse has answers be late by the time of each request, though requests with a longer
// one wait beside it, and leaves those and the next requests alone.
func TestLapse(t *testing.T) {
	answer := make(chan struct{})
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if r.URL.Path == "/late" {
				<-answer
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	tr := &transport.Transport{Options: transport.Options{HeaderTimeout: time.Minute}}
	ask := func(path string, d time.Duration) error {
		res, err := tr.RoundTrip(patient{t.Context(), d}.request(url + path))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.ReadAll(res.Body)
		return err
	}
	long := make(chan error, 2)
	for _, d := range []time.Duration{0, time.Hour} {
		go func() { long <- ask("/late", d) }()
	}
	time.Sleep(20 * time.Millisecond) // they wait
	for _, d := range []time.Duration{60 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		begun := time.Now()
		err := ask("/late", d)
		if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %s: got %v, want a timeout", d, err)
		}
		if took := time.Since(begun); took < d {
			t.Errorf("a timeout of %s came after %s", d, took)
		}
		for range 5 {
			if err := ask("/", d+10*time.Second); err != nil {
				t.Errorf("after it: %v", err)
			}
		}
	}
	close(answer)
	for range cap(long) {
		if err := <-long; err != nil {
			t.Errorf("with a longer time: %v", err)
		}
	}
}

// TestLimitEnds has the header's time neither end a body nor a connection that was switched
// to another protocol, nor the next request's wait.
func TestLimitEnds(t *testing.T) {
	const limit = 500 * time.Millisecond // a busy machine answers within it, too
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if r.URL.Path == "/switch" {
				_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
				time.Sleep(limit * 5 / 4)
				_, _ = io.WriteString(c, "later")
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
			time.Sleep(limit * 5 / 4)
			_, _ = io.WriteString(c, "later")
		}
	})
	tr := &transport.Transport{Options: transport.Options{HeaderTimeout: limit}}
	for _, path := range []string{"/", "/", "/switch"} {
		r := must(http.NewRequest("GET", url+path, nil))
		if path == "/switch" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "x")
		}
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.HasSuffix(string(text), "later") {
			t.Errorf("%s: got %q, %v", path, text, err)
		}
	}
}

// TestHalfClosed has no request wait for an answer on a connection of which the upstream
// has ended its half while it was idle.
func TestHalfClosed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: nothing tells there that a connection has ended")
	}
	for _, body := range []string{"", "x"} {
		ended := make(chan struct{})
		url := script(t, func(n int, c net.Conn, in *bufio.Reader) {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", n)
			if n == 1 {
				_ = c.(*net.TCPConn).CloseWrite()
				close(ended)
			}
			_, _ = io.Copy(io.Discard, in)
		})
		tr := &transport.Transport{Options: transport.Options{HeaderTimeout: 5 * time.Second}}
		for i, text := range []string{"", body} {
			res, err := tr.RoundTrip(must(http.NewRequest("PUT", url, strings.NewReader(text))))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(must(io.ReadAll(res.Body))); got != fmt.Sprint(i+1) {
				t.Errorf("the body %q: got the answer of connection %s, want %d", body, got, i+1)
			}
			res.Body.Close()
			<-ended
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// TestWaitingMemory has many requests that wait for an answer hold no buffers.
func TestWaitingMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: there a connection has its buffer all the time")
	}
	const n, most = 300, 24 << 10 // bytes each, of this test's two sides
	var waiting sync.WaitGroup
	waiting.Add(n)
	answer := make(chan struct{})
	url := script(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		waiting.Done()
		<-answer
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	used := func() int64 {
		var m runtime.MemStats
		for range 3 { // what is in pools goes by the second
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := used()
	tr := &transport.Transport{}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			res, err := tr.RoundTrip(must(http.NewRequest("GET", url, nil)))
			if err != nil {
				t.Error(err)
				return
			}
			if text := must(io.ReadAll(res.Body)); string(text) != "ok" {
				t.Errorf("got %q", text)
			}
			res.Body.Close()
		})
	}
	waiting.Wait()
	time.Sleep(20 * time.Millisecond) // the last of them is about to wait
	if each := (used() - before) / n; each > most {
		t.Errorf("a request that waits holds %d bytes, want at most %d", each, most)
	}
	close(answer)
	all.Wait()
}

// writer takes so many bytes, and then fails.
type writer struct {
	strings.Builder
	most int
}

var errWriter = errors.New("the writer is full")

func (w *writer) Write(p []byte) (int, error) {
	if w.Len()+len(p) > w.most {
		return 0, errWriter
	}
	return w.Builder.Write(p)
}

// TestPass is the table of what writes an answer's body out of its connection.
func TestPass(t *testing.T) {
	const size = 200_000
	text := strings.Repeat("0123456789", size/10)
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
	for name, c := range map[string]struct {
		answer  string
		most    int
		read    error
		written int // -1: whatever it is
		write   error
	}{
		"whole":       {head + text, size, nil, size, nil},
		"cut":         {head + text[:1000], size, io.ErrUnexpectedEOF, 1000, nil},
		"full":        {head + text, 100, nil, 0, errWriter},
		"more":        {head + text + "HTTP/1.1 200 OK\r\n\r\n", size, nil, size, nil},
		"full later":  {head + text, 100_000, nil, -1, errWriter},
		"cut at once": {head, size, io.ErrUnexpectedEOF, 0, nil},
	} {
		tr := &transport.Transport{}
		res, err := tr.RoundTrip(must(http.NewRequest("GET", answering(t, c.answer), nil)))
		if err != nil {
			t.Fatal(err)
		}
		w := &writer{most: c.most}
		read, write := res.Body.(interface {
			Pass(io.Writer) (read, write error)
		}).Pass(w)
		if read != c.read || write != c.write || c.written >= 0 && w.Len() != c.written || !strings.HasPrefix(text, w.String()) {
			t.Errorf("%s: got %d bytes, %v and %v, want %d, %v and %v", name, w.Len(), read, write, c.written, c.read, c.write)
		}
		if err := res.Body.Close(); err != nil {
			t.Errorf("%s: closing: %v", name, err)
		}
	}
}
