package main

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/pages"
)

// TestAnswers has all serve the same files, and the ones that can answer ranges and times.
func TestAnswers(t *testing.T) {
	for name, o := range map[string]setting{
		"fileserver": {by: "fileserver"}, "static": {by: "static"}, "fresh": {by: "static", fresh: time.Second},
		"time": {by: "mapped", tag: "time"}, "sha256": {by: "mapped", tag: "sha256"}, "crc32": {by: "mapped", tag: "crc32"},
	} {
		h, err := prepare(t.TempDir(), o)
		if err != nil {
			t.Fatal(err)
		}
		get := func(path string, header http.Header) *httptest.ResponseRecorder {
			r := httptest.NewRequest("GET", path, nil)
			maps.Copy(r.Header, header)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		for _, p := range pages.Files() {
			if w := get(p.Path, nil); w.Code != 200 || w.Header().Get("Content-Type") != p.Type || !bytes.Equal(w.Body.Bytes(), p.Body) {
				t.Errorf("%s, %s: %d, %q, %d bytes", name, p.Path, w.Code, w.Header().Get("Content-Type"), w.Body.Len())
			}
		}
		if w := get("/other.txt", nil); w.Code != 404 {
			t.Errorf("%s, another file: %d", name, w.Code)
		}
		if o.by == "mapped" {
			continue
		}
		w := get("/10m.txt", http.Header{"Range": {"bytes=1000000-1001023"}})
		if w.Code != 206 || w.Header().Get("Content-Range") != "bytes 1000000-1001023/10485760" || !bytes.Equal(w.Body.Bytes(), pages.Files()[0].Body) {
			t.Errorf("%s, range: %d, %q, %d bytes", name, w.Code, w.Header().Get("Content-Range"), w.Body.Len())
		}
		if w := get("/1k.txt", http.Header{"If-Modified-Since": {pages.Written.Format(http.TimeFormat)}}); w.Code != 304 || w.Body.Len() > 0 {
			t.Errorf("%s, not modified: %d, %d bytes", name, w.Code, w.Body.Len())
		}
	}
	for _, o := range []setting{{by: "magic"}, {by: "mapped", tag: "md5"}} {
		if _, err := newHandler(t.TempDir(), o); err == nil {
			t.Errorf("%v: got no error", o)
		}
	}
}

// TestFacts has each tag tell what it can.
func TestFacts(t *testing.T) {
	const same, other, none = "304 Not Modified", "200 OK", "no tag"
	for _, tt := range []struct {
		set              setting
		own, early, late string
	}{
		{setting{by: "fileserver"}, none, none, none},
		{setting{by: "static"}, same, other, other},
		{setting{by: "static", fresh: time.Millisecond}, same, other, other},
		{setting{by: "mapped", tag: "time"}, same, same, same},
		{setting{by: "mapped", tag: "crc32"}, same, other, same},
		{setting{by: "mapped", tag: "sha256"}, same, other, other},
	} {
		got := facts(tt.set)
		if got[ownTag] != tt.own || got[early] != tt.early || got[late] != tt.late {
			t.Errorf("%+v: got %q, want %q, %q, %q", tt.set, got, tt.own, tt.early, tt.late)
		}
	}
}
