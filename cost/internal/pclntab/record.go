package pclntab

import (
	"encoding/binary"
	"iter"
)

// Offsets in a function's record. They have not changed since Go 1.20.
const (
	recName    = 4
	recPCSP    = 16
	recPCFile  = 20
	recPCLine  = 24
	recPCData  = 28 // how many tables of values by address follow
	recUnit    = 32
	recDecl    = 36
	recID      = 40
	recFlags   = 41
	recData    = 43 // how many further offsets follow those
	recordSize = 44
)

const (
	pcdataInlined   = 2      // the table of values that gives the inlined call
	funcdataInlined = 3      // the further offset that gives the tree of calls
	nodeSize        = 16     // of such a tree
	nodeName        = 4      // in a node
	flagSPWrite     = 1 << 1 // the function sets the stack pointer at will
)

// record is what the tables say of one function.
type record struct {
	t          *Table
	entry, end uint64
	data       []byte // from the record on
}

// record returns that of function i. Functions without code are there in programs
// that a C linker put together.
func (t *Table) record(i int) (record, bool) {
	off := uint64(binary.LittleEndian.Uint32(t.index[8*i+4:]))
	r := record{t: t, entry: t.entry(i), end: t.entry(i + 1)}
	if off+recordSize > uint64(len(t.funcs)) || r.end < r.entry {
		return record{}, false
	}
	r.data = t.funcs[off:]
	return r, true
}

// u32 returns the field at an offset, which is 0 if the table ends before it.
func (r record) u32(off uint32) uint32 {
	if uint64(off)+4 > uint64(len(r.data)) {
		return 0
	}
	return binary.LittleEndian.Uint32(r.data[off:])
}

func (r record) switchesStacks() bool { return r.data[recFlags]&flagSPWrite != 0 }

// function describes the function.
func (r record) function() Func {
	outermost := r.entry
	for c := range r.calls(r.entry) {
		outermost = c.pc
	}
	file, _ := r.position(outermost)
	return Func{
		Name: Printed(r.t.name(r.u32(recName))), File: file, Decl: int(int32(r.u32(recDecl))),
		Entry: r.entry, End: r.end,
	}
}

// position returns the file and line of an address.
func (r record) position(pc uint64) (string, int) {
	file, ok := r.value(r.u32(recPCFile), pc)
	line, known := r.value(r.u32(recPCLine), pc)
	if !ok || !known || file < 0 || line < 0 {
		return "?", 0
	}
	at := 4 * (uint64(r.u32(recUnit)) + uint64(file))
	if at+4 > uint64(len(r.t.units)) {
		return "?", 0
	}
	return text(r.t.files, binary.LittleEndian.Uint32(r.t.units[at:])), int(line)
}

// call is one of the functions that an address stands for.
type call struct {
	pc   uint64 // an address whose file and line are where the function was
	name uint32 // offset
	decl int
	id   byte // its place in the runtime's list of special functions
}

// calls yields what was inlined at an address, innermost first, and at last the
// function itself.
func (r record) calls(pc uint64) iter.Seq[call] {
	const deepest = 256 // a broken tree may lead in a circle
	tree, off := r.tree(), r.inlinedOffset()
	return func(yield func(call) bool) {
		for range deepest {
			i, ok := r.value(off, pc)
			if !ok || i < 0 || uint64(i) >= uint64(len(tree)/nodeSize) {
				break
			}
			node := tree[nodeSize*int(i):][:nodeSize]
			if !yield(call{
				pc: pc, id: node[0], name: binary.LittleEndian.Uint32(node[nodeName:]),
				decl: int(int32(binary.LittleEndian.Uint32(node[12:]))),
			}) {
				return
			}
			pc = r.entry + uint64(binary.LittleEndian.Uint32(node[8:]))
		}
		yield(call{pc: pc, name: r.u32(recName), decl: int(int32(r.u32(recDecl))), id: r.data[recID]})
	}
}

// inlinedOffset returns where the table lies that gives, by address, the node of
// the tree of inlined calls; 0 if there is none.
func (r record) inlinedOffset() uint32 {
	if r.u32(recPCData) <= pcdataInlined {
		return 0
	}
	return r.u32(recordSize + 4*pcdataInlined)
}

// tree returns the function's tree of inlined calls, and what follows it.
func (r record) tree() []byte {
	const none = ^uint32(0)
	pcdata := r.u32(recPCData)
	if r.data[recData] <= funcdataInlined || pcdata > uint32(len(r.data)/4) {
		return nil
	}
	off := r.u32(recordSize + 4*pcdata + 4*funcdataInlined)
	if off == none || uint64(off) > uint64(len(r.t.inlined)) {
		return nil
	}
	return r.t.inlined[off:]
}

// step is a value that holds from one address on.
type step struct {
	from, to uint64 // to is the first address of the next step
	value    int32
}

// value looks an address up in the function's table at an offset.
func (r record) value(off uint32, pc uint64) (int32, bool) {
	for s := range r.steps(off) {
		if pc < s.to {
			return s.value, pc >= s.from
		}
	}
	return 0, false
}

// steps yields the function's table at an offset. Each step is two numbers of
// variable length: by how much the value differs from the one before, its sign in
// the lowest bit, and for how many of the smallest instructions it holds. Offset 0 is no
// table.
func (r record) steps(off uint32) iter.Seq[step] {
	return func(yield func(step) bool) {
		if off == 0 || uint64(off) >= uint64(len(r.t.values)) {
			return
		}
		rest := r.t.values[off:]
		s := step{to: r.entry, value: -1}
		for first := true; s.to < r.end; first = false {
			change, n := binary.Uvarint(rest)
			if n <= 0 || change == 0 && !first {
				return
			}
			rest = rest[n:]
			length, n := binary.Uvarint(rest)
			if n <= 0 {
				return
			}
			rest = rest[n:]
			s.from, s.to = s.to, s.to+uint64(uint32(length))*r.t.cpu.quantum
			s.value += int32(uint32(change)>>1) ^ -int32(change&1)
			if !yield(s) {
				return
			}
		}
	}
}
