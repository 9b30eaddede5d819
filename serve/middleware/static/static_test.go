package static_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/middleware/apikey"
	"github.com/tarehq/tare/serve/middleware/limit"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/secure"
	"github.com/tarehq/tare/serve/middleware/static"
	"github.com/tarehq/tare/serve/servetest"
)

func Example() {
	root, err := os.OpenRoot("testdata") // symbolic links cannot lead out of it
	if err != nil {
		panic(err)
	}
	defer root.Close()
	files, err := static.New(static.Options{Files: root.FS()})
	if err != nil {
		panic(err)
	}
	h := files(http.NotFoundHandler())
	for _, path := range []string{"/hello.txt", "/static.go"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 hello
	// 404 404 page not found
}

var (
	old   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	newer = old.Add(time.Hour)
)

func file(text string, at time.Time) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(text), ModTime: at, Mode: 0o644}
}

func site() fstest.MapFS {
	return fstest.MapFS{
		"index.html":               file("<html>home", old),
		"a.txt":                    file("0123456789", old),
		"a b.txt":                  file("space", old),
		"docs/index.html":          file("<html>docs", old),
		"empty/x.txt":              file("x", old),
		"app.js":                   file("script", old),
		"app.js.br":                file("by br", newer),
		"app.js.gz":                file("by gz", newer),
		"stale.js":                 file("later script", newer),
		"stale.js.gz":              file("by gz, of before", old),
		".env":                     file("secret", old),
		".git/config":              file("secret", old),
		"docs/.hidden":             file("secret", old),
		".well-known/security.txt": file("contact", old),
		"pipe":                     {Mode: fs.ModeNamedPipe, ModTime: old},
		"odd\\name.txt":            file("odd", old),
	}
}

// serve asks for a path; next answers 404 with "next".
func serve(t testing.TB, o static.Options, method, target string, fields ...string) *http.Response {
	t.Helper()
	mw, err := static.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, "/", nil)
	if r.URL, err = url.Parse("http://host" + target); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	mw(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "next")
	})).ServeHTTP(w, r)
	return w.Result()
}

func read(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPaths has what is and is not served, of files in memory.
func TestPaths(t *testing.T) {
	for target, want := range map[string]string{
		"/":                             "200 <html>home",
		"/index.html":                   "200 <html>home",
		"/a.txt":                        "200 0123456789",
		"/a%20b.txt":                    "200 space",
		"/%61.txt":                      "200 0123456789",
		"/docs/":                        "200 <html>docs",
		"/docs":                         "301 ./docs/",
		"/docs?a=b":                     "301 ./docs/?a=b",
		"/empty":                        "404 next",
		"/empty/":                       "404 next",
		"/empty/x.txt":                  "200 x",
		"/.well-known/security.txt":     "200 contact",
		"/a.txt/":                       "404 next",
		"/a.txt/b":                      "404 next",
		"/nothing":                      "404 next",
		"/pipe":                         "404 next",
		"/.env":                         "404 next",
		"/.git/config":                  "404 next",
		"/docs/.hidden":                 "404 next",
		"/docs/.well-known/x":           "404 next",
		"/.":                            "404 next",
		"/..":                           "404 next",
		"/../a.txt":                     "404 next",
		"/docs/../a.txt":                "404 next",
		"/docs/./index.html":            "404 next",
		"//a.txt":                       "404 next",
		"//docs":                        "404 next",
		"/docs//index.html":             "404 next",
		"/docs%2findex.html":            "404 next",
		"/docs%2Findex.html":            "404 next",
		"/%2e%2e/a.txt":                 "404 next",
		"/..%2fa.txt":                   "404 next",
		"/%2e%2e%2fa.txt":               "404 next",
		"/%252e%252e/a.txt":             "404 next",
		"/odd%5cname.txt":               "404 next",
		"/docs%5cindex.html":            "404 next",
		"/a.txt%00":                     "404 next",
		"/a.txt%00.html":                "404 next",
		"/" + strings.Repeat("x", 5000): "404 next",
	} {
		resp := serve(t, static.Options{Files: site()}, "GET", target)
		got := fmt.Sprint(resp.StatusCode, " ", read(t, resp))
		if resp.StatusCode == 301 {
			got = "301 " + resp.Header.Get("Location")
		}
		if got != want {
			t.Errorf("%.40s: got %q, want %q", target, got, want)
		}
	}
	for method, want := range map[string]string{"HEAD": "200 ", "POST": "404 next", "OPTIONS": "404 next"} {
		resp := serve(t, static.Options{Files: site()}, method, "/a.txt")
		if got := fmt.Sprint(resp.StatusCode, " ", read(t, resp)); got != want {
			t.Errorf("%s: got %q, want %q", method, got, want)
		}
	}
}

// TestDirectory has links lead within the directory and not out of it.
func TestDirectory(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.txt")
	for path, text := range map[string]string{outside: "secret", filepath.Join(dir, "a.txt"): "a"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out.txt": outside, "up.txt": "../../secret.txt", "in.txt": "a.txt", "loop.txt": "loop.txt", "folder": filepath.Dir(outside)} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip("SKIPPED: no symbolic links here:", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for target, want := range map[string]int{"/a.txt": 200, "/in.txt": 200, "/out.txt": 404, "/up.txt": 404, "/loop.txt": 404, "/folder/secret.txt": 404, "/a.txt/x": 404} {
		if resp := serve(t, static.Options{Files: root.FS()}, "GET", target); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", target, resp.StatusCode, want)
		}
	}
}

