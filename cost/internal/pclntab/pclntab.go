// Package pclntab reads, from a Go program's file alone, what its runtime knows of
// its functions: names, files, lines, inlined calls and how far the stack pointer
// is from the return address at each instruction.
//
// The tables are those that the runtime needs for its own tracebacks, so they are
// there in stripped programs and in position-independent ones, and they say what
// runtime.CallersFrames would. Neither DWARF nor a symbol table is looked at.
//
// Addresses are those of the file. A position-independent program runs elsewhere:
// [Table.Bias] says by how much.
//
// Promised: a file that is broken or hostile gives an error, or nonsense, but no
// panic, and no more memory than a small multiple of its size. Read are programs
// for amd64 and arm64 of the versions of Go in the package's table of layouts, and of newer ones
// that have what they are checked for where the newest known has it; others are refused
// with [ErrUnsupported]. Functions written in C are not in the tables.
package pclntab

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
)

// ErrUnsupported says that a file is no Go program whose tables can be read; the
// error that wraps it says why.
var ErrUnsupported = errors.New("no Go program that can be read")

// Frame is a function at one of its lines.
type Frame struct {
	Func string // as runtime.Frame.Function has it
	File string // "?" if the tables do not say
	Line int    // 0 if the tables do not say
	Decl int    // the line on which the function begins
}

// Func is a function of the program.
type Func struct {
	Name       string
	File       string
	Decl       int    // the line on which it begins
	Entry, End uint64 // its code, from the first address to the one after the last
}

// Table is what is known of a program's functions. Its methods are safe for
// concurrent use, Close excepted.
type Table struct {
	img    *image
	cpu    processor
	goVer  string
	layout layout

	text    uint64 // what entries of the function table are relative to
	names   []byte // function names, each ended by a zero
	units   []byte // by compilation unit and file: the offset of the file's name
	files   []byte // file names, each ended by a zero
	values  []byte // values by address, in steps
	funcs   []byte // records of functions
	index   []byte // by address: the record's offset
	n       int    // functions in index
	inlined []byte // what funcdata is relative to: trees of inlined calls
}

// Open reads the tables of the program in a file, which may be
// /proc/PID/exe. The file stays open until Close, for [Table.Text].
func Open(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return ReadFile(f)
}

