//go:build linux

package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// keptObjects is what the handler of one request leaves to another goroutine.
type keptObjects struct {
	w       http.ResponseWriter
	fields  http.Header
	r       *http.Request
	body    io.ReadCloser
	context context.Context
}

// lateUse is what that goroutine does while the connection serves further requests.
// By default the outcome is that of the kept request; in Reuse mode it may be another's.
type lateUse struct {
	object, use        string
	do                 func(*keptObjects) string
	byDefault, byReuse string
}

var lateUses = []lateUse{
	{"the map of `w.Header()`", "read", func(k *keptObjects) string {
		seen := 0
		for range k.fields {
			seen++
		}
		return fmt.Sprint(seen, " ", k.fields.Get("X-Own"))
	}, "2 first", "2 next"},
	{"the map of `w.Header()`", "change", func(k *keptObjects) string {
		k.fields.Set("X-Late", "late")
		k.fields.Del("X-Late")
		return "changed"
	}, "changed", "changed"},
	{"`w`", "`Header`", func(k *keptObjects) string { return k.w.Header().Get("X-Own") }, "first", "next"},
	{"`w`", "`WriteHeader`", func(k *keptObjects) string { k.w.WriteHeader(http.StatusTeapot); return "ignored" }, "ignored", "ignored"},
	{"`w`", "`Write`, `WriteString`", func(k *keptObjects) string {
		if _, err := k.w.Write([]byte("late")); err != nil {
			return "error"
		}
		return "written"
	}, "error", "written"},
	{"`w`", "`Flush`", func(k *keptObjects) string { return failed(http.NewResponseController(k.w).Flush()) }, "error", "none"},
	{"`w`", "`ReadFrom`", func(k *keptObjects) string {
		_, err := k.w.(io.ReaderFrom).ReadFrom(strings.NewReader("late"))
		return failed(err)
	}, "error", "none"},
	{"`w`", "deadlines, `EnableFullDuplex`", func(k *keptObjects) string {
		c := http.NewResponseController(k.w)
		past := time.Unix(1, 0)
		for _, err := range []error{c.SetReadDeadline(past), c.SetWriteDeadline(past), c.EnableFullDuplex()} {
			if err == nil {
				return "none"
			}
		}
		return "error"
	}, "error", "none"},
	{"`w`", "`CloseNotify`", func(k *keptObjects) string {
		select {
		case <-k.w.(interface{ CloseNotify() <-chan bool }).CloseNotify():
			return "gone"
		default:
			return "nothing"
		}
	}, "nothing", "nothing"},
	{"`w`", "`Hijack`", func(k *keptObjects) string {
		nc, _, err := http.NewResponseController(k.w).Hijack()
		if err == nil {
			io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			nc.Close()
		}
		return failed(err)
	}, "error", "none"},
	{"`r`", "read its fields", func(k *keptObjects) string {
		return fmt.Sprint(k.r.Method, " ", k.r.URL.Path, " ", k.r.Host, " ", k.r.Header.Get("X-Own"), " ", k.r.ContentLength)
	}, "POST /first own.example first -1", "POST /next own.example next -1"},
	{"`r`", "`Clone`, `WithContext`", func(k *keptObjects) string {
		return k.r.Clone(context.Background()).Header.Get("X-Own")
	}, "first", "next"},
	{"`r.Trailer`", "read", func(k *keptObjects) string { return k.r.Trailer.Get("X-Last") }, "first", ""},
	{"`r.Body`", "`Read`", func(k *keptObjects) string {
		_, err := k.body.Read(make([]byte, 1))
		return failed(err)
	}, "error", "none"},
	{"`r.Body`", "`Close`", func(k *keptObjects) string { return failed(k.body.Close()) }, "none", "none"},
	{"`r.Context()`", "`Err`, `Done`", func(k *keptObjects) string {
		select {
		case <-k.context.Done():
			return fmt.Sprint(k.context.Err())
		default:
			return fmt.Sprint("goes on, ", k.context.Err())
		}
	}, "context canceled", "goes on, <nil>"},
	{"`r.Context()`", "`Value`", func(k *keptObjects) string {
		_, ok := k.context.Value(http.LocalAddrContextKey).(net.Addr)
		return fmt.Sprint(ok)
	}, "true", "true"},
}