// TestConditional asks again with what the answer said.
func TestConditional(t *testing.T) {
	o := static.Options{Files: site(), Cache: func(name string) string { return "max-age=" + fmt.Sprint(len(name)) }}
	first := serve(t, o, "GET", "/a.txt")
	etag := first.Header.Get("Etag")
	for name, want := range map[string]string{"Cache-Control": "max-age=5", "Content-Type": "text/plain; charset=utf-8", "Content-Length": "10", "Accept-Ranges": "bytes", "Last-Modified": old.Format(http.TimeFormat)} {
		if got := first.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{[]string{"If-None-Match", etag}, "304 "},
		{[]string{"If-None-Match", "W/" + etag}, "304 "},
		{[]string{"If-None-Match", `"other"`}, "200 0123456789"},
		{[]string{"If-Match", `"other"`}, "412 "},
		{[]string{"If-Modified-Since", old.Format(http.TimeFormat)}, "304 "},
		{[]string{"If-Modified-Since", old.Add(-time.Hour).Format(http.TimeFormat)}, "200 0123456789"},
		{[]string{"Range", "bytes=2-4"}, "206 234"},
		{[]string{"Range", "bytes=-3"}, "206 789"},
		{[]string{"Range", "bytes=20-"}, "416 invalid range: failed to overlap\n"},
		{[]string{"Range", "bytes=0-0, 2-4 ,-0"}, "200 0123456789"},
		{[]string{"Range", "bytes=-0"}, "200 0123456789"},
		{[]string{"Range", "bytes= - 00"}, "200 0123456789"},
		{[]string{"Range", "lines=2-4"}, "200 0123456789"},
		{[]string{"Range", "bytes=4-2"}, "416 invalid range\n"},
		{[]string{"Range", "bytes=2-4", "If-Range", etag}, "206 234"},
		{[]string{"Range", "bytes=2-4", "If-Range", `"other"`}, "200 0123456789"},
	} {
		resp := serve(t, o, "GET", "/a.txt", c.fields...)
		if got := fmt.Sprint(resp.StatusCode, " ", read(t, resp)); got != c.want {
			t.Errorf("%q: got %q, want %q", c.fields, got, c.want)
		}
	}
}

