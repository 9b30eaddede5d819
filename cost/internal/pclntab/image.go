package pclntab

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
)

// image is a program's file.
type image struct {
	r      io.ReaderAt
	file   *os.File // nil: the program is in memory
	closer io.Closer
	size   uint64
	elf    *elf.File
	pie    bool
	mapped [][]byte // parts of the file
}

// read reads the tables out of an open file, which the table then owns.
func read(f *os.File) (*Table, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m := &image{r: f, file: f, closer: f, size: uint64(info.Size())}
	var t *Table
	if !guard(func() { t, err = m.table() }) {
		err = fmt.Errorf("%w: it was cut short while it was read", ErrUnsupported)
	}
	if err != nil {
		return nil, errors.Join(err, m.unmap())
	}
	m.cool()
	return t, nil
}

// guard calls read, which looks into the tables. They are the file itself, mapped: should
// somebody cut that short, looking faults, and read is left where it is.
func guard(read func()) (whole bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if _, fault := p.(interface{ Addr() uintptr }); p != nil && !fault {
			panic(p)
		}
		whole = p == nil
	}()
	read()
	return true
}

// table finds the tables in the file.
func (m *image) table() (*Table, error) {
	f, err := elf.NewFile(m.r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	m.elf = f
	cpu, known := processorOf(f.Machine)
	if !known || f.Class != elf.ELFCLASS64 || f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return nil, fmt.Errorf("%w: %v, %v, %v; only programs for amd64 and arm64 can be", ErrUnsupported, f.Machine, f.Class, f.Type)
	}
	m.pie = f.Type == elf.ET_DYN
	info, err := buildinfo.Read(m.r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	t := &Table{img: m, cpu: cpu, goVer: info.GoVersion}
	if t.layout, err = layoutOf(info.GoVersion); err != nil {
		return nil, err
	}
	err = t.locate()
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return nil, fmt.Errorf("built by %s: %w", info.GoVersion, err)
	}
	return t, nil
}

// Offsets in the header of the tables.
const (
	headMagic   = 0
	headQuantum = 6 // the size of the smallest instruction
	headPointer = 7 // the size of an address
	headFuncs   = 8 // how many functions there are
	headNames   = 32
	headUnits   = 40
	headFiles   = 48
	headValues  = 56
	headRecords = 64
	headSize    = 72

	magic = 0xfffffff1 // since Go 1.20
)

// locate cuts the section of the tables into its parts, as its header says.
func (t *Table) locate() error {
	sect := t.img.section(".gopclntab", ".data.rel.ro.gopclntab")
	if sect == nil {
		return fmt.Errorf("%w: no section .gopclntab (packed, or its sections were stripped)", ErrUnsupported)
	}
	b, err := t.img.view(sect)
	if err != nil {
		return err
	}
	if len(b) < headSize || binary.LittleEndian.Uint32(b[headMagic:]) != magic || b[headQuantum] != byte(t.cpu.quantum) || b[headPointer] != 8 {
		return fmt.Errorf("%w: its section %s does not begin as that of %s does", ErrUnsupported, sect.Name, t.goVer)
	}
	part := func(from, to int) []byte {
		lo, hi := binary.LittleEndian.Uint64(b[from:]), uint64(len(b))
		if to != 0 {
			hi = binary.LittleEndian.Uint64(b[to:])
		}
		if lo > hi || hi > uint64(len(b)) {
			return nil
		}
		return b[lo:hi]
	}
	t.names, t.units, t.files = part(headNames, headUnits), part(headUnits, headFiles), part(headFiles, headValues)
	t.values, t.funcs = part(headValues, headRecords), part(headRecords, 0)
	n := binary.LittleEndian.Uint64(b[headFuncs:])
	if n == 0 || n >= uint64(len(t.funcs))/8 {
		return fmt.Errorf("%w: %d functions in a table of %d bytes", ErrUnsupported, n, len(t.funcs))
	}
	t.n, t.index = int(n), t.funcs[:8*n+4]
	return t.anchor(sect, b)
}

// Offsets in the runtime's record of the program, its first field the address of
// the tables and its second that of the names.
const (
	modNames = 8
	modText  = 176
)

// anchor finds the two addresses that the tables are relative to: where code
// begins, and where the trees of inlined calls are.
func (t *Table) anchor(tables *elf.Section, b []byte) error {
	mod, err := t.module(tables.Addr, tables.Addr+binary.LittleEndian.Uint64(b[headNames:]), t.layout.inline+8)
	if err != nil {
		return err
	}
	t.text = binary.LittleEndian.Uint64(mod[modText:])
	inline := binary.LittleEndian.Uint64(mod[t.layout.inline:])
	if inline >= tables.Addr && inline-tables.Addr < uint64(len(b)) {
		t.inlined = b[inline-tables.Addr:]
		return nil
	}
	sect := t.img.holding(inline)
	if sect == nil {
		return fmt.Errorf("%w: inlined calls at %#x, in no section", ErrUnsupported, inline)
	}
	data, err := t.img.view(sect)
	if err != nil {
		return err
	}
	t.inlined = data[inline-sect.Addr:]
	return nil
}