// ReadFile is Open of a file that is open already, which is the table's from then on; it
// is closed if there is none.
func ReadFile(f *os.File) (*Table, error) {
	t, err := read(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

// Close closes the file. After that there is no function in the table.
func (t *Table) Close() error {
	t.n = 0
	return errors.Join(t.img.unmap(), t.img.closer.Close())
}

// Cool gives back the memory of what was looked at; what is asked for again is read again.
// There may be no table.
func (t *Table) Cool() {
	if t != nil {
		t.img.cool()
	}
}

// Go returns the version of Go that built the program, such as go1.26.1.
func (t *Table) Go() string { return t.goVer }

// PIE reports whether the program runs at addresses other than the file's.
func (t *Table) PIE() bool { return t.img.pie }

// Goid returns the offset of a goroutine's number in the runtime's record of it.
func (t *Table) Goid() int { return t.layout.goid }

// Frame returns the offset, in the runtime's record of a goroutine, of the frame pointer
// that it left when it went over to the stack of its thread.
func (t *Table) Frame() int { return t.layout.frame }

// Current returns the offset, in the runtime's record of a thread, of the goroutine
// that it runs.
func (t *Table) Current() int { return t.layout.current }

// Code returns where the program's functions are, from the first address to the one
// after the last.
func (t *Table) Code() (from, to uint64) {
	guard(func() { from, to = t.entry(0), t.entry(t.n) })
	return from, to
}

// Lookup returns the function that holds an address.
func (t *Table) Lookup(pc uint64) (f Func, found bool) {
	guard(func() {
		if r, ok := t.find(pc); ok {
			f, found = r.function(), true
		}
	})
	return f, found
}

// Funcs yields all functions by address.
func (t *Table) Funcs() iter.Seq[Func] {
	return func(yield func(Func) bool) {
		defer t.img.cool()
		for i := range t.n {
			var f Func
			var found bool
			guard(func() {
				var r record
				if r, found = t.record(i); found {
					f = r.function()
				}
			})
			if found && !yield(f) {
				return
			}
		}
	}
}

// Find returns the functions that have one of the names, by address. It looks at names
// alone, which takes a tenth of the time that going through Funcs takes.
func (t *Table) Find(names ...string) (all []Func) {
	defer t.img.cool()
	guard(func() {
		for i := range t.n {
			if r, ok := t.record(i); ok && slices.Contains(names, Printed(t.name(r.u32(recName)))) {
				all = append(all, r.function())
			}
		}
	})
	return all
}

// Frames returns the functions that an address stands for, innermost first: those
// inlined at it, then the one whose code it is. For a return address the address
// before it is to be asked for, as that is in the call. Functions that the
// compiler made up to call others (wrappers) are left out as runtime.Callers
// leaves them out, so that the result may be empty for an address that Lookup
// knows.
//
// Note: runtime.Callers keeps a wrapper that panicked itself, on a nil receiver.
// Here it is left out as well.
func (t *Table) Frames(pc uint64) (frames []Frame) {
	guard(func() { frames = t.framesAt(pc) })
	return frames
}

func (t *Table) framesAt(pc uint64) []Frame {
	r, ok := t.find(pc)
	if !ok {
		return nil
	}
	var frames []Frame
	for c := range r.calls(pc) {
		if c.id == t.layout.wrapper {
			continue
		}
		file, line := r.position(c.pc)
		frames = append(frames, Frame{Func: Printed(t.name(c.name)), File: file, Line: line, Decl: c.decl})
	}
	return frames
}

// SPDelta returns by how many bytes a function has moved the stack pointer when the
// instruction at pc is about to run. On amd64 the return address lies as far above it. On
// arm64 it lies right at it, or in the link register if it was not moved. It is not known
// outside of Go functions, nor in those that switch stacks.
func (t *Table) SPDelta(pc uint64) (delta int, known bool) {
	guard(func() {
		r, ok := t.find(pc)
		if !ok || r.switchesStacks() {
			return
		}
		v, ok := r.value(r.u32(recPCSP), pc)
		delta, known = int(v), ok && v >= 0
	})
	return delta, known
}

// pushBP is the instruction `push %rbp`.
const pushBP = 0x55

// Push returns the address of the instruction by which a function saves its
// caller's frame pointer; on arm64 that of the one by which it makes its frame. Functions
// without a frame have none.
func (t *Table) Push(f Func) (at uint64, saves bool) {
	guard(func() { at, saves = t.pushOf(f) })
	return at, saves
}

func (t *Table) pushOf(f Func) (uint64, bool) {
	r, ok := t.find(f.Entry)
	if !ok {
		return 0, false
	}
	for s := range r.steps(r.u32(recPCSP)) {
		if s.value == 0 {
			continue
		}
		at := s.from - t.cpu.quantum
		if t.cpu.quantum > 1 {
			return at, s.from > r.entry && s.value > 0
		}
		var code [1]byte
		if s.value != 8 || s.from <= r.entry || t.img.at(code[:], at) != nil || code[0] != pushBP {
			return 0, false
		}
		return at, true
	}
	return 0, false
}

// maxText bounds the code of one function.
const maxText = 16 << 20

// Text returns a function's code.
func (t *Table) Text(f Func) ([]byte, error) {
	code, err := t.code(record{entry: f.Entry, end: f.End})
	if err != nil {
		return nil, fmt.Errorf("reading the code of %s: %w", f.Name, err)
	}
	return code, nil
}

func (t *Table) code(r record) ([]byte, error) {
	if r.end < r.entry || r.end-r.entry > maxText {
		return nil, fmt.Errorf("it goes from %#x to %#x", r.entry, r.end)
	}
	code := make([]byte, r.end-r.entry)
	return code, t.img.at(code, r.entry)
}

// FileOffset returns where in the file an address lies, as uprobes need it.
func (t *Table) FileOffset(addr uint64) (uint64, bool) { return t.img.offset(addr) }

// Bias returns what to subtract from addresses of a running program to have those
// of its file. The program maps, executable, the file from offset on at address
// start, as a line of /proc/PID/maps says; false if it is no mapping of code.
func (t *Table) Bias(start, offset uint64) (uint64, bool) { return t.img.bias(start, offset) }

// find returns the record of the function that holds an address.
func (t *Table) find(pc uint64) (record, bool) {
	lo, hi := 0, t.n // entries before lo are ≤ pc
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.entry(mid) <= pc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return record{}, false
	}
	r, ok := t.record(lo - 1)
	return r, ok && pc < r.end
}

// entry returns the address at which function i begins; that of n is the end of
// the code.
func (t *Table) entry(i int) uint64 {
	return t.text + uint64(binary.LittleEndian.Uint32(t.index[8*i:]))
}

// name returns the function name at an offset.
func (t *Table) name(off uint32) string { return text(t.names, off) }

// text returns the string at an offset, "?" if there is none.
func text(table []byte, off uint32) string {
	const longest = 1 << 16
	if uint64(off) >= uint64(len(table)) {
		return "?"
	}
	rest := table[off:]
	rest = rest[:min(len(rest), longest)]
	for i, b := range rest {
		if b == 0 {
			return cmp.Or(string(rest[:i]), "?")
		}
	}
	return "?"
}

// Printed shortens a function's type arguments to [...], as the runtime does when it
// prints a name. Profiles have them whole, with paths in them.
func Printed(name string) string {
	i, j := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']')
	if i <= 0 || j <= i { // what begins with it is no function, as [kernel]
		return name
	}
	return name[:i] + "[...]" + name[j+1:]
}
