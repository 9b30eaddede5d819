package pclntab

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// layout is what differs between versions of Go in the parts of the runtime that
// no one promises to keep.
type layout struct {
	minor       int  // Go 1.minor
	systemstack byte // runtime.systemstack's place in the list of special functions
	wrapper     byte // that of made-up functions
	goid        int  // offset of a goroutine's number in its record
	frame       int  // offset of the frame pointer that it left, in its record
	current     int  // offset of the goroutine that a thread runs, in the thread's record
	inline      int  // offset of where inlined calls are, in the program's record
}

// layouts are the versions known, the oldest first.
//
// Source: internal/abi/symtab.go (FuncID) runtime/runtime2.go (g, gobuf, m) and
// runtime/symtab.go (moduledata) of each.
func layouts() []layout {
	return []layout{
		{minor: 22, systemstack: 20, wrapper: 22, goid: 152, frame: 104, current: 192, inline: 320},
		{minor: 23, systemstack: 20, wrapper: 22, goid: 160, frame: 104, current: 192, inline: 320},
		{minor: 24, systemstack: 20, wrapper: 22, goid: 160, frame: 104, current: 192, inline: 320},
		{minor: 25, systemstack: 21, wrapper: 23, goid: 152, frame: 96, current: 184, inline: 320},
		{minor: 26, systemstack: 21, wrapper: 23, goid: 152, frame: 96, current: 184, inline: 320},
		{minor: 27, systemstack: 21, wrapper: 23, goid: 152, frame: 96, current: 184, inline: 344},
	}
}

// layoutOf returns the layout of a version, such as "go1.26.1" or "devel go1.26-x". A
// newer one than is known gets the newest, which [Table.check] then holds against it.
func layoutOf(version string) (layout, error) {
	all := layouts()
	minor := -1
	for field := range strings.FieldsSeq(version) {
		rest, ok := strings.CutPrefix(field, "go1.")
		if !ok {
			continue
		}
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		if n, err := strconv.Atoi(digits); err == nil {
			minor = n
		}
	}
	for _, l := range all {
		if l.minor == minor {
			return l, nil
		}
	}
	newest := all[len(all)-1]
	if minor > newest.minor {
		return newest, nil
	}
	return layout{}, fmt.Errorf("%w: built by %q; known are go1.%d to go1.%d, and newer ones whose tables are as those", ErrUnsupported, version, all[0].minor, newest.minor)
}

// check holds the layout against the program, so that a version that changed any of it is
// refused and not misread: against functions of the runtime whose place in the list of
// special functions is known; against the code of those that use its offsets; and against
// the trees of inlined calls.
func (t *Table) check() error {
	special := map[string]byte{"runtime.goexit": 8, "runtime.gopanic": 10, "runtime.systemstack": t.layout.systemstack}
	uses := map[string]int{"runtime.mcall": t.layout.frame, "runtime.systemstack": t.layout.current, "runtime.newproc1": t.layout.goid}
	const enough = 100 // trees
	trees := 0
	for i := 0; i < t.n && (len(special)+len(uses) > 0 || trees < enough); i++ {
		r, ok := t.record(i)
		if !ok {
			return fmt.Errorf("%w: function %d of %d is out of order", ErrUnsupported, i, t.n)
		}
		name := t.name(r.u32(recName))
		if id, ok := special[name]; ok && r.data[recID] == id {
			delete(special, name)
		}
		if offset, ok := uses[name]; ok {
			if text, err := t.code(r); err == nil && t.cpu.uses(name, text, offset) {
				delete(uses, name)
			}
		}
		if tree := r.tree(); tree != nil && trees < enough {
			if trees++; !t.sound(tree) {
				return t.unlike("the calls inlined into " + name)
			}
		}
	}
	for name := range special {
		return t.unlike(name)
	}
	for name := range uses {
		return t.unlike("what " + name + " uses")
	}
	return nil
}

// sound reports whether the first node of a tree of inlined calls is one.
func (t *Table) sound(tree []byte) bool {
	if len(tree) < nodeSize {
		return false
	}
	name := binary.LittleEndian.Uint32(tree[nodeName:])
	return uint64(name) < uint64(len(t.names)) && (name == 0 || t.names[name-1] == 0) && t.names[name] != 0
}

// unlike is the error of tables that have something where the layout does not.
func (t *Table) unlike(what string) error {
	return fmt.Errorf("%w: its tables do not have %s where those of go1.%d do: built by %q, obfuscated, or by a changed toolchain", ErrUnsupported, what, t.layout.minor, t.goVer)
}
