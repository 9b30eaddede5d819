package task

import (
	"path/filepath"
	"strings"
	"unicode"
)

// ProgramName is the name of a program's file, of which exe is what /proc/N/exe links to.
func ProgramName(exe string) string {
	return Printable(filepath.Base(strings.TrimSuffix(exe, " (deleted)")))
}

// Printable has a name that whoever starts a process chooses be fit for a line of a log or for a
// label: what does not print, or is not UTF-8, is replaced.
func Printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, name)
}
