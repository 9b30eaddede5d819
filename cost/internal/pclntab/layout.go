package pclntab

import (
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
}

// layouts are the versions known, the oldest first.
//
// Source: internal/abi/symtab.go (FuncID) and runtime/runtime2.go (g, gobuf, m) of each.
func layouts() []layout {
	return []layout{
		{minor: 22, systemstack: 20, wrapper: 22, goid: 152, frame: 104, current: 192},
		{minor: 23, systemstack: 20, wrapper: 22, goid: 160, frame: 104, current: 192},
		{minor: 24, systemstack: 20, wrapper: 22, goid: 160, frame: 104, current: 192},
		{minor: 25, systemstack: 21, wrapper: 23, goid: 152, frame: 96, current: 184},
		{minor: 26, systemstack: 21, wrapper: 23, goid: 152, frame: 96, current: 184},
	}
}

// layoutOf returns the layout of a version, such as "go1.26.1" or "devel go1.26-x".
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
	return layout{}, fmt.Errorf("%w: built by %q; known are go1.%d to go1.%d", ErrUnsupported, version, all[0].minor, all[len(all)-1].minor)
}

// check holds the layout against functions of the runtime whose place in the list
// of special functions is known, so that a version whose list changed is refused
// and not misread.
func (t *Table) check() error {
	want := map[string]byte{"runtime.goexit": 8, "runtime.gopanic": 10, "runtime.systemstack": t.layout.systemstack}
	const toFind = 3
	found := map[string]bool{}
	for i := 0; i < t.n && len(found) < toFind; i++ {
		r, ok := t.record(i)
		if !ok {
			return fmt.Errorf("%w: function %d of %d is out of order", ErrUnsupported, i, t.n)
		}
		name := t.name(r.u32(recName))
		if id, special := want[name]; special && r.data[recID] == id {
			found[name] = true
		}
	}
	for name := range want {
		if !found[name] {
			return fmt.Errorf("%w: its tables do not have %s where those of %s do (obfuscated, or a changed toolchain)", ErrUnsupported, name, t.goVer)
		}
	}
	return nil
}