func failed(err error) string {
	if err != nil {
		return "error"
	}
	return "none"
}

// ownRequest is a request whose every part names it.
func ownRequest(name string) string {
	return "POST /" + name + " HTTP/1.1\r\nHost: own.example\r\nX-Own: " + name + "\r\nTrailer: X-Last\r\nTransfer-Encoding: chunked\r\n\r\n" +
		fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Last: %s\r\n\r\n", len(name), name, name)
}

// hearOwn reads the answer to such a request.
func hearOwn(br *bufio.Reader, name string) error {
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		return err
	}
	return checkOwn(res, name)
}

func checkOwn(res *http.Response, name string) error {
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || string(body) != name || res.Header.Get("X-Own") != name || len(res.Header) > 5 {
		return fmt.Errorf("answer %d %q, fields %v, error %v, want that to %s", res.StatusCode, body, res.Header, err, name)
	}
	return nil
}

// answerOwn answers with the request's own parts.
func answerOwn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Own", strings.Clone(r.Header.Get("X-Own")))
	w.Header().Set("Content-Type", "text/plain")
	io.Copy(w, r.Body)
}

// ownClient sends such requests by one connection.
type ownClient func(name string) error

func ownConn(t *testing.T, addr string) ownClient {
	nc := call(t, addr)
	br := bufio.NewReader(nc)
	return func(name string) error {
		io.WriteString(nc, ownRequest(name))
		return hearOwn(br, name)
	}
}

// ownStreams sends them by HTTP/2.
func ownStreams(t *testing.T, addr string) ownClient {
	client := client2(t)
	return func(name string) error {
		req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/"+name, io.MultiReader(strings.NewReader(name)))
		if err != nil {
			return err
		}
		req.Host = "own.example"
		req.Header.Set("X-Own", name)
		req.Trailer = http.Header{"X-Last": {name}}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		return checkOwn(res, name)
	}
}

// TestUsedAfterReturn uses each object that a handler holds after it has returned, from
// another goroutine, while the connection serves further requests. The race detector
// sees what the engine shares. By HTTP/2 http.Server ends the process at most of these.
func TestUsedAfterReturn(t *testing.T) {
	for _, u := range lateUses {
		t.Run(u.object+"/"+u.use, func(t *testing.T) { u.after(t, &serve.Server{}, ownConn) })
		if u.use != "`ReadFrom`" { // which there is not by HTTP/2
			t.Run("HTTP_2/"+u.object+"/"+u.use, func(t *testing.T) {
				u.after(t, &serve.Server{Protocols: protocols("1", "h2c")}, ownStreams)
			})
		}
	}
}

