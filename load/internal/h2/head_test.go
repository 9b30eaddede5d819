package h2_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// tables writes header blocks that use the table in every way, and knows what it holds.
type tables struct {
	rng     *rand.Rand
	entries []int // sizes, the oldest first
	most    int   // bytes
}

func (w *tables) add(size int) {
	w.entries = append(w.entries, size)
	w.evict()
}

func (w *tables) evict() {
	sum := 0
	for i, size := range slices.Backward(w.entries) {
		if sum += size; sum > w.most {
			w.entries = w.entries[i+1:]
			return
		}
	}
}

// block is a status and some fields. Few differ, so that blocks come again.
func (w *tables) block() []byte {
	var b []byte
	if w.rng.IntN(40) == 0 { // a new size, of up to three bytes
		w.most = 30 * w.rng.IntN(137)
		w.evict()
		b = hpackInt(b, 0x20, 5, w.most)
	}
	b = append(b, 0x88)
	for range w.rng.IntN(3) {
		value := fmt.Sprint(w.rng.IntN(3))
		switch w.rng.IntN(5) {
		case 0: // neither of the table nor for it
			b = append(b, 0x10, 1, 'n', byte(len(value)))
			b = append(b, value...)
		case 1: // for it, by a name of RFC 7541's
			b = append(b, 0x40|33, byte(len(value)))
			b = append(b, value...)
			w.add(32 + len("date") + len(value))
		case 2: // for it, large
			value = strings.Repeat(value, 100)
			b = append(b, 0x40, 1, 'l', byte(len(value)))
			b = append(b, value...)
			w.add(32 + 1 + len(value))
		default: // of it
			if len(w.entries) > 0 {
				b = hpackInt(b, 0x80, 7, 62+w.rng.IntN(min(len(w.entries), 4)))
			}
		}
	}
	return b
}

// hpackInt appends v with a prefix of so many bits (RFC 7541, section 5.1).
func hpackInt(b []byte, first byte, bits, v int) []byte {
	most := 1<<bits - 1
	if v < most {
		return append(b, first|byte(v))
	}
	b = append(b, first|byte(most))
	for v -= most; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// Whatever blocks do with the table, they are read as a decoder reads them that has
// followed each; those that come again too, however often.
func TestTable(t *testing.T) {
	for seed := range uint64(30) {
		w := &tables{rng: rand.New(rand.NewPCG(seed, 1)), most: 4096}
		s := newServer()
		s.WriteSettings()
		oracle := hpack.NewDecoder(4096, nil)
		var want [][]hpack.HeaderField
		for len(want) < 600 {
			var b []byte
			times := 1
			if w.rng.IntN(10) == 0 { // as nginx does
				b, times = fmt.Appendf([]byte{0x88, 0x40 | 54, 8}, "server %d", w.rng.IntN(3)), 1+w.rng.IntN(200)
				for range times {
					w.add(32 + len("server") + len("server 0"))
				}
			} else {
				b = w.block()
			}
			for range times {
				fields, err := oracle.DecodeFull(b)
				if err != nil {
					t.Fatalf("seed %d: the test's block %x is none: %v", seed, b, err)
				}
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(1 + 2*len(want)), BlockFragment: b, EndHeaders: true, EndStream: true})
				want = append(want, fields[1:])
			}
		}
		c, got, _ := client(len(want))
		if err := c.Feed(s.Bytes()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, g := range got {
			if g.ends != 1 || g.err != nil || !slices.EqualFunc(g.fields, want[i], func(a, b hpack.HeaderField) bool { return a.Name == b.Name && a.Value == b.Value }) {
				t.Fatalf("seed %d: answer %d: got %v, want %v", seed, i, g, want[i])
			}
		}
	}
}
