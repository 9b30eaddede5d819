package pclntab

import (
	"bytes"
	"io"
)

// Read reads a program that is in memory.
func Read(program []byte) (*Table, error) {
	return (&image{r: bytes.NewReader(program), size: uint64(len(program)), closer: io.NopCloser(nil)}).table()
}

// Offsets returns where in the file the tables, the section headers and the
// runtime's record of the program are.
func Offsets(t *Table) []uint64 {
	var all []uint64
	for _, s := range t.img.elf.Sections {
		switch s.Name {
		case ".gopclntab", ".go.module", ".shstrtab", ".go.buildinfo":
			all = append(all, s.Offset)
		}
	}
	return append(all, t.img.size-4096)
}
