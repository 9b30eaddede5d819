package compress_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/compress"
	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/recovery"
)

func Example() {
	mw, err := compress.New(compress.Options{})
	if err != nil {
		panic(err)
	}
	h := mw(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, strings.Repeat("some text, ", 1000))
	}))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept-Encoding", "gzip, br;q=0.5")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Header().Get("Content-Encoding"), w.Header().Get("Vary"), w.Body.Len() < 1000)
	// Output: gzip Accept-Encoding true
}

func middleware(t testing.TB, o compress.Options) func(http.Handler) http.Handler {
	t.Helper()
	mw, err := compress.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// unpack returns what a body is without its encoding.
func unpack(encoding string, body io.Reader) (string, error) {
	switch encoding {
	case "gzip":
		r, err := gzip.NewReader(body)
		if err != nil {
			return "", err
		}
		body = r
	case "br":
		body = brotli.NewReader(body)
	case "zstd":
		r, err := zstd.NewReader(body)
		if err != nil {
			return "", err
		}
		defer r.Close()
		body = r
	}
	b, err := io.ReadAll(body)
	return string(b), err
}

var text = strings.Repeat("some text, and more of it; ", 200)

// TestAnswers has handlers whose answers are and are not compressed, over a server, by
// one Write, by many, by ReadFrom. Bodies arrive as they were written.
func TestAnswers(t *testing.T) {
	const plain, etag = "text/plain; charset=utf-8", `"v1"`
	for name, c := range map[string]struct {
		request  string // fields, as in "A: b|C: d"
		method   string
		status   int
		answer   string // fields
		body     string
		encoding string
		want     string // fields, - for one that must not be there
	}{
		"text":             {"Accept-Encoding: gzip", "GET", 200, "Content-Type: " + plain, text, "gzip", "Vary: Accept-Encoding|Content-Type: " + plain},
		"Brotli":           {"Accept-Encoding: br", "GET", 200, "Content-Type: " + plain, text, "br", "Vary: Accept-Encoding"},
		"zstd":             {"Accept-Encoding: zstd", "GET", 200, "Content-Type: " + plain, text, "zstd", "Vary: Accept-Encoding"},
		"browser":          {"Accept-Encoding: gzip, deflate, br, zstd", "GET", 200, "Content-Type: " + plain, text, "zstd", ""},
		"nothing asked":    {"", "GET", 200, "Content-Type: " + plain, text, "", "Vary: Accept-Encoding"},
		"identity":         {"Accept-Encoding: identity", "GET", 200, "Content-Type: " + plain, text, "", "Vary: Accept-Encoding"},
		"error page":       {"Accept-Encoding: gzip", "GET", 500, "Content-Type: " + plain, text, "gzip", ""},
		"sniffed":          {"Accept-Encoding: gzip", "GET", 200, "", "<html>" + text, "gzip", "Content-Type: text/html; charset=utf-8"},
		"sniffed image":    {"Accept-Encoding: gzip", "GET", 200, "", "\x89PNG\r\n\x1a\n" + text, "", "Content-Type: image/png|Vary: -"},
		"JSON":             {"Accept-Encoding: gzip", "GET", 200, "Content-Type: application/problem+json", text, "gzip", ""},
		"in upper case":    {"Accept-Encoding: gzip", "GET", 200, "Content-Type: TEXT/Plain;Charset=UTF-8", text, "gzip", ""},
		"image":            {"Accept-Encoding: gzip", "GET", 200, "Content-Type: image/jpeg", text, "", "Vary: -"},
		"SVG":              {"Accept-Encoding: gzip", "GET", 200, "Content-Type: image/svg+xml", text, "gzip", ""},
		"malformed type":   {"Accept-Encoding: gzip", "GET", 200, "Content-Type: ;;", text, "", "Vary: -"},
		"small":            {"Accept-Encoding: gzip", "GET", 200, "Content-Type: " + plain, "small", "", "Vary: Accept-Encoding|Content-Length: 5"},
		"length, small":    {"Accept-Encoding: gzip", "GET", 200, "Content-Length: 5|Content-Type: " + plain, "small", "", "Content-Length: 5"},
		"length, large":    {"Accept-Encoding: gzip", "GET", 200, fmt.Sprintf("Content-Length: %d|Content-Type: %s", len(text), plain), text, "gzip", ""},
		"empty":            {"Accept-Encoding: gzip", "GET", 200, "Content-Type: " + plain, "", "", "Vary: Accept-Encoding|Content-Length: 0"},
		"HEAD":             {"Accept-Encoding: gzip", "HEAD", 200, "Content-Type: " + plain, "", "", "Vary: Accept-Encoding"},
		"no content":       {"Accept-Encoding: gzip", "GET", 204, "", "", "", ""},
		"compressed":       {"Accept-Encoding: gzip", "GET", 200, "Content-Encoding: x-own|Content-Type: " + plain, text, "x-own", "Vary: -"},
		"no-transform":     {"Accept-Encoding: gzip", "GET", 200, "Cache-Control: public, No-Transform|Content-Type: " + plain, text, "", "Vary: -"},
		"client forbids":   {"Accept-Encoding: gzip|Cache-Control: no-transform", "GET", 200, "Content-Type: " + plain, text, "", ""},
		"digest":           {"Accept-Encoding: gzip", "GET", 200, "Repr-Digest: sha-256=:AA==:|Content-Type: " + plain, text, "", ""},
		"digest behind":    {"Accept-Encoding: gzip", "GET", 200, "Trailer: X-Own, content-digest|Content-Type: " + plain, text, "", ""},
		"other trailer":    {"Accept-Encoding: gzip", "GET", 200, "Trailer: X-Own|Content-Type: " + plain, text, "gzip", ""},
		"strong ETag":      {"Accept-Encoding: gzip", "GET", 200, "Etag: " + etag + "|Content-Type: " + plain, text, "gzip", `Etag: W/"v1"`},
		"weak ETag":        {"Accept-Encoding: gzip", "GET", 200, "Etag: W/" + etag + "|Content-Type: " + plain, text, "gzip", `Etag: W/"v1"`},
		"ETag as it is":    {"", "GET", 200, "Etag: " + etag + "|Content-Type: " + plain, text, "", `Etag: "v1"`},
		"ranges":           {"Accept-Encoding: gzip", "GET", 200, "Accept-Ranges: bytes|Content-Type: " + plain, text, "gzip", "Accept-Ranges: -"},
		"part":             {"Accept-Encoding: gzip|Range: bytes=0-9", "GET", 206, "Content-Range: bytes 0-9/100|Etag: " + etag + "|Content-Type: " + plain, text, "", `Vary: Accept-Encoding|Etag: "v1"|Content-Range: bytes 0-9/100`},
		"304":              {`Accept-Encoding: gzip|If-None-Match: W/"v1"`, "GET", 304, "Etag: " + etag, "", "", `Vary: Accept-Encoding|Etag: W/"v1"`},
		"304 as it is":     {`Accept-Encoding: gzip|If-None-Match: "v1"`, "GET", 304, "Etag: " + etag, "", "", `Vary: Accept-Encoding|Etag: "v1"`},
		"Vary is there":    {"Accept-Encoding: gzip", "GET", 200, "Vary: Cookie, accept-encoding|Content-Type: " + plain, text, "gzip", "Vary: Cookie, accept-encoding"},
		"Vary has more":    {"Accept-Encoding: gzip", "GET", 200, "Vary: Cookie|Content-Type: " + plain, text, "gzip", "Vary: Cookie, Accept-Encoding"},
		"long field":       {"Accept-Encoding: " + strings.Repeat("x,", 600) + "gzip", "GET", 200, "Content-Type: " + plain, text, "", ""},
		"two lines accept": {"Accept-Encoding: x|Accept-Encoding: gzip", "GET", 200, "Content-Type: " + plain, text, "gzip", ""},
	} {
		for how, write := range map[string]func(http.ResponseWriter, string){
			"at once": func(w http.ResponseWriter, s string) { fmt.Fprint(w, s) },
			"in pieces": func(w http.ResponseWriter, s string) {
				for part := range slices.Chunk([]byte(s), 100) {
					_, _ = w.Write(part)
				}
			},
			"read from": func(w http.ResponseWriter, s string) { _, _ = io.Copy(w, iotest.OneByteReader(strings.NewReader(s))) },
		} {
			s := httptest.NewServer(middleware(t, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range fieldsOf(c.answer) {
					w.Header().Set(name, value)
				}
				if c.status != 200 {
					w.WriteHeader(c.status)
				}
				if c.body != "" {
					write(w, c.body)
				}
			})))
			resp := ask(t, s, c.method, c.request)
			encoding := resp.Header.Get("Content-Encoding")
			got, err := unpack(encoding, resp.Body)
			resp.Body.Close()
			s.Close()
			if resp.StatusCode != c.status || encoding != c.encoding || got != c.body || err != nil {
				t.Errorf("%s, %s: %d by %q, %d bytes, %v; want %d by %q, %d bytes", name, how, resp.StatusCode, encoding, len(got), err, c.status, c.encoding, len(c.body))
			}
			for field, want := range fieldsOf(c.want) {
				if got := strings.Join(resp.Header[field], ", "); got != strings.TrimSuffix(want, "-") {
					t.Errorf("%s, %s: %s is %q, want %q", name, how, field, got, want)
				}
			}
		}
	}
}

