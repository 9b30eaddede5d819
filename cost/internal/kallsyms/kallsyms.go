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

// Symbols are functions of the kernel, by address. None name nothing.
type Symbols []symbol

// symbol is a function of the kernel.
type symbol struct {
	addr uint64
	name string
}

// Read reads the kernel's list of its functions, by address; none if the
// kernel does not show addresses.
func Read(r io.Reader) (Symbols, error) {
	var all Symbols
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
		all = append(all, symbol{a, name})
	}
	slices.SortFunc(all, func(a, b symbol) int { return cmp.Compare(a.addr, b.addr) })
	return all, lines.Err()
}

// Frames names a stack of the kernel, innermost first. Without names it is
// one frame.
func (symbols Symbols) Frames(addrs []uint64) []cost.Frame {
	if len(addrs) == 0 {
		return nil
	}
	if len(symbols) == 0 {
		return []cost.Frame{{Func: "[kernel]"}}
	}
	frames := make([]cost.Frame, 0, len(addrs))
	for i, a := range addrs {
		if i > 0 {
			a-- // what follows a call may be the next function
		}
		at, found := slices.BinarySearchFunc(symbols, a, func(s symbol, a uint64) int { return cmp.Compare(s.addr, a) })
		if !found {
			at--
		}
		name := "[kernel]"
		if at >= 0 {
			name += " " + symbols[at].name
		}
		frames = append(frames, cost.Frame{Func: name})
	}
	return frames
}

// Load reads the names of the kernel's functions.
func Load() (Symbols, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, fmt.Errorf("functions of the kernel have no names: %w", err)
	}
	defer f.Close()
	symbols, err := Read(f)
	if err == nil && len(symbols) == 0 {
		err = errors.New("the kernel hides addresses (kernel.kptr_restrict; the capability CAP_SYSLOG sees them)")
	}
	if err != nil {
		return nil, fmt.Errorf("functions of the kernel have no names: %w", err)
	}
	return symbols, nil
}
