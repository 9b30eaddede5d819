package http1_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// parse reads one head and fails the test if it is refused.
func parse(t *testing.T, in string, o *http1.Options) (http1.Head, http.Header) {
	t.Helper()
	var p http1.Head
	h := http.Header{}
	if err := p.Parse(in, h, make([]string, 0, 2), o); err != nil {
		t.Fatalf("Parse(%q): %v", in, err)
	}
	return p, h
}

// TestConnection covers the options of one and of several Connection fields.
func TestConnection(t *testing.T) {
	tests := []struct {
		version, fields           string
		close, keepAlive, upgrade bool
	}{
		{"1.1", "", false, false, false},
		{"1.1", "Connection: close\r\n", true, false, false},
		{"1.1", "Connection: keep-alive\r\n", false, true, false},
		{"1.1", "Connection: Keep-Alive, Upgrade\r\n", false, true, true},
		{"1.1", "Connection: upgrade\r\nConnection: , close ,\r\n", true, false, true},
		{"1.1", "Connection: close\r\nConnection: x\r\n", true, false, false},
		{"1.1", "Connection: keep-alive\r\nConnection: x\r\n", false, true, false},
		{"1.1", "Connection: closed\r\n", false, false, false},
		{"1.1", "Connection: x, close, keep-alive\r\n", true, true, false},
		{"1.0", "Connection: upgrade, keep-alive\r\n", false, true, false},
	}
	for _, test := range tests {
		p, _ := parse(t, "GET / HTTP/"+test.version+"\r\nHost: a\r\n"+test.fields+"\r\n", &http1.Options{})
		if p.Close != test.close || p.KeepAlive != test.keepAlive || p.Upgrade != test.upgrade {
			t.Errorf("HTTP/%s %q: close %t, keep-alive %t, upgrade %t", test.version, test.fields, p.Close, p.KeepAlive, p.Upgrade)
		}
	}
}

func TestExpect(t *testing.T) {
	tests := []struct {
		version, fields string
		want            http1.Expect
	}{
		{"1.1", "", http1.NoExpect},
		{"1.1", "Expect:\r\n", http1.NoExpect},
		{"1.1", "Expect: 100-continue\r\n", http1.Continue},
		{"1.1", "Expect: 100-Continue\r\n", http1.Continue},
		{"1.1", "Expect: 100-continue\r\nExpect: 100-continue\r\n", http1.Continue},
		{"1.1", "Expect: 200-ok\r\n", http1.OtherExpect},
		{"1.1", "Expect: 200-ok\r\nExpect: 100-continue\r\n", http1.OtherExpect},
		{"1.1", "Expect: 100-continue\r\nExpect: 200-ok\r\n", http1.Continue},
		{"1.1", "Expect: 200-ok, 100-continue\r\n", http1.Continue},
		{"1.1", "Expect: 100-continued\r\n", http1.OtherExpect},
		{"1.0", "Expect: 100-continue\r\n", http1.NoExpect},
		{"1.0", "Expect: 200-ok\r\n", http1.OtherExpect},
	}
	for _, test := range tests {
		p, _ := parse(t, "GET / HTTP/"+test.version+"\r\nHost: a\r\n"+test.fields+"\r\n", &http1.Options{})
		if p.Expect != test.want {
			t.Errorf("HTTP/%s %q: %d, want %d", test.version, test.fields, p.Expect, test.want)
		}
	}
}

// TestParseOverwrites reads a plain head into one that has seen everything.
func TestParseOverwrites(t *testing.T) {
	var used, fresh http1.Head
	o := http1.Options{Lenient: http1.Lenient{Preface: true}}
	heads := []string{
		"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close, upgrade, keep-alive\r\nExpect: x\r\nTrailer: x\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
	}
	for _, in := range heads {
		fresh = http1.Head{}
		errUsed, errFresh := used.Parse(in, http.Header{}, nil, &o), fresh.Parse(in, http.Header{}, nil, &o)
		if errUsed != nil || errFresh != nil || used != fresh {
			t.Errorf("Parse(%q) = %+v, %v, want %+v, %v", in, used, errUsed, fresh, errFresh)
		}
	}
}