// section returns the first section of one of the names.
func (m *image) section(names ...string) *elf.Section {
	for _, s := range m.elf.Sections {
		if slices.Contains(names, s.Name) && s.Type == elf.SHT_PROGBITS {
			return s
		}
	}
	return nil
}

// holding returns the section of data in which an address lies.
func (m *image) holding(addr uint64) *elf.Section {
	for _, s := range m.elf.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Type == elf.SHT_PROGBITS && addr >= s.Addr && addr-s.Addr < s.Size {
			return s
		}
	}
	return nil
}

// view is load for what is large and stays: it maps the file, so that it takes memory only
// for what was looked at of late. Where that is not possible it reads.
func (m *image) view(s *elf.Section) ([]byte, error) {
	if err := m.within(s); err != nil {
		return nil, err
	}
	if m.file == nil || s.Size == 0 {
		return m.load(s)
	}
	whole, from, err := mapFile(m.file, s.Offset, s.Size)
	if err != nil {
		return m.load(s)
	}
	m.mapped = append(m.mapped, whole)
	return whole[from:], nil
}

// cool gives back the memory of what was looked at.
func (m *image) cool() {
	for _, whole := range m.mapped {
		adviseUnneeded(whole)
	}
}

// unmap ends all views.
func (m *image) unmap() error {
	var errs []error
	for _, whole := range m.mapped {
		errs = append(errs, unmapFile(whole))
	}
	m.mapped = nil
	return errors.Join(errs...)
}

// within returns an error unless a section lies in the file as it is in memory.
func (m *image) within(s *elf.Section) error {
	if s.FileSize > m.size || s.Offset > m.size-s.FileSize || s.Flags&elf.SHF_COMPRESSED != 0 || s.FileSize != s.Size {
		return fmt.Errorf("%w: section %s reaches beyond the file's end", ErrUnsupported, s.Name)
	}
	return nil
}

// load reads a section.
func (m *image) load(s *elf.Section) ([]byte, error) {
	if err := m.within(s); err != nil {
		return nil, err
	}
	b := make([]byte, s.Size)
	if _, err := m.r.ReadAt(b, int64(s.Offset)); err != nil {
		return nil, fmt.Errorf("reading section %s: %w", s.Name, err)
	}
	return b, nil
}

// at reads what the program has at an address.
func (m *image) at(b []byte, addr uint64) error {
	off, ok := m.offset(addr)
	if !ok {
		return fmt.Errorf("address %#x is not in the file", addr)
	}
	_, err := m.r.ReadAt(b, int64(off))
	return err
}

// offset returns where in the file an address lies.
func (m *image) offset(addr uint64) (uint64, bool) {
	for _, p := range m.elf.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return addr - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}

// bias holds a mapping of the program against the segment it is of.
func (m *image) bias(start, offset uint64) (uint64, bool) {
	for _, p := range m.elf.Progs {
		const page = 4096
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && offset+page > p.Off && offset < p.Off+p.Filesz {
			return start - offset + p.Off - p.Vaddr, true
		}
	}
	return 0, false
}

// module returns the runtime's record of the program, addresses in it filled in.
// Since Go 1.26 it is a section of its own; before, it is found by what it begins
// with. Of it the first bytes are returned, up to a size.
func (t *Table) module(tables, names uint64, size int) ([]byte, error) {
	m := t.img
	rel, err := m.relocations()
	if err != nil {
		return nil, err
	}
	for _, s := range m.elf.Sections {
		if !slices.Contains([]string{".go.module", ".noptrdata", ".data"}, s.Name) || s.Type != elf.SHT_PROGBITS {
			continue
		}
		b, err := m.load(s)
		if err != nil {
			return nil, err
		}
		rel.apply(b, s.Addr, t.cpu.relative)
		var first [8]byte
		binary.LittleEndian.PutUint64(first[:], tables)
		for from := 0; ; from += 8 {
			i := bytes.Index(b[from:], first[:])
			if i < 0 || len(b)-from-i < size {
				break
			}
			from += i
			if binary.LittleEndian.Uint64(b[from+modNames:]) == names {
				return b[from:][:size], nil
			}
			from &^= 7
		}
	}
	return nil, fmt.Errorf("%w: the runtime's record of the program is not in its data", ErrUnsupported)
}

// relocations are the file's changes of data for the address it runs at, in the
// file's form; none if it does not move.
type relocations [][]byte

func (m *image) relocations() (relocations, error) {
	var all relocations
	room := m.size // sections of a sound file do not overlap
	for _, s := range m.elf.Sections {
		if !m.pie || s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 || s.Size > room {
			continue
		}
		room -= s.Size
		b, err := m.load(s)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// apply puts into data, which lies at addr, the addresses that are the file's own.
func (r relocations) apply(data []byte, addr uint64, relative uint32) {
	const size = 24
	for _, b := range r {
		for ; len(b) >= size; b = b[size:] {
			at := binary.LittleEndian.Uint64(b) - addr
			kind := binary.LittleEndian.Uint32(b[8:])
			if kind == relative && at < uint64(len(data)) && uint64(len(data))-at >= 8 {
				copy(data[at:at+8], b[16:24])
			}
		}
	}
}
