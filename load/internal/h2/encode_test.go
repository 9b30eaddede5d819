package h2_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tarehq/tare/load/internal/h2"
)

// fixed is a request whose fields do not vary.
type fixed struct {
	encoder *h2.Encoder
	fields  []h2.Field
}

func (f fixed) AppendHead(dst []byte, t h2.Table) []byte {
	for _, field := range f.fields {
		dst = f.encoder.Append(dst, field, t)
	}
	return dst
}

// What requests have in common is sent once, and a server reads what was meant, whatever
// room it has for that.
func TestHeadersAreRead(t *testing.T) {
	common := []h2.Field{{Name: ":method", Value: "GET"}, {Name: ":authority", Value: "example.com"}}
	long := h2.Field{Name: "x-long", Value: strings.Repeat("v", 5000)}
	for name, requests := range map[string][][]h2.Field{
		"one":         {append(slices.Clone(common), h2.Field{Name: ":path", Value: "/a"}, h2.Field{Name: "x-empty"})},
		"several":     {append(slices.Clone(common), h2.Field{Name: ":path", Value: "/a"}), append(slices.Clone(common), h2.Field{Name: ":path", Value: "/b"})},
		"other order": {common, {common[1], common[0]}, {{Name: "x", Value: "y"}, common[1]}},
		"swapped":     {{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}, {{Name: "b", Value: "2"}, {Name: "a", Value: "1"}}},
		"twice":       {append(slices.Clone(common), h2.Field{Name: "x", Value: "y"}, h2.Field{Name: "x", Value: "y"})},
		"long":        {append(slices.Clone(common), long)},
	} {
		for _, room := range []int{4096, 100, 0} {
			t.Run(fmt.Sprintf("%s/%d", name, room), func(t *testing.T) {
				e := h2.NewEncoder(requests)
				c := h2.New(e.Need())
				c.Begin()
				s := newServer()
				s.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(room)})
				c.Feed(s.Bytes())
				dec := hpack.NewDecoder(4096, nil)
				dec.SetAllowedMaxDynamicTableSize(uint32(room))
				var sizes []int
				for i := range 8 {
					want := requests[i%len(requests)]
					c.Out = c.Out[:0]
					if !c.Start(&h2.Stream{Request: fixed{e, want}, Sink: &sink{}}) {
						t.Fatal("not taken")
					}
					var block []byte
					for _, f := range read(t, c.Out) {
						switch f := f.(type) {
						case *http2.HeadersFrame:
							block = append(block, f.HeaderBlockFragment()...)
						case *http2.ContinuationFrame:
							block = append(block, f.HeaderBlockFragment()...)
						}
					}
					got, err := dec.DecodeFull(block)
					if err != nil {
						t.Fatalf("request %d: %v", i, err)
					}
					if !slices.EqualFunc(got, want, func(a hpack.HeaderField, b h2.Field) bool { return a.Name == b.Name && a.Value == b.Value }) {
						t.Errorf("request %d: got %v, want %v", i, got, want)
					}
					sizes = append(sizes, len(block))
				}
				if name == "one" && room == 4096 && (sizes[1] > 8 || sizes[0] <= sizes[1]) {
					t.Errorf("header blocks of %v bytes, want all but the first short", sizes)
				}
			})
		}
	}
}

// A header that no frame has room for goes in several.
func TestLongHeader(t *testing.T) {
	fields := []h2.Field{{Name: ":method", Value: "GET"}, {Name: "x", Value: strings.Repeat("\x7f", 40_000)}} // Huffman makes it no shorter
	e := h2.NewEncoder([][]h2.Field{fields})
	c := h2.New(e.Need())
	c.Begin()
	c.Out = c.Out[:0]
	c.Start(&h2.Stream{Request: fixed{e, fields}, Sink: &sink{}})
	frames := read(t, c.Out)
	if len(frames) != 3 {
		t.Fatalf("got %d frames, want 3", len(frames))
	}
	head := frames[0].(*http2.HeadersFrame)
	if head.HeadersEnded() || !head.StreamEnded() || !frames[2].(*http2.ContinuationFrame).HeadersEnded() {
		t.Errorf("got %v, want the last to end the header, and the first the stream", frames)
	}
}
