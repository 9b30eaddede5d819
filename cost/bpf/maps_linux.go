//go:build linux && amd64

package bpf

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mapping is code in a process's memory.
type mapping struct {
	start, end, offset uint64
	file               string
}

// readMaps reads the mappings of code from a process's list, by address.
func readMaps(r io.Reader) ([]mapping, error) {
	var all []mapping
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<16)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		const whole = 5 // addresses, rights, offset, device, inode; the file may have spaces or be missing
		if len(fields) < whole || !strings.Contains(fields[1], "x") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		m := mapping{file: strings.Join(fields[whole:], " ")}
		for _, f := range []struct {
			text string
			at   *uint64
		}{{from, &m.start}, {to, &m.end}, {fields[2], &m.offset}} {
			v, err := strconv.ParseUint(f.text, 16, 64)
			if err != nil {
				return nil, fmt.Errorf("reading mappings: %w", err)
			}
			*f.at = v
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b mapping) int { return cmp.Compare(a.start, b.start) })
	return all, lines.Err()
}

// holding returns the mapping that an address lies in.
func holding(maps []mapping, addr uint64) (mapping, bool) {
	i, found := slices.BinarySearchFunc(maps, addr, func(m mapping, a uint64) int { return cmp.Compare(m.start, a) })
	if !found {
		i--
	}
	if i < 0 || addr >= maps[i].end {
		return mapping{}, false
	}
	return maps[i], true
}

// label names code that has no functions by what it lies in.
func (m mapping) label() string {
	switch {
	case strings.HasPrefix(m.file, "["):
		return m.file
	case m.file == "":
		return "[unknown]"
	}
	return "[" + filepath.Base(m.file) + "]"
}
