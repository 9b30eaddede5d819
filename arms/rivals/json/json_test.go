package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// All encoders write the same bytes, and read them back.
func TestEncodersAgree(t *testing.T) {
	want := map[string][]byte{}
	names := []string{"std", "sonic", "go-json", "easyjson"}
	if _, err := newV2(); err == nil {
		names = append(names, "v2")
	}
	for _, name := range names {
		for _, chain := range []string{"none", "default"} {
			h, err := handler(name, chain)
			if err != nil {
				t.Fatal(err)
			}
			for path, count := range map[string]string{"/small": `{"orders":4}`, "/large": `{"orders":229}`} {
				got := ask(h, httptest.NewRequest(http.MethodGet, path, nil))
				if want[path] == nil {
					want[path] = got
				}
				if !bytes.Equal(got, want[path]) {
					t.Errorf("%s, chain %s, %s: got %.80q, want %.80q", name, chain, path, got, want[path])
				}
				if back := ask(h, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(got))); string(back) != count {
					t.Errorf("%s, chain %s, %s read back: got %q, want %q", name, chain, path, back, count)
				}
			}
		}
	}
	if n := len(want["/small"]); n < 900 || n > 1100 {
		t.Errorf("the small page has %d bytes, want about 1 KB", n)
	}
	if n := len(want["/large"]); n < 49_000 || n > 51_000 {
		t.Errorf("the large page has %d bytes, want about 50 KB", n)
	}
	for _, wrong := range [][2]string{{"xml", "none"}, {"std", "some"}} {
		if _, err := handler(wrong[0], wrong[1]); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%v: got %v, want an error that says what there is", wrong, err)
		}
	}
}

func ask(h http.Handler, r *http.Request) []byte {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return []byte(w.Result().Status)
	}
	return w.Body.Bytes()
}
