// Package regiontest makes small databases of MaxMind's format for tests, as
// https://maxmind.github.io/MaxMind-DB/ describes it.
package regiontest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Database returns a database whose records are {"country": {"iso_code": code}}, by network.
// Of networks within others the smaller ones hold. It panics if one is not a network.
func Database(codes map[string]string) []byte {
	t := tree{nodes: [][2]int{{nothing, nothing}}}
	networks := slices.Collect(maps.Keys(codes))
	slices.SortFunc(networks, func(a, b string) int { return cmp.Compare(bits(a), bits(b)) })
	var data []byte
	for _, text := range networks {
		p := netip.MustParsePrefix(text)
		t.insert(p.Masked().Addr(), bits(text), leaf(len(data)))
		data = append(data, field("country", field("iso_code", word(codes[text])))...)
	}
	var out []byte
	for _, n := range t.nodes {
		for _, to := range n {
			out = append24(out, t.record(to))
		}
	}
	out = append(out, make([]byte, 16)...)
	out = append(out, data...)
	out = append(out, "\xab\xcd\xefMaxMind.com"...)
	return append(out, metadata(len(t.nodes))...)
}

// bits are how many bits of IPv6 a network fixes: IPv4 is below ::/96.
func bits(text string) int {
	p := netip.MustParsePrefix(text)
	if p.Addr().Is4() {
		return 96 + p.Bits()
	}
	return p.Bits()
}

// tree is the search tree: what follows each bit is a node's number, nothing, or a leaf.
type tree struct{ nodes [][2]int }

const nothing = -1

// leaf stands for a record by its offset in the data.
func leaf(offset int) int { return -2 - offset }

// insert puts what is to follow the first n bits of an address.
func (t *tree) insert(a netip.Addr, n, what int) {
	var ip [16]byte
	if a.Is4() {
		four := a.As4()
		copy(ip[12:], four[:])
	} else {
		ip = a.As16()
	}
	at := 0
	for i := range n {
		bit := ip[i/8] >> (7 - i%8) & 1
		if i == n-1 {
			t.nodes[at][bit] = what
			return
		}
		next := t.nodes[at][bit]
		if next < 0 { // it goes on, with what has held so far
			t.nodes = append(t.nodes, [2]int{next, next})
			next = len(t.nodes) - 1
			t.nodes[at][bit] = next
		}
		at = next
	}
}

// record is how the file says what follows a bit.
func (t *tree) record(what int) int {
	switch {
	case what == nothing:
		return len(t.nodes)
	case what < 0:
		return len(t.nodes) + 16 - 2 - what
	}
	return what
}

func append24(b []byte, n int) []byte { return append(b, byte(n>>16), byte(n>>8), byte(n)) }

// The types of the format that stand in the first three bits.
const (
	text    = 2 << 5
	uint16s = 5 << 5
	uint32s = 6 << 5
	mapping = 7 << 5
)

// word is a text, of at most 28 bytes.
func word(s string) []byte {
	if len(s) > 28 {
		panic(fmt.Sprintf("regiontest: %q is too long", s))
	}
	return append([]byte{text | byte(len(s))}, s...)
}

// field is a mapping of one key.
func field(key string, value []byte) []byte {
	return slices.Concat([]byte{mapping | 1}, word(key), value)
}

func number(kind byte, n uint32) []byte {
	if kind == uint16s {
		return binary.BigEndian.AppendUint16([]byte{kind | 2}, uint16(n))
	}
	return binary.BigEndian.AppendUint32([]byte{kind | 4}, n)
}

func metadata(nodes int) []byte {
	return slices.Concat([]byte{mapping | 9},
		word("binary_format_major_version"), number(uint16s, 2),
		word("binary_format_minor_version"), number(uint16s, 0),
		word("build_epoch"), []byte{4, 2, 0x65, 0, 0, 0}, // uint64, whose type stands in a second byte
		word("database_type"), word("Test-Country"),
		word("description"), field("en", word("for tests")),
		word("ip_version"), number(uint16s, 6),
		word("languages"), []byte{1, 4}, word("en"), // a list, likewise
		word("node_count"), number(uint32s, uint32(nodes)),
		word("record_size"), number(uint16s, 24))
}
