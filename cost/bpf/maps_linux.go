//go:build linux && (amd64 || arm64)

package bpf

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarehq/tare/internal/task"
)

// holding returns the mapping that an address lies in.
func holding(maps []task.Mapping, addr uint64) (task.Mapping, bool) {
	i, found := slices.BinarySearchFunc(maps, addr, func(m task.Mapping, a uint64) int { return cmp.Compare(m.Start, a) })
	if !found {
		i--
	}
	if i < 0 || addr >= maps[i].End {
		return task.Mapping{}, false
	}
	return maps[i], true
}

// unknown labels what lies in no program or library.
const unknown = "[unknown]"

// label names code that has no functions by what it lies in.
func label(m task.Mapping) string {
	switch {
	case strings.HasPrefix(m.File, "["):
		return m.File
	case m.File == "":
		return unknown
	}
	return "[" + filepath.Base(m.File) + "]"
}