// TestValues makes sure that a handler that appends to one field's values never
// writes over another's, and that values outnumbering the given slice are kept.
func TestValues(t *testing.T) {
	var in strings.Builder
	in.WriteString("GET / HTTP/1.1\r\nHost: a\r\n")
	want := http.Header{}
	for i := range 40 {
		fmt.Fprintf(&in, "X-%d: %d\r\n", i%25, i)
		want.Add(fmt.Sprintf("X-%d", i%25), fmt.Sprint(i))
	}
	in.WriteString("\r\n")
	for room := range 42 {
		vals := make([]string, 1, 1+room)
		vals[0] = "not ours"
		var p http1.Head
		h := http.Header{}
		if err := p.Parse(in.String(), h, vals, &http1.Options{}); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(h, want) || vals[0] != "not ours" {
			t.Fatalf("room for %d: %v, want %v", room, h, want)
		}
		for name := range h {
			h[name] = append(h[name], "appended")
		}
		for name := range h {
			if got := h[name][:len(h[name])-1]; !reflect.DeepEqual(got, want[name]) {
				t.Fatalf("room for %d: after appending %s is %v, want %v", room, name, got, want[name])
			}
		}
	}
}

func TestMaxFields(t *testing.T) {
	for _, test := range []struct{ limit, fields, want int }{
		{0, 100, 0}, {0, 101, 431}, {3, 3, 0}, {3, 4, 431}, {-1, 5000, 0}, {1, 1, 0},
	} {
		in := "GET / HTTP/1.0\r\n" + strings.Repeat("x:\r\n", test.fields) + "\r\n"
		var p http1.Head
		err := p.Parse(in, http.Header{}, nil, &http1.Options{MaxFields: test.limit})
		if got := statusOf(err); got != test.want {
			t.Errorf("%d fields, at most %d: status %d, want %d", test.fields, test.limit, got, test.want)
		}
		err = http1.Fields(in[len("GET / HTTP/1.0\r\n"):], http.Header{}, &http1.Options{MaxFields: test.limit})
		if got := statusOf(err); got != test.want {
			t.Errorf("trailer section of %d fields, at most %d: status %d, want %d", test.fields, test.limit, got, test.want)
		}
	}
}

func statusOf(err error) int {
	var refusal *http1.Error
	if errors.As(err, &refusal) {
		return refusal.Status
	}
	return 0
}

// TestLongElements: what an engine lets in is read whatever its length.
func TestLongElements(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	p, h := parse(t, long+" /"+long+" HTTP/1.1\r\nHost: a\r\nX-"+long+": "+long+"\r\n\r\n", &http1.Options{})
	if p.Method != long || p.Target != "/"+long || len(h) != 1 || h["X-X"+long[1:]][0] != long {
		t.Error("long method, target, name and value are not what was sent")
	}
}

func TestFields(t *testing.T) {
	h := http.Header{}
	section := "x-checksum: 1\r\nX-Checksum: 2\r\nContent-Length: 3\r\nhost: b\r\nTransfer-Encoding: chunked\r\nTrailer: a\r\n" +
		"Authorization: a\r\nCookie: a\r\nContent-Type: a\r\nConnection: close\r\nUpgrade: a\r\nif-match: a\r\nRange: a\r\n" +
		"Cache-Control: a\r\nPragma: a\r\nWWW-Authenticate: a\r\nEtag: e\r\n\r\n"
	if err := http1.Fields(section, h, &http1.Options{}); err != nil {
		t.Fatal(err)
	}
	want := http.Header{"X-Checksum": {"1", "2"}, "Etag": {"e"}}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("Fields(%q) = %v, want %v", section, h, want)
	}
	for in, want := range map[string]int{
		"\r\n": 0, "\n": 400, "": 400, "a: b": 400, "a: b\r\n": 400, "a\r\n\r\n": 400, "a: \x00\r\n\r\n": 400, " a: b\r\n\r\n": 400,
	} {
		if got := statusOf(http1.Fields(in, http.Header{}, &http1.Options{})); got != want {
			t.Errorf("Fields(%q): status %d, want %d", in, got, want)
		}
	}
	folded := http.Header{}
	err := http1.Fields("a: b\n c\n\td \nx: y\r\n\n", folded, &http1.Options{Lenient: http1.Lenient{Fold: true, BareLF: true}})
	if err != nil || !reflect.DeepEqual(folded, http.Header{"A": {"b c d"}, "X": {"y"}}) {
		t.Errorf("folded fields: %v, %v", folded, err)
	}
}

