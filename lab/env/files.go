package env

import (
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// limit bounds what is read of one file. The largest, a mount table, stays far
// below it.
const limit = 4 << 20

// content returns a file's content as it is, nil when it cannot be read.
func (m Machine) content(name string) []byte {
	f, err := m.Root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil // of /proc, such as a process that has just ended
	}
	return b
}

// text returns a file's content without the space around it, "" when it cannot
// be read.
func (m Machine) text(name string) string { return strings.TrimSpace(string(m.content(name))) }

// number returns the number that a file consists of.
func (m Machine) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(m.text(name), 10, 64)
	return n, err == nil
}

// keyed returns the lines of a file by their first word, which may end in a
// colon.
func (m Machine) keyed(name string) map[string]string {
	lines := map[string]string{}
	for line := range strings.Lines(m.text(name)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			key, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		if key = strings.TrimSpace(key); lines[key] == "" {
			lines[key] = strings.TrimSpace(value)
		}
	}
	return lines
}

// paths returns the files that match, in numeric order of the names.
func (m Machine) paths(pattern string) []string {
	names, err := fs.Glob(m.Root, pattern)
	if err != nil {
		panic(err) // a pattern of this package is malformed
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names
}

// kinds returns the different texts of the files that match, in order of
// appearance.
func (m Machine) kinds(pattern string) []string {
	var kinds []string
	for _, name := range m.paths(pattern) {
		if text := m.text(name); text != "" && !slices.Contains(kinds, text) {
			kinds = append(kinds, text)
		}
	}
	return kinds
}

// exists reports whether there is such a file.
func (m Machine) exists(name string) bool {
	_, err := fs.Stat(m.Root, name)
	return err == nil
}

// sum adds the numbers in the files that match; false when there is none.
func (m Machine) sum(pattern string) (sum int64, ok bool) {
	for _, name := range m.paths(pattern) {
		if n, is := m.number(name); is {
			sum, ok = sum+n, true
		}
	}
	return sum, ok
}

// first returns the number that a text begins with, 0 when it begins with none.
func first(text string) int64 {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// counted returns how many numbers a list such as 0-3,8 names. Overlaps count
// twice; the kernel writes none.
func counted(list string) int {
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 31)
		if err != nil {
			continue
		}
		to, err := strconv.ParseUint(high, 10, 31)
		if err != nil || to < from {
			continue
		}
		n += int(to-from) + 1
	}
	return n
}
