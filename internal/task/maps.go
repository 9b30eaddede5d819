// Package task reads what the kernel reports of a running process: which one it is,
// what it has used, and where its code lies.
package task

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
)

// ErrEnded says that there is no such process any more.
var ErrEnded = errors.New("the process has ended")

// Path names a file that the kernel keeps of a process.
func Path(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// Mapping is code in a process's memory, from Start to before End.
type Mapping struct {
	Start, End, Offset uint64
	File               string
}

// Maps returns the mappings of a process's code, by address.
func Maps(pid int) ([]Mapping, error) {
	f, err := os.Open(Path(pid, "maps"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadMaps(f)
}

// ReadMaps reads the mappings of code from a process's list, by address.
func ReadMaps(r io.Reader) ([]Mapping, error) {
	var all []Mapping
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<16)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		const whole = 5 // addresses, rights, offset, device, inode; the file may have spaces or be missing
		if len(fields) < whole || !strings.Contains(fields[1], "x") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		m := Mapping{File: strings.Join(fields[whole:], " ")}
		for _, f := range []struct {
			text string
			at   *uint64
		}{{from, &m.Start}, {to, &m.End}, {fields[2], &m.Offset}} {
			v, err := strconv.ParseUint(f.text, 16, 64)
			if err != nil {
				return nil, fmt.Errorf("reading mappings: %w", err)
			}
			*f.at = v
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
	return all, lines.Err()
}

// Holding returns the mapping that an address lies in, of mappings by address.
func Holding(maps []Mapping, addr uint64) (Mapping, bool) {
	i, found := slices.BinarySearchFunc(maps, addr, func(m Mapping, a uint64) int { return cmp.Compare(m.Start, a) })
	if !found {
		i--
	}
	if i < 0 || addr >= maps[i].End {
		return Mapping{}, false
	}
	return maps[i], true
}

// Bias returns how far from its link-time addresses a program was loaded: what at
// makes of the first of its mappings that holds its code.
func Bias(maps []Mapping, file string, at func(start, offset uint64) (uint64, bool)) (uint64, bool) {
	for _, m := range maps {
		if m.File != file {
			continue
		}
		if bias, ok := at(m.Start, m.Offset); ok {
			return bias, true
		}
	}
	return 0, false
}
