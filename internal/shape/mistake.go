package shape

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one thing wrong in a file that a person wrote.
type Mistake struct {
	File         string
	Line, Column int    // from 1; columns count characters
	Text         string // what is wrong; what is allowed
}

// Error gives the mistake as file:line:column: text.
func (m Mistake) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Text)
}

// Mistakes are all that is wrong in one file, in order of position. As an
// error they are a line each.
type Mistakes []Mistake

// Error gives one mistake a line.
func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each mistake as an error of its own.
func (ms Mistakes) Unwrap() []error {
	errs := make([]error, len(ms))
	for i, m := range ms {
		errs[i] = m
	}
	return errs
}

// err is nil when there is nothing wrong.
func (ms Mistakes) err() error {
	if len(ms) == 0 {
		return nil
	}
	slices.SortStableFunc(ms, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ms
}
