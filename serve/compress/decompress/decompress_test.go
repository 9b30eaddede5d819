package decompress_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/compress/decompress"
)

func Example() {
	mw, err := decompress.New(decompress.Options{Body: 100})
	if err != nil {
		panic(err)
	}
	h := mw(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		fmt.Println(len(b), err)
	}))
	for _, n := range []int{100, 1_000_000} {
		r := httptest.NewRequest("POST", "/", bytes.NewReader(packed("gzip", strings.Repeat("x", n))))
		r.Header.Set("Content-Encoding", "gzip")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// 100 <nil>
	// 100 http: request body too large
}

// packed returns the text in an encoding.
func packed(encoding, text string) []byte {
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if encoding == "zstd" {
		w, _ = zstd.NewWriter(&b)
	}
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// ask sends a body, and returns the status and what the handler read.
func ask(t testing.TB, o decompress.Options, body []byte, encodings ...string) (w *httptest.ResponseRecorder, got string, err error) {
	t.Helper()
	mw, err := decompress.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
	for _, e := range encodings {
		r.Header.Add("Content-Encoding", e)
	}
	w = httptest.NewRecorder()
	var read []byte
	mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
			t.Errorf("the handler sees Content-Encoding %q", e)
		}
		read, err = io.ReadAll(r.Body)
	})).ServeHTTP(w, r)
	return w, string(read), err
}

func TestBodies(t *testing.T) {
	text := strings.Repeat("some text, ", 10_000)
	members := append(packed("gzip", "first, "), packed("gzip", "second")...)
	broken := packed("gzip", text)
	broken[len(broken)-5] ^= 1 // in the check sum
	for name, c := range map[string]struct {
		body      []byte
		encodings []string
		status    int
		want, err string
	}{
		"none":              {[]byte(text), nil, 200, text, ""},
		"identity":          {[]byte(text), []string{"identity"}, 200, text, ""},
		"gzip":              {packed("gzip", text), []string{"gzip"}, 200, text, ""},
		"in upper case":     {packed("gzip", text), []string{"GZIP"}, 200, text, ""},
		"x-gzip":            {packed("gzip", text), []string{"x-gzip"}, 200, text, ""},
		"zstd":              {packed("zstd", text), []string{"zstd"}, 200, text, ""},
		"empty":             {packed("gzip", ""), []string{"gzip"}, 200, "", ""},
		"empty by zstd":     {packed("zstd", ""), []string{"zstd"}, 200, "", ""},
		"two members":       {members, []string{"gzip"}, 200, "first, second", ""},
		"empty field":       {[]byte(text), []string{""}, 200, text, ""},
		"empty elements":    {packed("gzip", text), []string{"", " ,gzip, ,"}, 200, text, ""},
		"unknown":           {[]byte("x"), []string{"br"}, 415, "", ""},
		"two encodings":     {packed("gzip", text), []string{"gzip, gzip"}, 415, "", ""},
		"two fields":        {packed("gzip", text), []string{"gzip", "gzip"}, 415, "", ""},
		"not gzip":          {[]byte("plain text that is not gzip"), []string{"gzip"}, 200, "", "invalid header"},
		"not zstd":          {[]byte("plain text that is not zstd"), []string{"zstd"}, 200, "", "magic number mismatch"},
		"cut short":         {packed("gzip", text)[:100], []string{"gzip"}, 200, "*", "unexpected EOF"},
		"wrong check sum":   {broken, []string{"gzip"}, 200, "*", "checksum"},
		"no body, but gzip": {nil, []string{"gzip"}, 200, "", ""},
	} {
		w, got, err := ask(t, decompress.Options{}, c.body, c.encodings...)
		if w.Code != c.status || c.want != "*" && got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d, %d bytes, %v; want %d, %d bytes, %q", name, w.Code, len(got), err, c.status, len(c.want), c.err)
		}
		if accepted := w.Header().Get("Accept-Encoding"); (accepted == "gzip, zstd") != (c.status == 415) {
			t.Errorf("%s: %d with Accept-Encoding %q", name, w.Code, accepted)
		}
	}
}

// TestBound has bodies of exactly the bound pass, and of a byte more, or of a gigabyte,
// fail after that many bytes.
func TestBound(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd"} {
		for size, whole := range map[int]bool{999: true, 1000: true, 1001: false, 1 << 24: false} {
			_, got, err := ask(t, decompress.Options{Body: 1000}, packed(encoding, strings.Repeat("x", size)), encoding)
			var tooLong *http.MaxBytesError
			if whole && (err != nil || len(got) != size) || !whole && (!errors.As(err, &tooLong) || tooLong.Limit != 1000 || len(got) != 1000) {
				t.Errorf("%s of %d bytes: %d read, %v", encoding, size, len(got), err)
			}
		}
	}
	if _, got, err := ask(t, decompress.Options{Body: math.MaxInt64}, packed("gzip", "x"), "gzip"); err != nil || len(got) != 1 {
		t.Errorf("without a bound: %d read, %v", len(got), err)
	}
	if _, err := decompress.New(decompress.Options{Body: -1}); err == nil {
		t.Error("a negative bound is accepted")
	}
}

