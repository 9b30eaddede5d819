package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/tarehq/tare/serve"
)

// listening has s serve until the test ends, and returns where.
func listening(t *testing.T, s *serve.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.ErrorLog = log.New(io.Discard, "", 0)
	ended := make(chan struct{})
	go func() { s.Serve(l); close(ended) }()
	t.Cleanup(func() { s.Close(); <-ended })
	return l.Addr().String()
}

// spoken sends text on a connection of its own, ends that unless the text has the
// server end it, and returns the answer, when the server has done with the connection. A
// client that has ended its side is gone to the request's context, sooner or later.
func spoken(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "\r\nConnection: close\r\n") {
		c.(*net.TCPConn).CloseWrite()
	}
	answer, _ := io.ReadAll(c)
	return string(answer)
}

// rich asks with everything that a request may hold.
const rich = "POST /p?q=secret HTTP/1.1\r\nHost: secret\r\nX-Secret: secret\r\nCookie: a=secret\r\n" +
	"Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\nTrailer: X-Last\r\n%s\r\n" +
	"8\r\nf=secret\r\n0\r\nX-Last: secret\r\n\r\n"

// secretive leaves something everywhere, or tells all that there is to see of a
// plain request and its answer before anything was set.
func secretive(w http.ResponseWriter, r *http.Request) {
	if r.Method != "POST" {
		fmt.Fprintf(w, "%s %+v %s %v %d %v %t %q %v %v %v %v %s %q %q %v %v", r.Method, *r.URL, r.Proto, r.Header,
			r.ContentLength, r.TransferEncoding, r.Close, r.Host, r.Form, r.PostForm, r.MultipartForm, r.Trailer,
			r.RequestURI, r.Pattern, r.PathValue("id"), r.Context().Err(), w.Header())
		return
	}
	r.ParseForm()
	r.SetPathValue("id", "secret")
	r.Pattern = "/secret"
	w.Header().Set("X-Secret", "secret")
	w.Header().Set("Trailer", "X-Last")
	io.WriteString(w, "secret")
	if r.Header.Get("X-Panic") != "" {
		panic(http.ErrAbortHandler)
	}
}

// TestNothingIsPassedOn ends connections in each way amid something, and wants the
// next, which gets their memory, to see nothing of it.
func TestNothingIsPassedOn(t *testing.T) {
	const plain = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	ways := []struct{ name, text string }{
		{"a request", fmt.Sprintf(rich, "")},
		{"a panic", fmt.Sprintf(rich, "X-Panic: 1\r\n")},
		{"half a head", "GET /secret HTTP/1.1\r\nHost: secret\r\nX-Secret: sec"},
		{"half a body", "POST / HTTP/1.1\r\nHost: secret\r\nContent-Length: 1000\r\n\r\nsecret"},
		{"half a chunk", "POST / HTTP/1.1\r\nHost: secret\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\nsecret"},
		{"empty lines", "\r\n\r\n"},
		{"what is refused", "secret\r\n\r\n"},
	}
	for _, reuse := range []bool{false, true} {
		h := http.HandlerFunc(secretive)
		want := undated(spoken(t, listening(t, &serve.Server{Handler: h, Reuse: reuse}), plain))
		if !strings.Contains(want, "GET {Scheme:") {
			t.Fatalf("got %q, want the plain request told", want)
		}
		for _, way := range ways {
			t.Run(fmt.Sprintf("reuse=%t/%s", reuse, way.name), func(t *testing.T) {
				addr := listening(t, &serve.Server{Handler: h, Reuse: reuse})
				for range 20 { // the pool gives the memory back mostly, not always
					spoken(t, addr, way.text)
					if got := undated(spoken(t, addr, plain)); got != want {
						t.Fatalf("got\n%q, want\n%q", got, want)
					}
				}
			})
		}
	}
}

// TestNothingStays asks twice on one connection, and wants the second answer to tell nothing of
// the first request.
func TestNothingStays(t *testing.T) {
	const plain = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	for _, reuse := range []bool{false, true} {
		addr := listening(t, &serve.Server{Handler: http.HandlerFunc(secretive), Reuse: reuse})
		want := undated(spoken(t, addr, plain))
		for _, first := range []string{
			fmt.Sprintf(rich, ""),
			"GET /secret?secret HTTP/1.1\r\nHost: secret\r\n\r\n",
			"GET /secret? HTTP/1.1\r\nHost: secret\r\n\r\n",
			"GET http://secret/%2Fsecret?secret HTTP/1.1\r\nHost: secret\r\n\r\n",
		} {
			answers := spoken(t, addr, first+plain)
			if got := undated(answers[max(0, strings.LastIndex(answers, "HTTP/1.1 200 OK\r\n")):]); got != want {
				t.Errorf("reuse=%t, after %q: got\n%q, want\n%q", reuse, first, got, want)
			}
		}
	}
}

