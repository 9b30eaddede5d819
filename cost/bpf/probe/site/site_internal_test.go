package site

import (
	"encoding/hex"
	"strings"
	"testing"
)

// machine reads hexadecimal code, blanks allowed.
func machine(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEmulated(t *testing.T) {
	tests := []struct {
		name, code string
		want       bool
	}{
		{"push %rbp", "55 48", true},
		{"push %r12", "41 54", true},
		{"call rel32", "e8 00 01 00 00", true},
		{"jmp rel32", "e9 00 01 00 00", true},
		{"jmp rel8", "eb 10", true},
		{"jne rel8", "75 10", true},
		{"jbe rel32", "0f 86 00 01 00 00", true},
		{"nop", "90 90", true},
		{"ret", "c3 90", false},
		{"pop %rbp", "5d c3", false},
		{"cmp 0x10(%r14),%rsp", "49 3b 66 10", false},
		{"call *%rsi", "ff d6", false},
		{"jmp *%rax", "ff e0", false},
		{"mov %rsp,%rbp", "48 89 e5", false},
		{"movb $0, 0x27(%rsp)", "c6 44 24 27 00", false},
		{"pop %r12", "41 5c", false},
		{"nopw, which only newer kernels emulate", "0f 1f 44 00 00", false},
		{"16-bit call", "66 e8 00 01", false},
		{"one byte at the end", "55", false},
		{"nothing", "", false},
	}
	for _, tt := range tests {
		if got := emulated(machine(t, tt.code)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestAfter(t *testing.T) {
	tests := []struct {
		name, code string
		at         int
		end        Ending
	}{
		{"a jump at once", "75 10 c3", 0, Marked},
		{"a jump behind plain instructions", "48 8b 44 24 28 48 85 c0 74 20", 8, Marked},
		{"a direct call behind plain instructions", "31 c0 e8 00 00 00 00", 2, Marked},
		{"returns", "48 83 c4 48 5d c3 75 10", 0, Returned},
		{"calls a deferred literal first", "c6 44 24 27 00 48 8b 54 24 40 48 8b 32 ff d6 75 02", 15, Late},
		{"calls something and returns", "ff d6 48 83 c4 48 5d c3", 0, Unknown},
		{"a jump through a table", "ff e0 75 10", 0, Unknown},
		{"never comes back", "0f 0b 75 10", 0, Unknown},
		{"an instruction that cannot be read", "c5 f8 77 75 10", 0, Unknown},
		{"the function's end", "48 89 e5", 0, Unknown},
		{"nothing", "", 0, Unknown},
	}
	for _, tt := range tests {
		at, end := After(machine(t, tt.code))
		if at != tt.at || end != tt.end {
			t.Errorf("%s: got %d, %d, want %d, %d", tt.name, at, end, tt.at, tt.end)
		}
	}
}

func TestAfterGivesUp(t *testing.T) {
	long := append(machine(t, strings.Repeat("48 89 e5", reach)), 0x75, 0x10)
	if at, end := After(long); end != Unknown {
		t.Errorf("got %d, %d behind %d bytes, want it to give up", at, end, len(long))
	}
}

// FuzzAfter holds what is found against what may be probed: any other place makes
// the kernel step, or worse.
func FuzzAfter(f *testing.F) {
	f.Add(machine(f, "48 8b 44 24 28 48 85 c0 74 20"))
	f.Add(machine(f, "ff d6 48 83 c4 48 5d c3"))
	f.Add(machine(f, "c5 f8 77 66 0f 1f 44 00 00 e8 01 02 03 04"))
	f.Fuzz(func(t *testing.T, code []byte) {
		at, end := After(code)
		if end != Marked && end != Late {
			if at != 0 {
				t.Errorf("%x: got offset %d of no site", code, at)
			}
			return
		}
		if at < 0 || at >= len(code) || !emulated(code[at:]) {
			t.Errorf("%x: got a site at %d, which is not emulated", code, at)
		}
	})
}
