package pages_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/tarehq/tare/arms/pages"
)

// TestPages has pages be of the sizes and types that they say, and shrink as such pages do.
func TestPages(t *testing.T) {
	for path, want := range map[string]struct {
		from, to int     // bytes
		ratio    float64 // of gzip, at least
		most     float64
	}{
		"/16k.html": {16 << 10, 16 << 10, 2.5, 6},
		"/16k.txt":  {16 << 10, 16 << 10, 2, 4},
		"/16k.json": {15 << 10, 16 << 10, 2.5, 6},
		"/16k.jpg":  {16 << 10, 16 << 10, 0.99, 1},
		"/256.json": {150, 256, 1, 2},
		"/1m.json":  {1<<20 - 400, 1 << 20, 2.5, 6},
	} {
		found := false
		for _, p := range pages.All() {
			if p.Path != path {
				continue
			}
			found = true
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, _ = w.Write(p.Body)
			_ = w.Close()
			ratio := float64(len(p.Body)) / float64(packed.Len())
			if n := len(p.Body); n < want.from || n > want.to || ratio < want.ratio || ratio > want.most {
				t.Errorf("%s: %d bytes that shrink %.2f times; want %d to %d, %g to %g times", path, n, ratio, want.from, want.to, want.ratio, want.most)
			}
			if p.Type == pages.JSON && !json.Valid(p.Body) {
				t.Errorf("%s is not JSON: %.200s", path, p.Body)
			}
			if p.Type == pages.Text && !utf8.Valid(p.Body) {
				t.Errorf("%s is not UTF-8", path)
			}
		}
		if !found {
			t.Errorf("no page %s", path)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files")
	if err := pages.Write(dir, pages.Files()); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{"1k.txt": 1 << 10, "100k.txt": 100 << 10, "10m.txt": 10 << 20} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Size() != size || !info.ModTime().Equal(pages.Written) {
			t.Errorf("%s: %v, %v; want %d bytes of %v", name, info, err, size, pages.Written)
		}
	}
	if err := pages.Write(filepath.Join(dir, "1k.txt"), pages.Files()); err == nil {
		t.Error("below a file: got no error")
	}
}
