package pclntab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// processor is what the tables have of the one that a program is for.
type processor struct {
	quantum  uint64 // bytes of the smallest instruction
	relative uint32 // the kind of a relocation that adds where the program lies
	// uses reports whether the code of a function of the runtime's uses an offset.
	uses func(name string, code []byte, offset int) bool
}

// processorOf returns that of a program; false if such programs are not read.
func processorOf(m elf.Machine) (processor, bool) {
	switch m {
	case elf.EM_X86_64:
		return processor{1, uint32(elf.R_X86_64_RELATIVE), usesOnAMD64}, true
	case elf.EM_AARCH64:
		return processor{4, uint32(elf.R_AARCH64_RELATIVE), usesOnARM64}, true
	}
	return processor{}, false
}

func usesOnAMD64(name string, code []byte, offset int) bool {
	if name == "runtime.mcall" {
		return bytes.Contains(code, []byte{0x49, 0x89, 0x5e, byte(offset)}) // mov %rbx, offset(%r14)
	}
	return bytes.Contains(code, binary.LittleEndian.AppendUint32(nil, uint32(offset)))
}

// usesOnARM64 looks for a load or a store of eight bytes, at the offset from any register.
func usesOnARM64(_ string, code []byte, offset int) bool {
	const size, str, anyRegister = 4, 0xf9000000, 0xffbffc00 // with the bit that makes it a load, and both registers, left out
	for ; len(code) >= size; code = code[size:] {
		if binary.LittleEndian.Uint32(code)&anyRegister == str|uint32(offset/8)<<10 {
			return true
		}
	}
	return false
}