// fieldsOf goes through "A: b|C: d".
func fieldsOf(text string) func(yield func(name, value string) bool) {
	return func(yield func(string, string) bool) {
		for field := range strings.SplitSeq(text, "|") {
			if name, value, ok := strings.Cut(field, ": "); ok && !yield(name, value) {
				return
			}
		}
	}
}

func ask(t testing.TB, s *httptest.Server, method, fields string) *http.Response {
	t.Helper()
	r, err := http.NewRequest(method, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range fieldsOf(fields) {
		r.Header.Add(name, value)
	}
	resp, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// TestHead has the answer to HEAD say what that to GET does: a length is not that of what would
// have been compressed.
func TestHead(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"content": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"v1"`)
			http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader(text))
		},
		"fields alone": func(w http.ResponseWriter, r *http.Request) {
			for name, value := range map[string]string{"Content-Type": "text/plain", "Content-Length": strconv.Itoa(len(text)), "Etag": `"v1"`} {
				w.Header().Set(name, value)
			}
			if r.Method != "HEAD" {
				io.WriteString(w, text)
			}
		},
		"written":  func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text[:2000]) },
		"in parts": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text[:500]); io.WriteString(w, text) },
		"small":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "small") },
		"image":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "\x89PNG\r\n\x1a\n"+text[:1500]) },
		"error":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusNotFound) },
		"flushed": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "small")
			w.(http.Flusher).Flush()
		},
	} {
		s := httptest.NewServer(middleware(t, compress.Options{})(h))
		for _, accept := range []string{"", "Accept-Encoding: gzip", "Accept-Encoding: zstd"} {
			get, head := ask(t, s, "GET", accept), ask(t, s, "HEAD", accept)
			if head.StatusCode != get.StatusCode {
				t.Errorf("%s, %s: %d to HEAD and %d to GET", name, accept, head.StatusCode, get.StatusCode)
			}
			for _, field := range []string{"Content-Encoding", "Content-Type", "Vary", "Etag", "Accept-Ranges"} {
				if got, want := head.Header.Get(field), get.Header.Get(field); got != want {
					t.Errorf("%s, %s: %s is %q to HEAD and %q to GET", name, accept, field, got, want)
				}
			}
			if got := head.Header.Get("Content-Length"); got != "" && got != get.Header.Get("Content-Length") {
				t.Errorf("%s, %s: Content-Length %s to HEAD and %q to GET", name, accept, got, get.Header.Get("Content-Length"))
			}
			get.Body.Close()
			head.Body.Close()
		}
		s.Close()
	}
}

// TestStream has each flush arrive before the handler goes on.
func TestStream(t *testing.T) {
	for _, encoding := range []string{"gzip", "br", "zstd"} {
		next := make(chan bool)
		s := httptest.NewServer(middleware(t, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n", i)
				w.(http.Flusher).Flush()
				<-next
			}
		})))
		resp := ask(t, s, "GET", "Accept-Encoding: "+encoding)
		if got := resp.Header.Get("Content-Encoding"); got != encoding {
			t.Fatalf("%s: encoded by %q", encoding, got)
		}
		var lines *bufio.Scanner
		switch encoding {
		case "gzip":
			r, err := gzip.NewReader(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			lines = bufio.NewScanner(r)
		case "br":
			lines = bufio.NewScanner(brotli.NewReader(resp.Body))
		case "zstd":
			r, err := zstd.NewReader(resp.Body, zstd.WithDecoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			lines = bufio.NewScanner(r)
		}
		for i := range 3 {
			if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) {
				t.Fatalf("%s: line %d is %q, %v", encoding, i, lines.Text(), lines.Err())
			}
			next <- true
		}
		if lines.Scan() || lines.Err() != nil {
			t.Errorf("%s: the end is %q, %v", encoding, lines.Text(), lines.Err())
		}
		resp.Body.Close()
		s.Close()
	}
}

// TestPanic has answers that were cut short not look whole, and one that had not begun
// answered by recovery.
func TestPanic(t *testing.T) {
	h := chain.Must(chain.New(recovery.New(recovery.Options{Log: slog.New(slog.DiscardHandler)}), middleware(t, compress.Options{})).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, "a beginning")
		if r.Header.Get("X-Flush") != "" {
			w.(http.Flusher).Flush()
		}
		panic("oh")
	})))
	s := httptest.NewServer(h)
	defer s.Close()
	resp := ask(t, s, "GET", "Accept-Encoding: gzip")
	if b, err := io.ReadAll(resp.Body); resp.StatusCode != 500 || err != nil || strings.Contains(string(b), "beginning") || resp.Header.Get("Content-Encoding") != "" {
		t.Errorf("before the header: %d, %q, %v", resp.StatusCode, b, err)
	}
	resp = ask(t, s, "GET", "Accept-Encoding: gzip|X-Flush: 1")
	if got, err := unpack("gzip", resp.Body); err == nil || got != "a beginning" {
		t.Errorf("after it: %d, %q, %v", resp.StatusCode, got, err)
	}
}

// TestCutShort has an answer end before its Content-Length, as that of a file which is cut while it is
// sent. It must not look whole.
func TestCutShort(t *testing.T) {
	s := httptest.NewServer(middleware(t, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		short, _ := strconv.Atoi(r.Header.Get("X-Short"))
		io.WriteString(w, text[:len(text)-short])
		w.(http.Flusher).Flush()
	})))
	defer s.Close()
	for _, accept := range []string{"", "gzip", "br", "zstd"} {
		for _, short := range []int{0, 1, 2000} {
			resp := ask(t, s, "GET", fmt.Sprintf("Accept-Encoding: %s|X-Short: %d", accept, short))
			if _, err := io.ReadAll(resp.Body); (err == nil) != (short == 0) {
				t.Errorf("Accept-Encoding %q, %d bytes short: reading the answer gave %v", accept, short, err)
			}
			resp.Body.Close()
		}
	}
}

// TestTooLong has handlers write more than their Content-Length said: they are told, and clients do not get
// it.
func TestTooLong(t *testing.T) {
	s := httptest.NewServer(middleware(t, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		io.WriteString(w, text)
		if n, err := io.WriteString(w, "more"); n != 0 || !errors.Is(err, http.ErrContentLength) {
			t.Errorf("more than was said: %d bytes written, %v", n, err)
		}
	})))
	defer s.Close()
	for _, encoding := range []string{"", "gzip", "br", "zstd"} {
		resp := ask(t, s, "GET", "Accept-Encoding: "+encoding)
		if got, err := unpack(resp.Header.Get("Content-Encoding"), resp.Body); got != text || err != nil {
			t.Errorf("Accept-Encoding %q: %d bytes, %v, want %d", encoding, len(got), err, len(text))
		}
		resp.Body.Close()
	}
}

// TestLateFields has handlers change the header once they have written: that counts for trailers alone,
// as it does without the middleware, though the header has not gone yet.
func TestLateFields(t *testing.T) {
	for _, body := range []string{"", "small", text} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("X-Early", "1")
			w.Header().Set("Trailer", "x-said")
			io.WriteString(w, body)
			w.Header().Del("X-Early")
			w.Header().Set("X-Late", "1")
			w.Header().Set("X-Said", "1")
			w.Header().Set(http.TrailerPrefix+"X-Unsaid", "1")
		})
		for _, mw := range []func(http.Handler) http.Handler{middleware(t, compress.Options{}), func(h http.Handler) http.Handler { return h }} {
			s := httptest.NewServer(mw(h))
			resp := ask(t, s, "GET", "Accept-Encoding: gzip")
			got, err := unpack(resp.Header.Get("Content-Encoding"), resp.Body)
			if got != body || err != nil || resp.Header.Get("X-Early") != "1" || resp.Header.Get("X-Late") != "" || resp.Header.Get("X-Said") != "" {
				t.Errorf("%d bytes: %d bytes came, %v, with the header %v", len(body), len(got), err, resp.Header)
			}
			if resp.Trailer.Get("X-Said") != "1" || resp.Trailer.Get("X-Unsaid") != "1" {
				t.Errorf("%d bytes: the trailer is %v", len(body), resp.Trailer)
			}
			resp.Body.Close()
			s.Close()
		}
	}
}

// TestUpgrade leaves requests for another protocol to the handler.
func TestUpgrade(t *testing.T) {
	h := middleware(t, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		rw.Flush()
	}))
	s := httptest.NewServer(h)
	defer s.Close()
	if resp := ask(t, s, "GET", "Connection: Upgrade|Upgrade: x|Accept-Encoding: gzip"); resp.StatusCode != 101 {
		t.Error(resp.StatusCode)
	}
}

// TestController reaches the server's writer, and refuses what comes after the end.
func TestController(t *testing.T) {
	var kept http.ResponseWriter
	s := httptest.NewServer(middleware(t, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		kept = w
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetReadDeadline(time.Now().Add(time.Minute)), c.SetWriteDeadline(time.Now().Add(time.Minute)), c.EnableFullDuplex()); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, text)
	})))
	resp := ask(t, s, "GET", "Accept-Encoding: gzip")
	if got, err := unpack("gzip", resp.Body); got != text || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	s.Close()
	if _, err := kept.Write([]byte("late")); err == nil {
		t.Error("a write after the end gave no error")
	}
	if err := http.NewResponseController(kept).Flush(); err == nil {
		t.Error("a flush after the end gave no error")
	}
}

// TestServeContent compresses what http.ServeContent answers, and no part of it.
func TestServeContent(t *testing.T) {
	s := httptest.NewServer(middleware(t, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"v1"`)
		http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader(text))
	})))
	defer s.Close()
	for fields, want := range map[string]string{
		"Accept-Encoding: br":                                      `200 br W/"v1" Accept-Encoding`,
		"Accept-Encoding: br|Range: bytes=5-8":                     `206  "v1" Accept-Encoding`,
		"Accept-Encoding: br|Range: bytes=5-8, 10-12":              `206  "v1" Accept-Encoding`,
		`Accept-Encoding: br|If-None-Match: W/"v1"`:                `304  W/"v1" Accept-Encoding`,
		`Accept-Encoding: br|Range: bytes=5-8|If-Range: W/"v1"`:    `200 br W/"v1" Accept-Encoding`,
		`Accept-Encoding: br|Range: bytes=9999999-|If-Range: "v1"`: `416   Accept-Encoding`,
		`Accept-Encoding: x|If-None-Match: W/"v2", "v1"`:           `304  "v1" Accept-Encoding`,
	} {
		resp := ask(t, s, "GET", fields)
		resp.Body.Close()
		h := resp.Header
		if got := fmt.Sprintf("%d %s %s %s", resp.StatusCode, h.Get("Content-Encoding"), h.Get("Etag"), h.Get("Vary")); got != want {
			t.Errorf("%s: got %s, want %s", fields, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	var asked []string
	mw := middleware(t, compress.Options{Encodings: []compress.Encoding{compress.Gzip}, Smallest: -1, Types: []string{"*/*+x", "a/b"},
		Level: func(e compress.Encoding, mediaType string) int {
			asked = append(asked, fmt.Sprint(e, " ", mediaType))
			return 99
		}})
	for contentType, want := range map[string]string{"a/b": "gzip", "c/d+x": "gzip", "a/c": "", "text/plain": ""} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", "br, gzip, zstd")
		mw(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, "x")
		})).ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); got != want {
			t.Errorf("%s: by %q, want %q", contentType, got, want)
		}
	}
	if slices.Sort(asked); !slices.Equal(asked, []string{"gzip a/b", "gzip c/d+x"}) {
		t.Errorf("levels asked for: %q", asked)
	}
	for _, o := range []compress.Options{{Encodings: []compress.Encoding{"deflate"}}, {Encodings: []compress.Encoding{"br", "br"}},
		{Types: []string{"text"}}, {Types: []string{"Text/html"}}, {Types: []string{"text/html; charset=utf-8"}}, {Types: []string{"text/h*"}}} {
		if _, err := compress.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestOrder has a compressor stand where others would see what is not sent.
func TestOrder(t *testing.T) {
	log, err := accesslog.New(accesslog.Options{To: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close(t.Context())
	counts, err := metrics.New(metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mw := middleware(t, compress.Options{})
	for why, inner := range map[string]func(http.Handler) http.Handler{
		"sizes that were not sent":    log.Middleware,
		"bytes that were not sent":    counts.Middleware,
		"panic in a layer before":     recovery.New(recovery.Options{}),
		"compressed by the inner one": mw,
	} {
		if _, err := chain.New(mw, inner).Then(http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %q in it", err, why)
		}
		if _, err := chain.New(inner, mw).Then(http.NotFoundHandler()); err != nil && !strings.Contains(why, "inner one") {
			t.Errorf("the right order: %v", err)
		}
	}
}

// TestClients has 1,000 clients at a time, some of which go away or read slowly: each
// gets its own answer.
func TestClients(t *testing.T) {
	s := httptest.NewServer(middleware(t, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for range 50 {
			fmt.Fprint(w, strings.Repeat(r.Header.Get("X-Client")+", ", 50))
		}
	})))
	defer s.Close()
	client := &http.Transport{DisableCompression: true, MaxConnsPerHost: 100}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			encoding := []string{"gzip", "br", "zstd"}[i%3]
			r, _ := http.NewRequest("GET", s.URL, nil)
			r.Header.Set("Accept-Encoding", encoding)
			r.Header.Set("X-Client", fmt.Sprint("client ", i))
			resp, err := client.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			switch {
			case i%10 == 0: // goes away
				_, _ = resp.Body.Read(make([]byte, 1))
				return
			case i%10 == 1:
				time.Sleep(10 * time.Millisecond)
			}
			got, err := unpack(encoding, resp.Body)
			if want := strings.Repeat(fmt.Sprintf("client %d, ", i), 2500); err != nil || got != want {
				t.Errorf("client %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	all.Wait()
}

// FuzzAccept has any Accept-Encoding and any way to write: the body comes back as it was.
func FuzzAccept(f *testing.F) {
	f.Add("gzip, br;q=0.5", []byte(text), uint8(7), true)
	f.Add("*;q=0.1, zstd", []byte("short"), uint8(1), false)
	mw := middleware(f, compress.Options{Smallest: 16})
	f.Fuzz(func(t *testing.T, accept string, body []byte, piece uint8, flush bool) {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header["Accept-Encoding"] = []string{accept}
		mw(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for part := range slices.Chunk(body, int(piece)+1) {
				_, _ = w.Write(part)
				if flush {
					w.(http.Flusher).Flush()
				}
			}
		})).ServeHTTP(w, r)
		encoding := w.Header().Get("Content-Encoding")
		if got, err := unpack(encoding, w.Body); err != nil || got != string(body) {
			t.Errorf("by %q: %d bytes of %d, %v", encoding, len(got), len(body), err)
		}
		if encoding != "" && !strings.Contains(strings.ToLower(accept), encoding) && !strings.ContainsAny(accept, "*") && !strings.Contains(strings.ToLower(accept), "x-gzip") {
			t.Errorf("%q was answered by %q", accept, encoding)
		}
	})
}

// sink keeps nothing of an answer.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

func BenchmarkAnswer(b *testing.B) {
	body := bytes.Repeat([]byte(`{"order":4711,"state":"open","total":"99.95"},`), 360)[:16<<10]
	h := middleware(b, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(body)
	}))
	for _, encoding := range []string{"identity", "gzip", "br", "zstd"} {
		b.Run("encoding="+encoding, func(b *testing.B) {
			r, w := httptest.NewRequest("GET", "/", nil), &sink{http.Header{}}
			r.Header.Set("Accept-Encoding", encoding)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}

// TestLevelPanics has a layer inside answer when Options.Level panics: what it says is not
// compressed, and does not claim to be.
func TestLevelPanics(t *testing.T) {
	mw := middleware(t, compress.Options{Level: func(compress.Encoding, string) int { panic("broken") }})
	inner := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer func() {
			if recover() != nil {
				http.Error(w, "sorry", http.StatusInternalServerError)
			}
		}()
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, text)
	})
	r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
	r.Header.Set("Accept-Encoding", "gzip")
	mw(inner).ServeHTTP(w, r)
	if e := w.Header().Get("Content-Encoding"); w.Code != 500 || e != "" || w.Body.String() != "sorry\n" {
		t.Errorf("%d, encoding %q, %q", w.Code, e, w.Body)
	}
}

