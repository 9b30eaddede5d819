package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/arms/pages"
)

func ask(h http.Handler, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAnswers unpacks what each arm answers, the first time and later.
func TestAnswers(t *testing.T) {
	type arm struct {
		settings
		want string // encoding of text
	}
	all := []arm{{settings{by: "none"}, ""}, {settings{by: "files"}, ""}}
	for _, encoding := range []string{"gzip", "br", "zstd"} {
		all = append(all, arm{settings{"ours", encoding, 1}, encoding}, arm{settings{"ours", encoding, 9}, encoding}, arm{settings{"precompressed", encoding, 0}, encoding})
	}
	for _, by := range []string{"chi", "gin", "gzhttp", "httpcompression"} {
		all = append(all, arm{settings{by, "gzip", 1}, "gzip"}, arm{settings{by, "gzip", 6}, "gzip"})
	}
	for _, a := range all {
		h, err := newHandler(a.settings, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pages.All() {
			for range 2 {
				w := ask(h, p.Path)
				encoding := w.Header().Get("Content-Encoding")
				got, err := unpack(encoding, w.Body)
				if w.Code != 200 || err != nil || !bytes.Equal(got, p.Body) || w.Header().Get("Content-Type") != p.Type {
					t.Errorf("%+v, %s: %d, %q, %d bytes, %v", a.settings, p.Path, w.Code, w.Header().Get("Content-Type"), len(got), err)
				}
				if strings.HasPrefix(p.Path, "/16k") && p.Type != pages.JPEG && (encoding != a.want || a.want != "" && w.Header().Get("Vary") != "Accept-Encoding") {
					t.Errorf("%+v, %s: encoded by %q, want %q; Vary %q", a.settings, p.Path, encoding, a.want, w.Header()["Vary"])
				}
				if a.by == "ours" && (p.Type == pages.JPEG || p.Path == "/256.json") && encoding != "" {
					t.Errorf("%+v, %s: encoded by %q, want as it is", a.settings, p.Path, encoding)
				}
			}
		}
	}
	for _, s := range []settings{{by: "magic"}, {by: "ours", encoding: "lzma"}, {by: "precompressed", encoding: "lzma"}} {
		if _, err := newHandler(s, t.TempDir()); err == nil {
			t.Errorf("%+v: got no error", s)
		}
	}
}

// TestWrongAnswers has what is not the page, or not what its header says, be an error.
func TestWrongAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"another page": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("other")) },
		"not packed": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			newPlain(pages.All()).ServeHTTP(w, r)
		},
		"cut short": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			packed, _ := pack("br", pages.All()[0].Body)
			w.Write(packed[:len(packed)-1])
		},
		"unknown encoding": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "lzma") },
	} {
		if w := ask(newChecked(answer, pages.All()), "/16k.html"); w.Code != 500 {
			t.Errorf("%s: %d, want 500", name, w.Code)
		}
	}
}

// TestLines has answers take as long as their line does, and no longer.
func TestLines(t *testing.T) {
	h, err := newHandler(settings{by: "none"}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		for path, want := range map[string]time.Duration{
			"/16k.jpg":      0,
			"/10/16k.jpg":   16 << 10 * 8 * time.Microsecond / 10,
			"/1000/16k.jpg": 16 << 10 * 8 * time.Microsecond / 1000,
		} {
			began := time.Now()
			w := ask(h, path)
			if took := time.Since(began); took != want || w.Body.Len() != 16<<10 {
				t.Errorf("%s: %d bytes in %v, want %v", path, w.Body.Len(), took, want)
			}
		}
		slow := newLines(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 2 {
				time.Sleep(time.Millisecond)
				w.Write(make([]byte, 10_000)) // 8 ms each at 10 Mbit/s
			}
		}))
		began := time.Now()
		if ask(slow, "/10/"); time.Since(began) != 17*time.Millisecond {
			t.Errorf("a handler that goes on meanwhile: %v, want 17ms", time.Since(began))
		}
	})
	if w := ask(h, "/0/16k.jpg"); w.Code != 404 {
		t.Errorf("no line: %d, want 404", w.Code)
	}
}