// TestShownBytes has a body that shows its bytes, as a layer outside may put one there that has read the
// whole: it is not unpacked as a whole for that.
func TestShownBytes(t *testing.T) {
	mw, err := decompress.New(decompress.Options{Body: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	r := httptest.NewRequest("POST", "/", nil)
	r.Body = struct {
		*bytes.Buffer
		io.Closer
	}{bytes.NewBuffer(packed("zstd", strings.Repeat("x", 256<<20))), http.NoBody}
	r.Header.Set("Content-Encoding", "zstd")
	mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		runtime.ReadMemStats(&before)
		_, err = io.ReadAll(r.Body)
		runtime.ReadMemStats(&after)
	})).ServeHTTP(httptest.NewRecorder(), r)
	var tooLong *http.MaxBytesError
	if !errors.As(err, &tooLong) {
		t.Errorf("read with %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d bytes were allocated for the first 1,000", took)
	}
}

// TestWindow has a frame of zstd that asks for 64 MiB of memory refused.
func TestWindow(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = byte(rand.Uint32())
	}
	for range 3 {
		_, _ = w.Write(chunk)
	}
	_ = w.Close()
	if _, _, err := ask(t, decompress.Options{}, b.Bytes(), "zstd"); err == nil || !strings.Contains(err.Error(), "window") {
		t.Errorf("a window of 64 MiB: %v", err)
	}
}

// TestOrder has it stand where its refusals would not be seen, or a limit would bound what bodies become.
func TestOrder(t *testing.T) {
	mw, err := decompress.New(decompress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range map[string]string{"limit": "what bodies become", "accesslog": "would not be logged", "metrics": "would not be counted"} {
		other := chain.Layer{Name: name, Wrap: func(h http.Handler) http.Handler { return h }}
		if _, err := chain.New(mw).With(other).Then(http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("before %s: %v, want %q in it", name, err, why)
		}
		if _, err := new(chain.Chain).With(other).Use(mw).Then(http.NotFoundHandler()); err != nil {
			t.Errorf("behind %s: %v", name, err)
		}
	}
}

// TestKept reads a body after the handler has returned: it is not another request's.
func TestKept(t *testing.T) {
	mw, err := decompress.New(decompress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var kept io.ReadCloser
	h := mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1))
		kept = r.Body
	}))
	r := httptest.NewRequest("POST", "/", bytes.NewReader(packed("gzip", "first")))
	r.Header.Set("Content-Encoding", "gzip")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if n, err := kept.Read(make([]byte, 10)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// TestClients has 1,000 clients send bodies of their own at a time, some of which are cut
// short: each handler reads its client's.
func TestClients(t *testing.T) {
	var clients sync.WaitGroup
	for i := range 1000 {
		clients.Go(func() {
			encoding := []string{"gzip", "zstd"}[i%2]
			text := strings.Repeat(fmt.Sprintf("client %d. ", i), 300)
			body := packed(encoding, text)
			cut := i%7 == 0
			if cut {
				body = body[:len(body)/2]
			}
			if _, got, err := ask(t, decompress.Options{}, body, encoding); (err != nil) != cut || !cut && got != text || !strings.HasPrefix(text, got) {
				t.Errorf("client %d: read %d bytes, %v", i, len(got), err)
			}
		})
	}
	clients.Wait()
}

func FuzzBody(f *testing.F) {
	f.Add(packed("gzip", "text"), false)
	f.Add(packed("zstd", "text"), true)
	f.Fuzz(func(t *testing.T, body []byte, isZstd bool) {
		encoding := "gzip"
		if isZstd {
			encoding = "zstd"
		}
		const most = 1 << 16
		if _, got, _ := ask(t, decompress.Options{Body: most}, body, encoding); len(got) > most {
			t.Errorf("%d bytes became %d", len(body), len(got))
		}
	})
}

func BenchmarkBody(b *testing.B) {
	mw, err := decompress.New(decompress.Options{})
	if err != nil {
		b.Fatal(err)
	}
	h := mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	for _, encoding := range []string{"gzip", "zstd"} {
		body := packed(encoding, strings.Repeat(`{"order":4711,"state":"open"},`, 400))
		b.Run("encoding="+encoding, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
				r.Header.Set("Content-Encoding", encoding)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// TestReadAmid has a handler return while another goroutine of its waits for more of the body: the
// client gets its answer before it has sent that, and the read fails once the body is closed.
func TestReadAmid(t *testing.T) {
	mw, err := decompress.New(decompress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	s := httptest.NewServer(mw(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		begun := make([]byte, 5)
		if _, err := io.ReadFull(r.Body, begun); err != nil {
			t.Error(err)
		}
		go func() {
			_, err := io.Copy(io.Discard, r.Body)
			read <- err
		}()
		time.Sleep(20 * time.Millisecond)
		io.WriteString(w, "early")
	})))
	defer s.Close()
	from, to := io.Pipe()
	go func() {
		z := gzip.NewWriter(to)
		io.WriteString(z, "hello")
		z.Flush()
	}()
	r, err := http.NewRequest("POST", s.URL, from)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Encoding", "gzip")
	late := time.AfterFunc(10*time.Second, func() { to.CloseWithError(io.ErrUnexpectedEOF) })
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if string(got) != "early" || err != nil || !late.Stop() {
		t.Errorf("got %q, %v, want the answer before the whole request", got, err)
	}
	resp.Body.Close()
	to.CloseWithError(io.ErrUnexpectedEOF)
	if err := <-read; err == nil {
		t.Error("the read ends without an error")
	}
}
