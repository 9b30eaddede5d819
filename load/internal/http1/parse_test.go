package http1_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tarehq/tare/load/internal/check"
	"github.com/tarehq/tare/load/internal/http1"
)

// anything is a check that every answer passes.
var anything = check.Check{Length: -1}

// answers are inputs with what is to be made of them.
var answers = []struct {
	name, method, input string
	want                http1.Outcome
	bad                 string // part of the error
}{
	{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", http1.Outcome{Status: 200, Keep: true}, ""},
	{"length in odd clothes", "GET", "HTTP/1.1 200\r\ncONTENT-lENGTH:\t 005 \t\r\n\r\nhello", http1.Outcome{Status: 200, Keep: true}, ""},
	{"surplus", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhsurplus", http1.Outcome{Status: 200, Keep: true}, ""},
	{"no body", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", http1.Outcome{Status: 200, Keep: true}, ""},
	{"204", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", http1.Outcome{Status: 204, Keep: true}, ""},
	{"304", "GET", "HTTP/1.1 304 Not Modified\r\n\r\n", http1.Outcome{Status: 304, Keep: true}, ""},
	{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", http1.Outcome{Status: 200, Keep: true}, ""},
	{"HEAD, chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", http1.Outcome{Status: 200, Keep: true}, ""},
	{"close", "GET", "HTTP/1.1 500 Oh no\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", http1.Outcome{Status: 500}, ""},
	{"close in a second field", "GET", "HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", http1.Outcome{Status: 200}, ""},
	{"1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", http1.Outcome{Status: 200}, ""},
	{"1.0 kept alive", "GET", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n", http1.Outcome{Status: 200, Keep: true}, ""},
	{"until close", "GET", "HTTP/1.1 200 OK\r\n\r\nhello", http1.Outcome{Status: 200}, ""},
	{"chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2;x=\"y\"\r\nlo\r\n0\r\n\r\n", http1.Outcome{Status: 200, Keep: true}, ""},
	{"chunks counted in letters", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n012345678\r\na\r\n0123456789\r\nF\r\n0123456789abcde\r\n1b \t\r\n0123456789abcdefghijklmnopq\r\n0\r\n\r\n", http1.Outcome{Status: 200, Keep: true}, ""},
	{"trailer", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n\r\n", http1.Outcome{Status: 200, Keep: true}, ""},
	{"interim", "GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", http1.Outcome{Status: 200, Keep: true}, ""},

	{"cut in the head", "GET", "HTTP/1.1 200 OK\r\nContent-Le", http1.Outcome{}, ""},
	{"cut in the body", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", http1.Outcome{}, ""},
	{"cut in a chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhe", http1.Outcome{}, ""},
	{"cut before the last chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", http1.Outcome{}, ""},
	{"cut in the trailer", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", http1.Outcome{}, ""},

	{"not HTTP", "GET", "220 ready\r\n", http1.Outcome{}, "does not begin"},
	{"HTTP/2", "GET", "HTTP/2.0 200 OK\r\n\r\n", http1.Outcome{}, "does not begin"},
	{"HTTP/1.2", "GET", "HTTP/1.2 200 OK\r\n\r\n", http1.Outcome{}, "status line"},
	{"no status", "GET", "HTTP/1.1 OK\r\n\r\n", http1.Outcome{}, "status line"},
	{"long status", "GET", "HTTP/1.1 2000 OK\r\n\r\n", http1.Outcome{}, "status line"},
	{"status with a letter", "GET", "HTTP/1.1 2a0 OK\r\n\r\n", http1.Outcome{}, "status line"},
	{"status with a sign", "GET", "HTTP/1.1 -20 OK\r\n\r\n", http1.Outcome{}, "status line"},
	{"no space before the status", "GET", "HTTP/1.1x200 OK\r\n\r\n", http1.Outcome{}, "status line"},
	{"status line cut short", "GET", "HTTP/1.1 20\r\n\r\n", http1.Outcome{}, "status line"},
	{"NUL in the reason", "GET", "HTTP/1.1 200 O\x00K\r\nContent-Length: 0\r\n\r\n", http1.Outcome{}, "status line"},
	{"status below the range", "GET", "HTTP/1.1 099 X\r\n\r\n", http1.Outcome{}, "outside"},
	{"status out of range", "GET", "HTTP/1.1 600 X\r\n\r\n", http1.Outcome{}, "outside"},
	{"switching protocols", "GET", "HTTP/1.1 101 X\r\n\r\n", http1.Outcome{}, "unasked"},
	{"bare line feeds", "GET", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", http1.Outcome{}, "header line"},
	{"bare carriage return", "GET", "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", http1.Outcome{}, "header line"},
	{"folded line", "GET", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", http1.Outcome{}, "header line"},
	{"no colon", "GET", "HTTP/1.1 200 OK\r\nA\r\n\r\n", http1.Outcome{}, "header line"},
	{"no name", "GET", "HTTP/1.1 200 OK\r\n: b\r\n\r\n", http1.Outcome{}, "header line"},
	{"space before the colon", "GET", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n", http1.Outcome{}, "header line"},
	{"lengths twice", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", http1.Outcome{}, "Content-Length"},
	{"lengths in a list", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", http1.Outcome{}, "Content-Length"},
	{"signed length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", http1.Outcome{}, "Content-Length"},
	{"negative length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", http1.Outcome{}, "Content-Length"},
	{"empty length", "GET", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", http1.Outcome{}, "Content-Length"},
	{"length of 2^63-1", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", http1.Outcome{}, "longer"},
	{"length of 2^63", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n", http1.Outcome{}, "Content-Length"},
	{"length of 2^64+1", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\nh", http1.Outcome{}, "Content-Length"},
	{"length with a letter", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5a\r\n\r\nhello", http1.Outcome{}, "Content-Length"},
	{"chunked twice", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", http1.Outcome{}, "Transfer-Encoding"},
	{"length and chunks", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", http1.Outcome{}, "Transfer-Encoding"},
	{"gzip, chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", http1.Outcome{}, "Transfer-Encoding"},
	{"chunked in 1.0", "GET", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", http1.Outcome{}, "Transfer-Encoding"},
	{"chunk without a size", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", http1.Outcome{}, "hexadecimal"},
	{"chunk with a sign", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+3\r\nhel\r\n0\r\n\r\n", http1.Outcome{}, "hexadecimal"},
	{"chunk with another letter", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ng\r\nhello\r\n0\r\n\r\n", http1.Outcome{}, "hexadecimal"},
	{"chunk with another capital letter", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nG\r\nhello\r\n0\r\n\r\n", http1.Outcome{}, "hexadecimal"},
	{"chunk of 2^63", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8000000000000000\r\n", http1.Outcome{}, "hexadecimal"},
	{"chunk of 2^64", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n", http1.Outcome{}, "hexadecimal"},
	{"chunk of 2^63-1", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", http1.Outcome{}, "longer"},
	{"chunk longer than its size", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n", http1.Outcome{}, "chunk"},
	{"chunk line with a bare line feed", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nhe\r\n0\r\n\r\n", http1.Outcome{}, "carriage return"},
	{"trailer too long", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: b\r\n", 20_000), http1.Outcome{}, "trailer is longer than 65536"},
	{"header with bare line feeds", "GET", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", http1.Outcome{}, "carriage return"},
	{"TLS alert", "GET", "\x15\x03\x01\x00\x02\x02\x46", http1.Outcome{}, "use https://"},
	{"bad trailer", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nnothing\r\n\r\n", http1.Outcome{}, "header line"},
}

func TestParseAnswer(t *testing.T) {
	for _, tt := range answers {
		for _, step := range []int{1 << 20, 1, 2, 3, 7} {
			got, err := http1.ParseAnswer(tt.method, anything, tt.input, step)
			if tt.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tt.bad) {
					t.Errorf("%s, %d bytes at a time: got %+v and error %v, want an error about %q", tt.name, step, got, err, tt.bad)
				}
				continue
			}
			want := tt.want
			want.Done, want.Verified = want.Status != 0, want.Status != 0
			want.Read = len(strings.TrimSuffix(tt.input, "surplus"))
			got.Held = 0
			if err != nil || got != want {
				t.Errorf("%s, %d bytes at a time: got %+v and error %v, want %+v", tt.name, step, got, err, want)
			}
		}
	}
}

// What has no end is refused while little of it is held.
func TestParseEndless(t *testing.T) {
	const most = 256 << 10
	for _, tt := range []struct{ name, begin, again string }{
		{"header", "HTTP/1.1 200 OK\r\n", "A: b\r\n"},
		{"header line", "HTTP/1.1 200 OK\r\nA: ", "b"},
		{"interim answers", "", "HTTP/1.1 100 Continue\r\n\r\n"},
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n", "b"},
		{"body until close", "HTTP/1.1 200 OK\r\n\r\n", "body "},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nb\r\n"},
		{"chunk extension", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "b"},
		{"trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n"},
		{"trailer line", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ", "b"},
	} {
		input := tt.begin + strings.Repeat(tt.again, (2<<20)/len(tt.again))
		for _, step := range []int{1 << 16, 1000} {
			got, err := http1.ParseAnswer("GET", anything, input, step)
			if err == nil || got.Held > most {
				t.Errorf("endless %s, %d bytes at a time: got error %v with %d bytes held, want an error and at most %d", tt.name, step, err, got.Held, most)
			}
		}
	}
}

// A header block that differs in one byte from the last is not taken for it.
func TestParseTemplate(t *testing.T) {
	parse := http1.AnswerParser("GET", check.Check{Header: []check.Field{{Name: "X", Value: "1"}}, Length: -1}, 1<<20)
	for i, tt := range []struct {
		head     string
		status   int
		verified bool
	}{
		{"HTTP/1.1 200 OK\r\nDate: a\r\nX: 1\r\nContent-Length: 2\r\n\r\n", 200, true},
		{"HTTP/1.1 200 OK\r\nDate: a\r\nX: 1\r\nContent-Length: 2\r\n\r\n", 200, true},
		{"HTTP/1.1 200 OK\r\nDate: b\r\nX: 1\r\nContent-Length: 2\r\n\r\n", 200, true},
		{"HTTP/1.1 200 OK\r\nDate: b\r\nX: 2\r\nContent-Length: 2\r\n\r\n", 200, false},
		{"HTTP/1.1 201 OK\r\nDate: b\r\nX: 1\r\nContent-Length: 2\r\n\r\n", 201, true},
		{"HTTP/1.1 201 OK\r\nDate: b\r\nX: 1\r\nContent-Length: 3\r\n\r\nx", 201, true},
	} {
		got, err := parse([]byte(tt.head+"ab"), 1<<20)
		if err != nil || got.Status != tt.status || got.Verified != tt.verified || got.Read != len(tt.head)+2 {
			t.Errorf("answer %d, %q: got %+v and error %v, want status %d, verified %v", i, tt.head, got, err, tt.status, tt.verified)
		}
	}
}

// FuzzParse feeds an answer whole and in parts, and holds what is accepted
// against net/http: we may refuse what it takes, never take what it refuses or
// read it differently.
func FuzzParse(f *testing.F) {
	for _, tt := range answers {
		f.Add(tt.input, 3, tt.method == "HEAD")
	}
	f.Fuzz(func(t *testing.T, input string, step int, head bool) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		step = max(1, min(step, 1<<16))
		whole, err := http1.ParseAnswer(method, anything, input, 1<<20)
		parts, err2 := http1.ParseAnswer(method, anything, input, step)
		whole.Held, parts.Held = 0, 0
		if (err == nil) != (err2 == nil) || err == nil && whole != parts {
			t.Fatalf("%q: whole gives %+v and %v, %d bytes at a time %+v and %v", input, whole, err, step, parts, err2)
		}
		if err != nil || !whole.Done {
			return
		}
		compareStandard(t, method, input, whole)
	})
}

// compareStandard checks got against net/http's reading of the same input.
func compareStandard(t *testing.T, method, input string, got http1.Outcome) {
	src := strings.NewReader(input)
	r := bufio.NewReaderSize(src, 1<<20)
	var resp *http.Response
	for resp == nil || resp.StatusCode < 200 {
		var err error
		if resp, err = http.ReadResponse(r, &http.Request{Method: method}); err != nil {
			if strings.Contains(err.Error(), "bad trailer key") {
				return // it checks which fields a Trailer field announces; nothing depends on them here
			}
			t.Fatalf("%q: got %+v, net/http refuses it: %v", input, got, err)
		}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		if strings.Contains(err.Error(), "too much non-data") {
			return // a limit of another kind: ours is on the whole answer
		}
		t.Fatalf("%q: got %+v, net/http refuses the body: %v", input, got, err)
	}
	if read := len(input) - src.Len() - r.Buffered(); resp.StatusCode != got.Status || read != got.Read {
		t.Fatalf("%q: got %+v, net/http status %d and %d bytes", input, got, resp.StatusCode, read)
	}
	if keep := !resp.Close && bodyEnds(resp, method); keep != got.Keep {
		t.Fatalf("%q: got %+v, net/http keeps the connection: %v", input, got, keep)
	}
	if method == "HEAD" {
		return
	}
	sum := sha256.Sum256(body)
	same, err := http1.ParseAnswer(method, check.Check{Length: int64(len(body)), Digest: sum[:]}, input, 11)
	if err != nil || !same.Verified {
		t.Fatalf("%q: the body is not net/http's %q (%v)", input, body, err)
	}
}

// bodyEnds reports whether the end of the body shows without the connection's.
func bodyEnds(r *http.Response, method string) bool {
	return method == "HEAD" || r.StatusCode == 204 || r.StatusCode == 304 || r.ContentLength >= 0 || len(r.TransferEncoding) > 0
}

func BenchmarkParse(b *testing.B) {
	body := strings.Repeat("x", 1000)
	for _, bb := range []struct{ name, head string }{
		{"repeated", "Date: Sat, 21 Nov 2026 00:00:00 GMT\r\n"},
		{"varying", "X-Request-Id: %08d\r\n"},
	} {
		b.Run("header="+bb.name, func(b *testing.B) {
			parse := http1.AnswerParser("GET", anything, 1<<20)
			var inputs [][]byte
			for i := range 64 {
				head := bb.head
				if bb.name == "varying" {
					head = fmt.Sprintf(head, i)
				}
				inputs = append(inputs, []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"+head+"Content-Length: 1000\r\n\r\n"+body))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if a, err := parse(inputs[i%len(inputs)], 1<<20); err != nil || !a.Done {
					b.Fatal(a, err)
				}
			}
		})
	}
}

// What is kept of earlier answers is bounded, and distinguished by target.
func TestParserOfManyTargets(t *testing.T) {
	for targets, want := range map[int]int{5: 5, 300: 64} {
		wrong, places, err := http1.ParsedInTurn(targets)
		if err != nil || wrong != 0 || places != want {
			t.Errorf("%d targets: got %d headers taken for another target's, %d places (%v), want none and %d", targets, wrong, places, err, want)
		}
	}
}
