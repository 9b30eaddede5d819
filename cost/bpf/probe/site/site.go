// Package site finds, in the machine code behind a call, an instruction on which a probe is
// cheap.
package site

import "golang.org/x/arch/x86/x86asm"

// emulated reports whether the kernel emulates the instruction that code begins
// with. It emulates a few more in newer versions; these it emulates in all.
func emulated(code []byte) bool {
	if len(code) < 2 {
		return false
	}
	switch op := code[0]; {
	case op == 0xe8 || op == 0xe9 || op == 0xeb: // call, jmp
		return true
	case op >= 0x70 && op <= 0x7f: // conditional jump
		return true
	case op >= 0x50 && op <= 0x57 || op == 0x90: // push, nop
		return true
	case op == 0x0f:
		return code[1] >= 0x80 && code[1] <= 0x8f // conditional jump, far
	case op == 0x41:
		return code[1] >= 0x50 && code[1] <= 0x57 // push of r8 … r15
	}
	return false
}

// Ending is how the code behind a call goes on until it returns or can be probed.
type Ending int

const (
	// Marked says that an emulated instruction follows, and only plain ones before it.
	Marked Ending = iota
	// Late is as Marked, but something is called before it that takes its time.
	Late
	// Returned says that the function returns before there is one, at no cost to speak of.
	Returned
	// Unknown says that the code cannot be followed.
	Unknown
)

// reach is how many bytes behind a call are worth looking at.
const reach = 512

// After follows the code to which a call returns, up to the first instruction
// that the kernel emulates, and returns that one's offset.
func After(code []byte) (int, Ending) {
	end := Marked
	for at := 0; at < len(code) && at < reach; {
		if emulated(code[at:]) {
			return at, end
		}
		in, err := x86asm.Decode(code[at:], 64)
		if err != nil {
			return 0, Unknown
		}
		switch in.Op {
		case x86asm.RET:
			if end == Late {
				return 0, Unknown
			}
			return 0, Returned
		case x86asm.CALL:
			end = Late
		case x86asm.JMP, x86asm.UD2, x86asm.INT, x86asm.HLT:
			return 0, Unknown
		}
		at += in.Len
	}
	return 0, Unknown
}
