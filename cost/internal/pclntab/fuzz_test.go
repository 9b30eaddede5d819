package pclntab_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/tarehq/tare/cost/internal/pclntab"
)

// FuzzOpen spoils a sound program in several places, given as pairs of where (of
// the headers, the tables or anywhere) and what, and asks for everything that the
// tables would answer.
func FuzzOpen(f *testing.F) {
	supported(f)
	sound, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		f.Fatal(err)
	}
	table := open(f, "/proc/self/exe")
	places := spots(f, table)
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1, 8, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0})
	f.Add([]byte{1, 64, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, spoils []byte) {
		const size, most = 12, 16
		program := append([]byte(nil), sound...)
		for n := 0; len(spoils) >= size && n < most; n++ {
			from := places[int(spoils[0])%len(places)]
			at := from + uint64(binary.LittleEndian.Uint32(spoils[8:]))%4096 + 8*uint64(spoils[1])
			if at+4 <= uint64(len(program)) {
				copy(program[at:], spoils[4:8])
			}
			spoils = spoils[size:]
		}
		spoilt, err := pclntab.Read(program)
		if err != nil {
			return
		}
		ask(spoilt)
	})
}

// spots are where in the file things begin that say how to read the rest.
func spots(f *testing.F, table *pclntab.Table) []uint64 {
	f.Helper()
	all := []uint64{0}
	for fn := range table.Funcs() {
		if off, ok := table.FileOffset(fn.Entry); ok {
			all = append(all, off)
			break
		}
	}
	return append(all, pclntab.Offsets(table)...)
}

// ask asks for everything about some of a program's functions, and beyond them.
func ask(table *pclntab.Table) {
	const most = 200
	n := 0
	for fn := range table.Funcs() {
		if n++; n > most {
			break
		}
		for _, pc := range []uint64{fn.Entry, fn.Entry + (fn.End-fn.Entry)/2, fn.End - 1, fn.End} {
			table.Frames(pc)
			table.SPDelta(pc)
			table.Lookup(pc)
		}
		table.Push(fn)
		table.FileOffset(fn.Entry)
	}
	table.Frames(0)
	table.Frames(^uint64(0))
	table.Bias(0x400000, 0x1000)
}
