//go:build linux

package serve_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// ended is what a handler saw of a client that would not go on.
type ended struct {
	path string
	err  error
}

// streamServer speaks HTTP/2 under short limits and tells how its handlers fare.
func streamServer(t *testing.T, stall time.Duration) (f *fort, told <-chan ended) {
	ends := make(chan ended, 100)
	s := slowServer(orders{H2C: true})
	s.Limits.StallTimeout = stall
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		switch r.URL.Path {
		case "/body":
			_, err = io.Copy(io.Discard, r.Body)
		case "/big":
			_, err = io.Copy(w, strings.NewReader(strings.Repeat("a", 8<<20)))
		case "/own":
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(long))
			_, err = io.Copy(io.Discard, r.Body)
			io.WriteString(w, "ok")
		default:
			io.WriteString(w, "ok")
		}
		ends <- ended{r.URL.Path, err}
	})
	return fortify(t, s), ends
}

// next waits for a handler to return.
func next(t *testing.T, told <-chan ended) ended {
	t.Helper()
	select {
	case end := <-told:
		return end
	case <-time.After(long):
		t.Fatal("no handler has returned")
		return ended{}
	}
}

// client2 speaks HTTP/2 with prior knowledge.
func client2(t *testing.T) *http.Client {
	tr := &http.Transport{Protocols: protocols("h2c")}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestStreamsEnd lets requests by HTTP/2 stand still. Each must end, and others
// on the same connection must not.
func TestStreamsEnd(t *testing.T) {
	f, told := streamServer(t, 300*time.Millisecond)
	client := client2(t)
	for _, sent := range []string{"a", strings.Repeat("a", 16<<10)} {
		body, more := io.Pipe()
		go io.WriteString(more, sent)
		go client.Post("http://"+f.addr+"/body", "text/plain", body)
		if end := next(t, told); end.path != "/body" || !errors.Is(end.err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes of a body, then nothing: the handler of %s saw %v, want %v", len(sent), end.path, end.err, os.ErrDeadlineExceeded)
		}
		more.Close()
	}
	res, err := client.Get("http://" + f.addr + "/big") // and does not read it
	if err != nil {
		t.Fatal(err)
	}
	if end := next(t, told); end.path != "/big" || end.err == nil {
		t.Errorf("an answer that nobody takes: the handler of %s saw %v, want an error", end.path, end.err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Error("an answer that nobody took for a while was whole in the end")
	}
	ok2(t, client, f.addr)
}

// ok2 demands that a client is answered by HTTP/2.
func ok2(t *testing.T, client *http.Client, addr string) {
	t.Helper()
	res, err := client.Get("http://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); string(body) != "ok" || err != nil || res.ProtoMajor != 2 {
		t.Errorf("answer %q by %s, %v, want ok by HTTP/2", body, res.Proto, err)
	}
}

// Frames of HTTP/2. The heads are of stream 1, with HPACK's static table.
const (
	preface2    = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	settings2   = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	noWindow2   = "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00" // streams may send nothing
	get2        = "\x00\x00\x06\x01\x05\x00\x00\x00\x01\x82\x84\x86\x01\x01a"    // GET /
	big2        = "\x00\x00\x0b\x01\x05\x00\x00\x00\x01\x82\x86\x01\x01a\x04\x04/big"
	post2       = "\x00\x00\x0c\x01\x04\x00\x00\x00\x01\x83\x86\x01\x01a\x04\x05/body" // without its body
	data2       = "\x00\x00\x01\x00\x00\x00\x00\x00\x01a"                              // a byte of it
	ping2       = "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"
	resetStream = 3
)

// TestStreamsEndings leaves no room for the end of an answer, which the server
// sends once the handler has returned.
func TestStreamsEndings(t *testing.T) {
	f, told := streamServer(t, 300*time.Millisecond)
	nc := f.dial()
	if _, err := io.WriteString(nc, preface2+noWindow2+get2); err != nil {
		t.Fatal(err)
	}
	if end := next(t, told); end.err != nil {
		t.Errorf("the handler saw %v", end.err)
	}
	for {
		kind, err := frame2(nc)
		if err != nil {
			t.Fatalf("%v, before the stream was reset", err)
		}
		if kind == resetStream {
			return
		}
	}
}

// frame2 reads a frame and returns its type.
func frame2(nc net.Conn) (byte, error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(nc, head); err != nil {
		return 0, err
	}
	_, err := io.CopyN(io.Discard, nc, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
	return head[3], err
}

// TestStreamsFair holds clients that go on slowly to be served, and a handler's
// own deadline to take the place of the limits.
func TestStreamsFair(t *testing.T) {
	f, told := streamServer(t, time.Second)
	client := client2(t)
	for path, pause := range map[string]time.Duration{"/body": 100 * time.Millisecond, "/own": 1500 * time.Millisecond} {
		body, more := io.Pipe()
		go func() {
			for range 2 * time.Second / pause {
				more.Write(make([]byte, 500))
				time.Sleep(pause)
			}
			more.Close()
		}()
		res, err := client.Post("http://"+f.addr+path, "text/plain", body)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		res.Body.Close()
		if end := next(t, told); end.err != nil {
			t.Errorf("%s: the handler saw %v", path, end.err)
		}
	}
	f.quiet()
}

func TestStreamsFields(t *testing.T) {
	f := fortify(t, &serve.Server{
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }),
		Protocols: protocols("1", "h2c"), Limits: serve.Limits{MaxHeaders: 20},
	})
	client := client2(t)
	for _, tc := range []struct{ fields, want int }{{17, 200}, {18, 431}} { // with Host, User-Agent and Accept-Encoding
		req, err := http.NewRequest("GET", "http://"+f.addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tc.fields {
			req.Header.Set("X-"+strconv.Itoa(i), "a")
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tc.want || res.ProtoMajor != 2 {
			t.Errorf("%d fields: %s %s, want %d by HTTP/2", tc.fields+3, res.Proto, res.Status, tc.want)
		}
	}
	f.quiet()
}

// TestStreamsConnect wants CONNECT by HTTP/2 refused unless the handler is a proxy.
func TestStreamsConnect(t *testing.T) {
	for _, tc := range []struct {
		lenient serve.Lenient
		want    int
	}{{serve.Lenient{}, http.StatusNotImplemented}, {serve.Lenient{Connect: true}, http.StatusOK}} {
		t.Run(strconv.Itoa(tc.want), func(t *testing.T) {
			f := fortify(t, &serve.Server{
				Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }),
				Protocols: protocols("1", "h2c"), Lenient: tc.lenient,
			})
			req, err := http.NewRequest(http.MethodConnect, "http://"+f.addr, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := client2(t).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != tc.want || res.ProtoMajor != 2 {
				t.Errorf("%s %s, want %d by HTTP/2", res.Proto, res.Status, tc.want)
			}
			f.quiet()
		})
	}
}