// after uses the objects of a first request while others follow.
func (u *lateUse) after(t *testing.T, s *serve.Server, connect func(*testing.T, string) ownClient) {
	kept := make(chan *keptObjects, 1)
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerOwn(w, r)
		if r.URL.Path == "/first" {
			kept <- &keptObjects{w, w.Header(), r, r.Body, r.Context()}
		}
	})
	ask := connect(t, listening(t, s))
	if err := ask("first"); err != nil {
		t.Fatal(err)
	}
	k := <-kept
	if err := ask("settled"); err != nil { // most often the first is over
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			if got := u.do(k); got != u.byDefault {
				t.Errorf("got %q, want %q", got, u.byDefault)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 50 {
		if err := ask("next"); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	<-stopped
}

// TestUsedAfterReturnReuse shows what the same comes to in Reuse mode, in the middle of
// the next request.
func TestUsedAfterReturnReuse(t *testing.T) {
	for _, u := range lateUses {
		t.Run(u.object+"/"+u.use, func(t *testing.T) {
			kept, entered, goOn := make(chan *keptObjects, 1), make(chan struct{}), make(chan struct{})
			addr := listening(t, &serve.Server{Reuse: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Own", strings.Clone(r.Header.Get("X-Own")))
				w.Header().Set("Content-Type", "text/plain")
				if r.URL.Path == "/first" {
					kept <- &keptObjects{w, w.Header(), r, r.Body, r.Context()}
				} else {
					entered <- struct{}{}
					<-goOn
				}
			})})
			nc := call(t, addr)
			defer nc.Close()
			io.WriteString(nc, ownRequest("first")+ownRequest("next"))
			k := <-kept
			<-entered
			if got := u.do(k); got != u.byReuse {
				t.Errorf("got %q, want %q", got, u.byReuse)
			}
			close(goOn)
			if _, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLateUsesAreListed finds each use in the table of docs/serve.md.
func TestLateUsesAreListed(t *testing.T) {
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range lateUses {
		if row := "\n| " + u.object + " | " + u.use + " | "; !bytes.Contains(page, []byte(row)) {
			t.Errorf("docs/serve.md has no row that begins with %q", row)
		}
	}
}

// TestBodyReadAtReturn has another goroutine wait for a body when the handler returns:
// neither it nor the connection waits for what the client does not send.
func TestBodyReadAtReturn(t *testing.T) {
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhalf",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nhalf",
		"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000\r\n\r\nhalf",
	} {
		for _, reuse := range []bool{false, true} {
			for _, panics := range []bool{false, true} {
				read := make(chan error, 1)
				s := &serve.Server{Reuse: reuse, Limits: serve.Limits{MaxDrain: 1}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, begun := r.Body, make(chan struct{})
					go func() {
						close(begun)
						_, err := io.Copy(io.Discard, body)
						read <- err
					}()
					<-begun
					time.Sleep(20 * time.Millisecond) // most often it waits by now
					if panics {
						panic(http.ErrAbortHandler)
					}
				})}
				nc := call(t, listening(t, s))
				began := time.Now()
				io.WriteString(nc, request)
				io.Copy(io.Discard, nc)
				nc.Close()
				if err := <-read; !errors.Is(err, http.ErrBodyReadAfterClose) {
					t.Errorf("%q, reuse %t, panic %t: the read returned %v, want %v", request, reuse, panics, err, http.ErrBodyReadAfterClose)
				}
				if took := time.Since(began); took > long/2 {
					t.Errorf("%q, reuse %t, panic %t: the connection ended after %v", request, reuse, panics, took)
				}
			}
		}
	}
}

// TestUsedAtReturn uses objects for the first time when their handler has just returned and
// the server completes the answer: the race detector sees what both look at.
func TestUsedAtReturn(t *testing.T) {
	for use, do := range map[string]func(http.ResponseWriter, *http.Request){
		"Header":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Get("X-Own") },
		"ReadFrom": func(w http.ResponseWriter, _ *http.Request) { w.(io.ReaderFrom).ReadFrom(strings.NewReader("")) },
		"Close":    func(_ http.ResponseWriter, r *http.Request) { r.Body.Close() },
	} {
		t.Run(use, func(t *testing.T) {
			var users sync.WaitGroup
			addr := listening(t, &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				returned := make(chan struct{})
				users.Go(func() {
					<-returned
					do(w, r)
				})
				close(returned)
			})})
			nc := call(t, addr)
			br := bufio.NewReader(nc)
			for range 200 {
				io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
				res, err := http.ReadResponse(br, nil)
				if err != nil {
					t.Fatal(err)
				}
				if res.StatusCode != http.StatusOK || res.ContentLength != 0 {
					t.Errorf("answer %d of %d bytes, want 200 of none", res.StatusCode, res.ContentLength)
				}
			}
			users.Wait()
		})
	}
}