// TestRangeDoesNotCount asks for parts where there are none: of an answer to HEAD, and of nothing.
func TestRangeDoesNotCount(t *testing.T) {
	o := static.Options{Files: fstest.MapFS{"a.txt": file("0123456789", old), "empty.txt": file("", old)}}
	for _, c := range []struct{ method, target, field, length string }{
		{"HEAD", "/a.txt", "bytes=2-4", "10"}, {"HEAD", "/a.txt", "bytes=20-", "10"}, {"GET", "/empty.txt", "bytes=-5", "0"}, {"GET", "/empty.txt", "bytes=0-", "0"},
	} {
		resp := serve(t, o, c.method, c.target, "Range", c.field)
		if got := resp.Header.Get("Content-Length"); resp.StatusCode != 200 || got != c.length || resp.Header.Get("Content-Range") != "" {
			t.Errorf("%s of %s, %s: %d, %q", c.method, c.target, c.field, resp.StatusCode, resp.Header)
		}
	}
}

// TestETags has the ETag of a hash change with the content alone, also where time and size
// do not, and that of time and size with those.
func TestETags(t *testing.T) {
	tagOf := func(o static.Options, text string, at time.Time) string {
		o.Files = fstest.MapFS{"a.txt": file(text, at)}
		return serve(t, o, "GET", "/a.txt").Header.Get("Etag")
	}
	var hash, large, never = static.Options{}, static.Options{Hash: 3}, static.Options{Hash: -1}
	if tagOf(hash, "same", old) != tagOf(hash, "same", newer) || tagOf(hash, "same", old) == tagOf(hash, "diff", old) {
		t.Error("a hash does not follow the content alone")
	}
	for name, o := range map[string]static.Options{"above the bound": large, "never": never} {
		if tagOf(o, "same", old) == tagOf(o, "same", newer) || tagOf(o, "same", old) == tagOf(o, "longer", old) || tagOf(o, "same", old) != tagOf(o, "diff", old) {
			t.Errorf("%s: the ETag does not follow time and size", name)
		}
	}
	files := site() // a file that is replaced has another ETag from then on
	mw, err := static.New(static.Options{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		w := httptest.NewRecorder()
		mw(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/a.txt", nil))
		return w.Header().Get("Etag")
	}
	before := ask()
	if again := ask(); again != before {
		t.Errorf("the ETag changes from %s to %s", before, again)
	}
	files["a.txt"] = file("9876543210", newer)
	if after := ask(); after == before {
		t.Error("a file that was replaced has the ETag of before")
	}
}

// opening counts how often files are opened.
type opening struct {
	fs.FS
	count int
}

func (o *opening) Open(name string) (fs.File, error)     { o.count++; return o.FS.Open(name) }
func (o *opening) Stat(name string) (fs.FileInfo, error) { return fs.Stat(o.FS, name) }

// TestKept has small files be opened once, until another replaces them or their mode is
// changed.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o644), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	large := strings.Repeat("x", 64<<10+1)
	write("a.txt", "first")
	write("b.txt", "other")
	write("large.txt", large)
	write("timeless.txt", "when?")
	if err := os.Chtimes(filepath.Join(dir, "timeless.txt"), time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		keep  int64
		file  string
		again bool // it is opened each time
	}{
		"kept": {0, "a.txt", false}, "of no time": {0, "timeless.txt", false}, "exactly": {5, "a.txt", false}, "no room": {4, "a.txt", true}, "none": {-1, "a.txt", true}, "large": {0, "large.txt", true},
	} {
		files := &opening{FS: os.DirFS(dir)}
		mw, err := static.New(static.Options{Files: files, Keep: c.keep, NoSiblings: true})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(fields ...string) string {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/"+c.file, nil)
			for i := 0; i < len(fields); i += 2 {
				r.Header.Set(fields[i], fields[i+1])
			}
			mw(http.NotFoundHandler()).ServeHTTP(w, r)
			return fmt.Sprint(w.Code, " ", w.Body, " ", w.Header())
		}
		first := ask()
		if second := ask(); second != first || (files.count == 2) != c.again {
			t.Errorf("%s: %d opened; %.80s, then %.80s", name, files.count, first, second)
		}
		if part := ask("Range", "bytes=1-2"); !strings.HasPrefix(part, "206 "+first[5:7]) {
			t.Errorf("%s: a part is %.80s of %.80s", name, part, first)
		}
		if c.file != "a.txt" {
			continue
		}
		files.count = 0
		write("new", "third")
		if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "a.txt")); err != nil {
			t.Fatal(err)
		}
		if after := ask(); !strings.HasPrefix(after, "200 third ") || files.count != 1 {
			t.Errorf("%s, replaced: %.80s, %d opened", name, after, files.count)
		}
		if err := os.Chmod(filepath.Join(dir, "a.txt"), 0o600); err != nil {
			t.Fatal(err)
		}
		if ask(); files.count != 2 {
			t.Errorf("%s, of another mode: %d opened, want to look again", name, files.count)
		}
		write("a.txt", "first")
		if err := os.Chmod(filepath.Join(dir, "a.txt"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// looking counts how often files are looked at.
type looking struct {
	fs.FS
	count int
}

func (l *looking) Stat(name string) (fs.FileInfo, error) { l.count++; return fs.Stat(l.FS, name) }

// TestFresh has what a look found be believed for as long as it may, and no longer.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := site()
		looks := &looking{FS: files}
		mw, err := static.New(static.Options{Files: looks, Fresh: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(path, accept string) string {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
			r.Header.Set("Accept-Encoding", accept)
			mw(http.NotFoundHandler()).ServeHTTP(w, r)
			return fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
		}
		want := func(path, accept, want string, count int) {
			t.Helper()
			looks.count = 0
			if got := ask(path, accept); got != want || looks.count != count {
				t.Errorf("%s, accepting %q: %q by %d looks, want %q by %d", path, accept, got, looks.count, want, count)
			}
		}
		const none = "404 404 page not found"
		want("/a.txt", "", "200 0123456789", 2) // it is read, and so looked at again
		want("/a.txt", "", "200 0123456789", 0)
		want("/app.js", "br", "200 by br", 4)
		want("/app.js", "br", "200 by br", 0)
		want("/app.js", "gzip", "200 by gz", 3)
		want("/new.txt", "", none, 1)
		want("/new.txt", "", none, 0)
		files["a.txt"] = file("replaced", newer)
		files["new.txt"] = file("new", newer)
		delete(files, "app.js.br")
		want("/a.txt", "", "200 0123456789", 0)
		want("/app.js", "br", "200 by br", 0)
		time.Sleep(time.Second)
		want("/a.txt", "", "200 replaced", 2)
		want("/new.txt", "", "200 new", 2)
		want("/app.js", "br", "200 script", 4)
		want("/app.js", "br", "200 script", 0)
		want("/"+strings.Repeat("x", 300), "", none, 1)
		want("/"+strings.Repeat("x", 300), "", none, 1)
	})
}

// TestFreshForEver looks once at what never changes, such as an embed.FS.
func TestFreshForEver(t *testing.T) {
	looks := &looking{FS: site()}
	mw, err := static.New(static.Options{Files: looks, Fresh: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		mw(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/new.txt", nil))
	}
	if looks.count != 1 {
		t.Errorf("%d looks", looks.count)
	}
}

// openedAmid counts how often files are opened, by several goroutines.
type openedAmid struct {
	fs.FS
	count atomic.Int64
}

func (o *openedAmid) Open(name string) (fs.File, error) { o.count.Add(1); return o.FS.Open(name) }

// TestReuse has a server that uses the memory of requests again: what is kept of files has
// names of its own.
func TestReuse(t *testing.T) {
	files := &openedAmid{FS: site()}
	mw, err := static.New(static.Options{Files: files, NoSiblings: true, Fresh: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := servetest.NewUnstartedServer(mw(http.NotFoundHandler()))
	s.Config.Reuse = true
	s.Start()
	defer s.Close()
	want := map[string]string{"a.txt": "0123456789", "app.js": "script", "stale.js": "later script", "docs/index.html": "<html>docs"}
	var before int64
	for range 3 {
		before = files.count.Load()
		for name, text := range want {
			resp, err := s.Client().Get(s.URL + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, resp); got != text {
				t.Errorf("%s: got %q, want %q", name, got, text)
			}
			resp.Body.Close()
		}
	}
	if after := files.count.Load(); after != before {
		t.Errorf("%d files are opened that are kept", after-before)
	}
}

// TestSiblings has the compressed file sent to those who accept it, by its own ETag.
func TestSiblings(t *testing.T) {
	o := static.Options{Files: site()}
	seen := map[string]string{}
	for _, c := range []struct{ target, accept, want string }{
		{"/app.js", "", "script"},
		{"/app.js", "identity", "script"},
		{"/app.js", "gzip", "gzip by gz"},
		{"/app.js", "br", "br by br"},
		{"/app.js", "gzip, deflate, br, zstd", "br by br"},
		{"/app.js", "gzip, br;q=0.5", "gzip by gz"},
		{"/app.js", "zstd", "script"},
		{"/app.js", "gzip;q=0", "script"},
		{"/stale.js", "gzip", "later script"},
		{"/a.txt", "gzip, br", "0123456789"},
	} {
		resp := serve(t, o, "GET", c.target, "Accept-Encoding", c.accept)
		body := read(t, resp)
		if got := strings.TrimSpace(resp.Header.Get("Content-Encoding") + " " + body); resp.StatusCode != 200 || got != c.want {
			t.Errorf("%s, accepting %q: %d, %q, want %q", c.target, c.accept, resp.StatusCode, got, c.want)
		}
		if vary, length := resp.Header.Get("Vary"), resp.Header.Get("Content-Length"); vary != "Accept-Encoding" || length != fmt.Sprint(len(body)) {
			t.Errorf("%s, accepting %q: Vary %q, Content-Length %q", c.target, c.accept, vary, length)
		}
		if strings.HasPrefix(c.target, "/app") && !strings.Contains(resp.Header.Get("Content-Type"), "javascript") {
			t.Errorf("%s, accepting %q: Content-Type %q", c.target, c.accept, resp.Header.Get("Content-Type"))
		}
		etag := resp.Header.Get("Etag")
		if other, ok := seen[etag]; ok && other != c.target+body {
			t.Errorf("%q and %q have the ETag %s", other, c.target+body, etag)
		}
		seen[etag] = c.target + body
		if again := serve(t, o, "GET", c.target, "Accept-Encoding", c.accept, "If-None-Match", etag); again.StatusCode != 304 || again.Header.Get("Vary") != "Accept-Encoding" || again.Header.Get("Etag") != etag {
			t.Errorf("%s, accepting %q, again: %d, Vary %q, ETag %s", c.target, c.accept, again.StatusCode, again.Header.Get("Vary"), again.Header.Get("Etag"))
		}
		if whole := serve(t, o, "GET", c.target, "Accept-Encoding", c.accept, "If-Match", etag); whole.StatusCode != 200 || read(t, whole) != body || whole.Header.Get("Content-Length") != fmt.Sprint(len(body)) {
			t.Errorf("%s, accepting %q, if it is %s: %d, %q", c.target, c.accept, etag, whole.StatusCode, whole.Header)
		}
		for _, condition := range []string{"If-Match", "If-Unmodified-Since"} {
			value := map[string]string{"If-Match": `"other"`, "If-Unmodified-Since": old.Add(-time.Hour).Format(http.TimeFormat)}[condition]
			if no := serve(t, o, "GET", c.target, "Accept-Encoding", c.accept, condition, value); no.StatusCode != 412 || no.Header.Get("Content-Length")+no.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s, accepting %q, %s: %d, with fields of a body that does not come: %q", c.target, c.accept, condition, no.StatusCode, no.Header)
			}
		}
	}
	o.NoSiblings = true
	if resp := serve(t, o, "GET", "/app.js", "Accept-Encoding", "br"); read(t, resp) != "script" || resp.Header.Get("Vary") != "" {
		t.Errorf("without siblings: %v", resp.Header)
	}
}

// TestReplaced has one file renamed over and another cut short while they are sent: the
// first arrives as it was, the second does not look whole.
func TestReplaced(t *testing.T) {
	const size = 16 << 20 // more than the kernel takes at once
	dir := t.TempDir()
	write := func(name string, b byte) {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte{b}, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("renamed", 'a')
	write("cut", 'a')
	write("new", 'b')
	mw, err := static.New(static.Options{Files: os.DirFS(dir)})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(mw(http.NotFoundHandler()))
	defer s.Close()
	for name, change := range map[string]func() error{
		"renamed": func() error { return os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "renamed")) },
		"cut":     func() error { return os.Truncate(filepath.Join(dir, "cut"), 1<<20) },
	} {
		resp, err := http.Get(s.URL + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		whole := len(got) == size && err == nil
		if whole != (name == "renamed") || bytes.IndexByte(got, 'b') >= 0 {
			t.Errorf("%s: %d bytes, %v, of the new file: %v", name, len(got), err, bytes.IndexByte(got, 'b') >= 0)
		}
	}
}

// TestArchive serves from a file system that cannot seek.
func TestArchive(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("a.txt")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "0123456789")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if resp := serve(t, static.Options{Files: files}, "GET", "/a.txt", "Range", "bytes=2-4"); resp.StatusCode != 206 || read(t, resp) != "234" {
		t.Errorf("%d", resp.StatusCode)
	}
}

// broken has files that can be looked at and not read.
type broken struct{ fs.FS }

func (b broken) Open(string) (fs.File, error)          { return nil, errors.New("input/output error") }
func (b broken) Stat(name string) (fs.FileInfo, error) { return fs.Stat(b.FS, name) }

// taken has files that are taken away once they have been looked at.
type taken struct{ broken }

func (taken) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func TestTakenAway(t *testing.T) {
	resp := serve(t, static.Options{Files: taken{broken{site()}}, Cache: func(string) string { return "immutable" }}, "GET", "/app.js", "Accept-Encoding", "br")
	if h := resp.Header; resp.StatusCode != 404 || h.Get("Cache-Control") != "" || h.Get("Content-Encoding") != "" {
		t.Errorf("%d, %v, want what the next handler answers", resp.StatusCode, h)
	}
}

func TestBroken(t *testing.T) {
	resp := serve(t, static.Options{Files: broken{site()}, Cache: func(string) string { return "immutable" }}, "GET", "/app.js", "Accept-Encoding", "br")
	if h := resp.Header; resp.StatusCode != 500 || h.Get("Cache-Control") != "" || h.Get("Content-Encoding") != "" || strings.Contains(read(t, resp), "input") {
		t.Errorf("%d, %v", resp.StatusCode, h)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []static.Options{{}, {Files: site(), Index: "../x"}, {Files: site(), Index: "a/b"}, {Files: site(), Fresh: -1}} {
		if _, err := static.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	for target, want := range map[string]int{"/": 404, "/docs": 404, "/docs/": 404, "/a.txt": 200} {
		if resp := serve(t, static.Options{Files: site(), Index: "-"}, "GET", target); resp.StatusCode != want {
			t.Errorf("without an index, %s: %d, want %d", target, resp.StatusCode, want)
		}
	}
}

// TestOrder has files stand where nobody would look after them.
func TestOrder(t *testing.T) {
	must := func(mw func(http.Handler) http.Handler, err error) func(http.Handler) http.Handler {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return mw
	}
	log, err := accesslog.New(accesslog.Options{To: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close(t.Context())
	counts, err1 := metrics.New(metrics.Options{})
	limits, err2 := limit.New(limit.Options{})
	keys, err3 := apikey.New(apikey.Options{Keys: map[string]string{apikey.Hash("x"): "ann"}})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	files := must(static.New(static.Options{Files: site()}))
	for why, outer := range map[string]func(http.Handler) http.Handler{
		"would not be logged":   log.Middleware,
		"would not be counted":  counts.Middleware,
		"would lack the fields": secure.New(secure.Options{}),
		"free of the limit":     limits.Middleware,
		"whom it refuses":       keys.Middleware,
	} {
		if _, err := chain.New(files, outer).Then(http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %q in it", err, why)
		}
		if _, err := chain.New(outer, files).Then(http.NotFoundHandler()); err != nil {
			t.Errorf("the right order: %v", err)
		}
	}
}

// TestClients has 1,000 clients at a time, some of which go away, while the files are
// replaced: each answer is a file as it was at one time, and has that one's ETag.
func TestClients(t *testing.T) {
	dir := t.TempDir()
	put := func(version int) {
		temporary := filepath.Join(dir, "temporary")
		if err := os.WriteFile(temporary, []byte(strings.Repeat(fmt.Sprint(version%10), 100_000)), 0o644); err != nil {
			t.Error(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, "a.txt")); err != nil {
			t.Error(err)
		}
	}
	put(0)
	mw, err := static.New(static.Options{Files: os.DirFS(dir)})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(mw(http.NotFoundHandler()))
	defer s.Close()
	client := &http.Transport{MaxConnsPerHost: 100}
	defer client.CloseIdleConnections()
	var tags sync.Map
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			r, _ := http.NewRequest("GET", s.URL+"/a.txt", nil)
			resp, err := client.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if i%10 == 0 { // goes away
				return
			}
			got, err := io.ReadAll(resp.Body)
			if err != nil || len(got) != 100_000 || bytes.Count(got, got[:1]) != len(got) {
				t.Errorf("client %d: %d bytes, %v", i, len(got), err)
				return
			}
			if of, ok := tags.LoadOrStore(resp.Header.Get("Etag"), got[0]); ok && of != got[0] {
				t.Errorf("two versions have the ETag %s", resp.Header.Get("Etag"))
			}
		})
	}
	for version := range 50 {
		put(version)
		time.Sleep(time.Millisecond)
	}
	all.Wait()
}

// FuzzPaths has nothing served but the site's files by their own names.
func FuzzPaths(f *testing.F) {
	for _, target := range []string{"/a.txt", "/docs/", "/../a.txt", "/%2e%2e/a.txt", "/docs%2findex.html"} {
		f.Add(target)
	}
	files := site()
	mw, err := static.New(static.Options{Files: files})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, target string) {
		r := httptest.NewRequest("GET", "/", nil)
		u, err := url.Parse("http://host" + target)
		if err != nil || u.Host != "host" {
			return
		}
		r.URL = u
		w := httptest.NewRecorder()
		mw(http.NotFoundHandler()).ServeHTTP(w, r)
		if w.Code != 200 {
			return
		}
		name := strings.TrimPrefix(u.Path, "/")
		if name == "" || strings.HasSuffix(name, "/") {
			name += "index.html"
		}
		if got := files[name]; got == nil || string(got.Data) != w.Body.String() || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%q: %q", target, w.Body)
		}
	})
}

// sink keeps nothing of an answer.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

// BenchmarkFile has a file that is kept in memory, looked at for each request and once a
// second, and a name that no file has.
func BenchmarkFile(b *testing.B) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	for _, path := range []string{"/hello.txt", "/orders/7"} {
		for _, fresh := range []time.Duration{0, time.Second} {
			mw, err := static.New(static.Options{Files: root.FS(), Fresh: fresh})
			if err != nil {
				b.Fatal(err)
			}
			h, w, r := mw(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), &sink{http.Header{}}, httptest.NewRequest("GET", path, nil)
			b.Run(fmt.Sprintf("path=%s/fresh=%s", path[1:], fresh), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					h.ServeHTTP(w, r)
				}
			})
		}
	}
}