// TestSameLengths: the switch is for equal lengths alone.
func TestSameLengths(t *testing.T) {
	o := http1.Options{Lenient: http1.Lenient{SameLengths: true}}
	for in, want := range map[string]int{
		"Content-Length: 5\r\nContent-Length: 5\r\n":                      0,
		"Content-Length: 5\r\nContent-Length: 6\r\n":                      400,
		"Content-Length: 5\r\nContent-Length: 05\r\n":                     400,
		"Content-Length: 5\r\nContent-Length: 5\r\nContent-Length: x\r\n": 400,
		"Content-Length: 5, 5\r\n":                                        400,
	} {
		var p http1.Head
		h := http.Header{}
		err := p.Parse("POST / HTTP/1.0\r\n"+in+"\r\n", h, nil, &o)
		if got := statusOf(err); got != want {
			t.Errorf("%q: status %d, want %d", in, got, want)
		}
		if err == nil && (p.Length != 5 || len(h["Content-Length"]) != 1) {
			t.Errorf("%q: length %d, fields %v", in, p.Length, h)
		}
	}
}

// TestPragma: no-cache alone stands for a Cache-Control, and only where there is none.
func TestPragma(t *testing.T) {
	for fields, want := range map[string][]string{
		"Pragma: no-cache\r\n":                             {"no-cache"},
		"Pragma: other\r\n":                                nil,
		"Pragma: no-cache\r\nCache-Control: max-age=1\r\n": {"max-age=1"},
	} {
		_, h := parse(t, "GET / HTTP/1.0\r\nX-Odd: 1\r\n"+fields+"\r\n", &http1.Options{})
		if got := h["Cache-Control"]; !slices.Equal(got, want) {
			t.Errorf("%q: Cache-Control %q, want %q", fields, got, want)
		}
	}
}

// TestBareLF: the switch makes LF a line end, and nothing else.
func TestBareLF(t *testing.T) {
	o := http1.Options{Lenient: http1.Lenient{BareLF: true}}
	for in, want := range map[string]int{
		"GET / HTTP/1.0\nA: b\n\n":       0,
		"GET / HTTP/1.0\nA: b\x00c\n\n":  400,
		"GET / HTTP/1.0\nA: b\rc: d\n\n": 400,
		"GET / HTTP/1.0\rA: b\n\n":       400,
	} {
		var p http1.Head
		if got := statusOf(p.Parse(in, http.Header{}, nil, &o)); got != want {
			t.Errorf("Parse(%q): status %d, want %d", in, got, want)
		}
	}
}

// TestMostLength reads the largest length that can be counted.
func TestMostLength(t *testing.T) {
	p, _ := parse(t, "POST / HTTP/1.0\r\nContent-Length: 9223372036854775807\r\n\r\n", &http1.Options{})
	if p.Length != 1<<63-1 {
		t.Errorf("length %d, want 2^63-1", p.Length)
	}
}

// TestRefusingAllocates keeps refusals cheap: they are what an attack asks for.
func TestRefusingAllocates(t *testing.T) {
	h := make(http.Header, 8)
	vals := make([]string, 0, 200)
	var p http1.Head
	var o http1.Options
	for _, a := range attacks(t) {
		head := string(a.in)
		if a.status == 200 || p.Parse(head, http.Header{}, vals, &o) == nil {
			continue
		}
		if strings.Contains(head, "X-") {
			continue // each unknown name that is not canonical is made so
		}
		allocs := testing.AllocsPerRun(5, func() {
			clear(h)
			if p.Parse(head, h, vals, &o) == nil {
				t.Errorf("%s is read", a.name)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations, want 0", a.name, allocs)
		}
	}
}