// undated is an answer without its Date.
func undated(answer string) string {
	before, rest, found := strings.Cut(answer, "\r\nDate: ")
	if !found {
		return answer
	}
	_, after, _ := strings.Cut(rest, "\r\n")
	return before + "\r\n" + after
}

// TestReusedHeadLasts reads a body that does not fit beside its head into the
// connection's buffer: until the handler returns, the head is as it was.
func TestReusedHeadLasts(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		addr := listening(t, &serve.Server{Reuse: reuse, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, r.URL.Path, r.URL.RawQuery, r.Host, r.Header.Get("X-Own"), r.Trailer.Get("X-Last"))
		})})
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		in := bufio.NewReader(c)
		for range 3 {
			chunk := fmt.Sprintf("%x\r\n%s\r\n", 3000, strings.Repeat("#", 3000))
			io.WriteString(c, "POST /path?query HTTP/1.1\r\nHost: host\r\nX-Own: own\r\nTransfer-Encoding: chunked\r\nTrailer: X-Last\r\n\r\n")
			for range 10 {
				io.WriteString(c, chunk)
			}
			io.WriteString(c, "0\r\nX-Last: last\r\n\r\n")
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(res.Body)
			if want := "30000/pathqueryhostownlast"; string(got) != want {
				t.Errorf("reuse %t: got %q, want %q", reuse, got, want)
			}
		}
	}
}

// TestFollowedContextIsNotReused asks for a context's end: what follows that may
// look at it after the handler has returned, so no later request has it, be it on
// this connection or another.
func TestFollowedContextIsNotReused(t *testing.T) {
	var mu sync.Mutex
	var kept []context.Context
	addr := listening(t, &serve.Server{Reuse: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for _, ctx := range kept {
			if ctx == r.Context() || ctx.Err() != context.Canceled {
				t.Errorf("an earlier request's context: it is the next's: %t, it has ended by %v", ctx == r.Context(), ctx.Err())
			}
		}
		r.Context().Done()
		kept = append(kept, r.Context())
	})})
	for range 10 {
		answer := spoken(t, addr, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 3))
		if n := strings.Count(answer, "200 OK"); n != 3 {
			t.Fatalf("got %d answers, want 3: %q", n, answer)
		}
	}
}

// TestRequestIsLetGo ends connections: the memory that waits for others does not hold on
// to what their requests held.
func TestRequestIsLetGo(t *testing.T) {
	type bulk struct{ io.ReadCloser }
	held := make(chan weak.Pointer[bulk], 1)
	addr := listening(t, &serve.Server{Reuse: true, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b := &bulk{r.Body}
		held <- weak.Make(b)
		r.Body = b
	})})
	const conns = 20
	free := 0
	for range conns { // a connection's goroutine may not have ended yet
		spoken(t, addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		runtime.GC() // a second one would free the waiting memory itself
		if b := <-held; b.Value() == nil {
			free++
		}
	}
	if free < conns/2 {
		t.Errorf("after %d of %d connections their requests were held on to", conns-free, conns)
	}
}

// TestHijackedRequestIsNotReused keeps a request with the connection taken over:
// whoever has the one commonly has the other, too.
func TestHijackedRequestIsNotReused(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		held := make(chan *http.Request, 1)
		addr := listening(t, &serve.Server{Reuse: reuse, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/kept" {
				return
			}
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			held <- r
			c.Close()
		})})
		for range 20 { // the pool gives memory back mostly, not always
			spoken(t, addr, "GET /kept HTTP/1.1\r\nHost: kept\r\nX-Own: kept\r\n\r\n")
			kept := <-held
			spoken(t, addr, "GET /next HTTP/1.1\r\nHost: next\r\nX-Own: next\r\n\r\n")
			if got := kept.URL.Path + " " + kept.Host + " " + kept.Header.Get("X-Own"); got != "/kept kept kept" {
				t.Fatalf("reuse %t: after another request the one kept is %q", reuse, got)
			}
		}
	}
}