// TestLateWrites has handlers return while goroutines of theirs write. Their answers end as whole
// ones, and nothing of them gets into others, whose encoders are the same.
func TestLateWrites(t *testing.T) {
	var late sync.WaitGroup
	s := httptest.NewServer(middleware(t, compress.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		part := strings.Repeat("<"+r.URL.RawQuery+">", 100)
		write := func() {
			for range 100 {
				_, _ = io.WriteString(w, part)
			}
		}
		if !strings.HasPrefix(r.URL.RawQuery, "late") {
			write()
			return
		}
		late.Go(write)
		time.Sleep(200 * time.Microsecond)
	})))
	defer s.Close()
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			for i := range 50 {
				who := fmt.Sprintf("%s-%d-%d", []string{"late", "whole"}[client%2], client, i)
				resp := ask(t, &httptest.Server{URL: s.URL + "?" + who}, "GET", "Accept-Encoding: gzip")
				got, err := unpack(resp.Header.Get("Content-Encoding"), resp.Body)
				resp.Body.Close()
				n := strings.Count(got, "<"+who+">")
				if err != nil || n*len("<"+who+">") != len(got) || client%2 == 1 && n != 100*100 {
					t.Errorf("%s: %d bytes, of which %d times its own, %v", who, len(got), n, err)
				}
			}
		})
	}
	all.Wait()
	late.Wait()
}
