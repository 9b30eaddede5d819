package http1_test

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"net/http/httputil"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// decode feeds b to a Chunks in the pieces that size gives, and returns the
// data, the bytes used up, whether the last chunk was read, and a refusal. It
// checks what Decode promises of its results.
func decode(t testing.TB, b []byte, size func() int) (data []byte, used int, done bool, err error) {
	t.Helper()
	var c http1.Chunks
	for end := 0; ; {
		n, part, done, err := c.Decode(b[used:end])
		if n < 0 || n > end-used || len(part) > n {
			t.Fatalf("Decode used %d and returned %d of %d bytes", n, len(part), end-used)
		}
		data = append(data, part...)
		used += n
		if err != nil || done {
			return data, used, done, err
		}
		if n > 0 {
			continue
		}
		if end == len(b) {
			return data, used, false, nil
		}
		end = min(end+max(1, size()), len(b))
	}
}

func whole() int { return 1 << 30 }

// TestChunksWantMore gives one body in all ways of cutting it in two.
func TestChunksWantMore(t *testing.T) {
	const in = "5;a=\"b\"\r\nhello\r\n10\r\n0123456789abcdef\r\n000\r\nX: y\r\n\r\n"
	const want = "hello0123456789abcdef"
	for cut := range len(in) + 1 {
		first := true
		data, used, done, err := decode(t, []byte(in), func() int {
			if first {
				first = false
				return cut
			}
			return len(in)
		})
		if string(data) != want || !done || err != nil || in[used:] != "X: y\r\n\r\n" {
			t.Errorf("cut at %d: %q, done %t, %v, rest %q", cut, data, done, err, in[used:])
		}
	}
	for n := range len(in) - len("X: y\r\n\r\n") {
		if _, _, done, err := decode(t, []byte(in[:n]), whole); done || err != nil {
			t.Errorf("of %q: done %t, %v, want to be waiting", in[:n], done, err)
		}
	}
}

// TestChunksLarge decodes sizes that do not fit 32 bits, without their data.
func TestChunksLarge(t *testing.T) {
	for _, size := range []string{"ffffffff", "100000000", "7fffffffffffffff", "7FFFFFFFFFFFFFFF", "0000000100000000"} {
		data, _, done, err := decode(t, []byte(size+"\r\nabc"), whole)
		if string(data) != "abc" || done || err != nil {
			t.Errorf("%s: %q, done %t, %v", size, data, done, err)
		}
	}
}

// TestChunksExtensionsPaid: what may come grows with the data, so that signed
// chunks can go on for ever, and nothing else.
func TestChunksExtensionsPaid(t *testing.T) {
	chunk := func(data int) string {
		return strings.ToLower(strconv.FormatInt(int64(data), 16)) + ";chunk-signature=" + strings.Repeat("f", 64) + "\r\n" + strings.Repeat("x", data) + "\r\n"
	}
	for _, test := range []struct {
		data, chunks int
		done         bool
	}{{4096, 300, true}, {1024, 300, true}, {100, 300, false}, {1, 203, false}, {1, 202, true}} {
		in := strings.Repeat(chunk(test.data), test.chunks) + "0\r\n"
		_, _, done, err := decode(t, []byte(in), whole)
		if done != test.done || (err == nil) != test.done {
			t.Errorf("%d signed chunks of %d bytes: done %t, %v, want %t", test.chunks, test.data, done, err, test.done)
		}
	}
}

func TestChunksAllocate(t *testing.T) {
	in := []byte("400;chunk-signature=" + strings.Repeat("f", 64) + "\r\n" + strings.Repeat("x", 1024) + "\r\n0\r\n")
	allocs := testing.AllocsPerRun(10, func() {
		var c http1.Chunks
		for used := 0; ; {
			n, _, done, err := c.Decode(in[used:])
			if err != nil {
				t.Fatal(err)
			}
			if used += n; done {
				return
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

// FuzzChunks compares with net/http's reader, whole and cut at random.
func FuzzChunks(f *testing.F) {
	for _, a := range attacks(f) {
		if _, body, ok := bytes.Cut(a.in, []byte("chunked\r\n\r\n")); ok {
			f.Add(body, uint64(1))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		data, used, done, err := decode(t, in, whole)
		random := rand.New(rand.NewPCG(seed, 0))
		data2, used2, done2, err2 := decode(t, in, func() int { return 1 + random.IntN(9) })
		if !bytes.Equal(data, data2) || done != done2 || err != err2 || err == nil && used != used2 {
			t.Fatalf("whole %q %d %t %v, cut %q %d %t %v", data, used, done, err, data2, used2, done2, err2)
		}
		compareChunks(t, in, chunkResult{data, used, done, err})
	})
}

type chunkResult struct {
	data []byte
	used int
	done bool
	err  error
}

// compareChunks holds a result against net/http's reading of the same bytes.
func compareChunks(t *testing.T, in []byte, got chunkResult) {
	t.Helper()
	rest := bufio.NewReader(bytes.NewReader(in))
	want, err := io.ReadAll(httputil.NewChunkedReader(rest))
	left, _ := io.ReadAll(rest)
	out := outcome{verdict: accept, requests: []request{{}}}
	theirs := outcome{verdict: accept, requests: []request{{}}}
	switch {
	case got.err != nil:
		out.verdict, out.reason = reject, got.err.Error()
		out.section = firstLine(in[got.used:])
	case !got.done:
		out.verdict = body
	}
	switch {
	case err == io.ErrUnexpectedEOF:
		theirs.verdict = body
	case err != nil:
		theirs.verdict = reject
	}
	if out.verdict == theirs.verdict {
		if got.err == nil && !bytes.Equal(got.data, want) || got.done && !bytes.Equal(in[got.used:], left) {
			t.Fatalf("data %q with %d left, want %q with %d", got.data, len(in)-got.used, want, len(left))
		}
		return
	}
	// The classes look at a stream, in which a chunk's line follows another.
	d := differ(append([]byte("\n"), in...), out, theirs)[0]
	if name := classify(d); name == "" && !(theirs.verdict == reject && chunkRefusedLater(t, in)) {
		t.Fatalf("an unlisted difference: ours %s %s at %q, net/http %s %v", out.verdict, out.reason, out.section, theirs.verdict, err)
	}
}

// chunkRefusedLater is what the class named late is for a body alone.
func chunkRefusedLater(t *testing.T, in []byte) bool {
	_, _, _, err := decode(t, append(in[:len(in):len(in)], "\r\n\r\n"...), whole)
	return err != nil
}
