package probe

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
)

// fake is a program of a few functions, each at a multiple of 0x100.
type fake struct {
	names map[uint64]string
	codes map[uint64]string // by the address that a call returns to
	lits  map[string][]uint64
	t     *testing.T
}

func (f fake) code(pc uint64) []byte       { return machine(f.t, f.codes[pc]) }
func (f fake) function(pc uint64) string   { return f.names[pc&^0xff] }
func (f fake) literals(fn string) []uint64 { return f.lits[fn] }
func (f fake) delta(pc uint64) (int, bool) {
	return int(pc & 0xff), f.names[pc&^0xff] != "main.strange"
}

const (
	wrapper = 0x110 // returns at once
	outer   = 0x210 // has a jump three bytes on
	defers  = 0x310 // calls its own literal before anything that can be probed
	serve   = 0x410
	goexit  = 0x510
	tables  = 0x610 // jumps through a table
	strange = 0x710 // distance of SP not known
)

func newFake(t *testing.T) fake {
	return fake{
		t: t,
		names: map[uint64]string{
			0x100: "net/http.HandlerFunc.ServeHTTP", 0x200: "main.outer", 0x300: "main.defers",
			0x400: "net/http.(*conn).serve", 0x500: "runtime.goexit", 0x600: "main.tables", 0x700: "main.strange",
		},
		codes: map[uint64]string{
			wrapper: "48 83 c4 48 5d c3", outer: "48 85 c0 75 10", defers: "ff d6 75 02",
			serve: "e8 00 00 00 00", goexit: "e8 00 00 00 00", tables: "ff e0", strange: "75 10",
		},
		lits: map[string][]uint64{"main.defers": {0x351}},
	}
}

func TestPlan(t *testing.T) {
	tests := []struct {
		name    string
		rets    []uint64
		marks   []mark
		blurred string // a part of the reason
	}{
		{"in the caller", []uint64{outer, serve, goexit}, []mark{{outer + 3, 0x13}}, ""},
		{"further out, past callers that return", []uint64{wrapper, wrapper, outer, serve}, []mark{{outer + 3, 0x13}}, ""},
		{"past all callers", []uint64{wrapper, serve, goexit}, []mark{{serve, 0x10}}, ""},
		{"late, with a literal that may be what is called", []uint64{defers, serve}, []mark{{defers + 2, 0x12}, {0x351, inward}}, "main.defers, which calls it, calls something else"},
		{"behind what cannot be followed", []uint64{tables, serve}, []mark{{serve, 0x10}}, "main.tables, which calls it, does more"},
		{"SP not known", []uint64{strange, serve}, []mark{{serve, 0x10}}, ""},
		{"only the runtime", []uint64{goexit}, nil, "runtime.goexit"},
		{"code without a name", []uint64{0x9910}, nil, "no name"},
		{"no caller", nil, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := newPlan([]route{{7, tt.rets}}, newFake(t))
			if !reflect.DeepEqual(got.marks, tt.marks) {
				t.Errorf("got marks %x, want %x", got.marks, tt.marks)
			}
			why := got.blurred[7].why
			if (why == "") != (tt.blurred == "") || !strings.Contains(why, tt.blurred) {
				t.Errorf("got reason %q, want %q", why, tt.blurred)
			}
			var callers []uint64
			if len(tt.marks) > 0 {
				callers = tt.rets[:1]
			}
			if !reflect.DeepEqual(got.callers, callers) {
				t.Errorf("got callers %x, want %x", got.callers, callers)
			}
		})
	}
}

func TestPlanShares(t *testing.T) {
	got := newPlan([]route{{0, []uint64{wrapper, outer}}, {1, []uint64{outer, serve}}, {0, []uint64{serve}}}, newFake(t))
	if want := []mark{{outer + 3, 0x13}, {serve, 0x10}}; !reflect.DeepEqual(got.marks, want) {
		t.Errorf("got marks %x, want each once: %x", got.marks, want)
	}
	if want := map[mark][]int{{outer + 3, 0x13}: {0, 1}, {serve, 0x10}: {0}}; !reflect.DeepEqual(got.ends, want) {
		t.Errorf("got owners %v whose calls they end, want %v", got.ends, want)
	}
	if len(got.blurred) != 0 {
		t.Errorf("got reasons %v, want none", got.blurred)
	}
}

// TestIdle keeps a mark that every request passes for an owner that is seldom called.
func TestIdle(t *testing.T) {
	for _, tt := range []struct {
		hits, closed, calls uint64
		want                bool
	}{
		{5000, 0, 0, false}, {5000, 0, 2, false}, {5000, 0, 100, true}, {5000, 1, 100, false}, {50, 0, 50, false},
		{20_001, 0, 2, true},
	} {
		if got := idle(tt.hits, tt.closed, tt.calls); got != tt.want {
			t.Errorf("%d hits, %d calls ended of %d: got %t, want %t", tt.hits, tt.closed, tt.calls, got, tt.want)
		}
	}
}

// machine reads hexadecimal code, blanks allowed.
func machine(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
