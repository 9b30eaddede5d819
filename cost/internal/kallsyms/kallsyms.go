// Package kallsyms names addresses of the kernel by its own list of its functions.
package kallsyms

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/cost"
)

// Symbols are functions of the kernel, by address. The zero value names nothing.
//
// Note: a string for each of a hundred thousand names took twice the memory, and the garbage
// collector through all of them.
type Symbols struct {
	all   []symbol
	names []byte
}

// symbol is a function of the kernel.
type symbol struct {
	addr     uint64
	at, size uint32 // of its name
}

// name is a symbol's.
func (s *Symbols) name(k int) string {
	one := s.all[k]
	return string(s.names[one.at:][:one.size])
}

// Read reads the kernel's list of its functions, by address; none if the
// kernel does not show addresses.
func Read(r io.Reader) (Symbols, error) {
	var s Symbols
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		addr, rest, _ := strings.Cut(lines.Text(), " ")
		kind, name, ok := strings.Cut(rest, " ")
		if !ok || !strings.Contains("tTwW", kind) {
			continue
		}
		a, err := strconv.ParseUint(addr, 16, 64)
		if err != nil || a == 0 {
			continue
		}
		name, _, _ = strings.Cut(name, "\t") // the module's name follows
		s.all = append(s.all, symbol{a, uint32(len(s.names)), uint32(len(name))})
		s.names = append(s.names, name...)
	}
	slices.SortFunc(s.all, func(a, b symbol) int { return cmp.Compare(a.addr, b.addr) })
	s.all, s.names = slices.Clone(s.all), slices.Clone(s.names)
	return s, lines.Err()
}

// Frames names a stack of the kernel, innermost first. Without names it is
// one frame.
func (s *Symbols) Frames(addrs []uint64) []cost.Frame {
	if len(addrs) == 0 {
		return nil
	}
	if len(s.all) == 0 {
		return []cost.Frame{{Func: "[kernel]"}}
	}
	frames := make([]cost.Frame, 0, len(addrs))
	for i, a := range addrs {
		if i > 0 {
			a-- // what follows a call may be the next function
		}
		at, found := slices.BinarySearchFunc(s.all, a, func(s symbol, a uint64) int { return cmp.Compare(s.addr, a) })
		if !found {
			at--
		}
		name := "[kernel]"
		if at >= 0 {
			name += " " + s.name(at)
		}
		frames = append(frames, cost.Frame{Func: name})
	}
	return frames
}

// Load reads the names of the kernel's functions.
func Load() (Symbols, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return Symbols{}, fmt.Errorf("functions of the kernel have no names: %w", err)
	}
	defer f.Close()
	symbols, err := Read(f)
	if err == nil && len(symbols.all) == 0 {
		err = errors.New("the kernel hides addresses (kernel.kptr_restrict; the capability CAP_SYSLOG sees them)")
	}
	if err != nil {
		return Symbols{}, fmt.Errorf("functions of the kernel have no names: %w", err)
	}
	return symbols, nil
}
