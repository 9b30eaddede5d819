package source_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/load/source"
)

func TestParseList(t *testing.T) {
	got, err := source.ParseList("urls.txt", "\ufeff# comment\n\nGET :8080/a 3\nlocalhost/b\n  PURGE http://h.com/c{{.x}}\n")
	want := []string{"GET :8080/a 3 urls.txt:3", "  localhost/b 0 urls.txt:4", "PURGE http://h.com/c{{.x}} 0 urls.txt:5"}
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i, w := range want {
		f := strings.Split(strings.TrimPrefix(w, " "), " ")
		g := got[i]
		if g.Method != f[0] || g.Path != f[1] || g.At != f[3] || g.Weight != map[string]int{"0": 0, "3": 3}[f[2]] {
			t.Errorf("line %d: got %+v, want %q", i, g, w)
		}
	}
	for text, want := range map[string]string{
		"":               "urls.txt: no line names a request",
		"# nothing":      "urls.txt: no line names a request",
		"\nGET":          "urls.txt:2: a request is written [METHOD] URL [WEIGHT]",
		"GET / 0":        `urls.txt:1: weight "0"`,
		"GET / 1 2":      `urls.txt:1: weight "1 2"`,
		"get http://a/":  `urls.txt:1: weight "http://a/"`,
		"GET / x\n/ 1\n": `urls.txt:1: weight "x"`,
	} {
		if _, err := source.ParseList("urls.txt", text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range []string{"/", "POST /orders 3", "GET", "/a b", "get /"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r, err := source.ParseLine(line)
		if err == nil && (r.Path == "" || r.Weight < 0 || !slices.Contains(strings.Fields(line), r.Path)) {
			t.Errorf("%q is read as %+v", line, r)
		}
	})
}