// TestHijackedAtPanic has another goroutine take the connection over while its handler panics:
// it gets none, or one that it can write to.
func TestHijackedAtPanic(t *testing.T) {
	var users sync.WaitGroup
	var pause, taken atomic.Int64
	addr := listening(t, &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := make(chan struct{})
		users.Go(func() {
			close(begun)
			nc, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			taken.Add(1)
			time.Sleep(2 * time.Millisecond)
			if _, err := io.WriteString(nc, "taken over"); err != nil {
				t.Errorf("writing to the connection taken over: %v", err)
			}
			nc.Close()
		})
		<-begun
		for until := time.Now().Add(time.Duration(pause.Load())); time.Now().Before(until); {
		}
		panic(http.ErrAbortHandler)
	})})
	const tries = 300
	for range tries {
		pause.Add(int64(200 * time.Nanosecond))
		nc := call(t, addr)
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		io.Copy(io.Discard, nc)
		nc.Close()
	}
	users.Wait()
	t.Logf("taken over in %d of %d tries", taken.Load(), tries)
}

// TestBodyClosedAtReturn has another goroutine close the body when the handler has just
// returned: the connection does not wait for what the client does not send.
func TestBodyClosedAtReturn(t *testing.T) {
	const stall = 4 * time.Second
	var pause atomic.Int64
	addr := listening(t, &serve.Server{Limits: serve.Limits{StallTimeout: stall}, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		returned, body := make(chan struct{}), r.Body
		go func() {
			<-returned
			for until := time.Now().Add(time.Duration(pause.Load())); time.Now().Before(until); {
			}
			body.Close()
		}()
		close(returned)
	})})
	for range 100 {
		pause.Add(int64(time.Microsecond))
		nc := call(t, addr)
		began := time.Now()
		io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n100\r\n")
		io.Copy(io.Discard, nc)
		nc.Close()
		if took := time.Since(began); took > stall/2 {
			t.Fatalf("closed %v after the return: the connection ended after %v", time.Duration(pause.Load()), took)
		}
	}
}

// TestWriterUsedAtReturn returns while another goroutine writes, or has the kernel copy
// from a source that has nothing to give: the server is done with the connection.
func TestWriterUsedAtReturn(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for name, write := range map[string]func(http.ResponseWriter){
		"Write": func(w http.ResponseWriter) {
			for {
				if _, err := io.WriteString(w, "some text\n"); err != nil {
					return
				}
			}
		},
		"ReadFrom": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100000")
			io.Copy(w, from)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			addr := listening(t, &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					go func() {
						defer close(ended)
						write(w)
					}()
					time.Sleep(50 * time.Millisecond)
				}
			})})
			nc := call(t, addr)
			defer nc.Close()
			go io.Copy(to, bytes.NewReader(make([]byte, 1000)))
			io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if _, err := io.Copy(io.Discard, nc); err != nil && name == "Write" {
				t.Error(err)
			}
			to.Close()
			select {
			case <-ended:
			case <-time.After(long):
				t.Error("the goroutine goes on")
			}
		})
	}
}

// TestStreamsWriterUsedAtReturn has other goroutines write by HTTP/2 as their handlers return:
// none ends the process or goes on, and no answer has bytes of another.
func TestStreamsWriterUsedAtReturn(t *testing.T) {
	var writers sync.WaitGroup
	addr := listening(t, &serve.Server{Protocols: protocols("1", "h2c"), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, begun := r.URL.Path, make(chan struct{})
		writers.Go(func() {
			close(begun)
			for {
				if _, err := io.WriteString(w, own); err != nil {
					return
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					return
				}
			}
		})
		<-begun
	})})
	client := client2(t)
	var askers sync.WaitGroup
	for i := range 4 {
		askers.Go(func() {
			for n := range 50 {
				own := fmt.Sprintf("/%d-%d.", i, n)
				res, err := client.Get("http://" + addr + own)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if rest := strings.ReplaceAll(string(body), own, ""); err != nil || rest != "" {
					t.Errorf("an answer has, but %q, %.100q; error %v", own, rest, err)
				}
			}
		})
	}
	askers.Wait()
	writers.Wait()
}
