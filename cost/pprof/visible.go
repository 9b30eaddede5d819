package pprof

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost"
)

// Names come from programs that may be broken or hostile, and go to terminals,
// pages and files of one line a stack. Where a profile comes in, what would not be
// seen in a name, or would be obeyed, is written as Go writes it in a literal.

// visible returns a name with \n, \x1b and the like in place of what is not
// graphic.
func visible(name string) string {
	if isVisible(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, name[0])
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToGraphic(r), "'"))
		}
		name = name[n:]
	}
	return b.String()
}

func isVisible(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// makeVisible does so with all names that frames are made of.
func makeVisible(raw *profile.Profile) {
	for _, f := range raw.Function {
		f.Name, f.SystemName, f.Filename = visible(f.Name), visible(f.SystemName), visible(f.Filename)
	}
	for _, m := range raw.Mapping {
		m.File = visible(m.File)
	}
}

// visibleStacks returns stacks whose names are visible. They are the same ones
// where all names were.
func visibleStacks(stacks []cost.Stack) []cost.Stack {
	hidden := func(f cost.Frame) bool { return !isVisible(f.Func) || !isVisible(f.File) }
	if !slices.ContainsFunc(stacks, func(s cost.Stack) bool { return slices.ContainsFunc(s.Frames, hidden) }) {
		return stacks
	}
	shown := slices.Clone(stacks)
	for i := range shown {
		frames := slices.Clone(shown[i].Frames)
		for j := range frames {
			frames[j].Func, frames[j].File = visible(frames[j].Func), visible(frames[j].File)
		}
		shown[i].Frames = frames
	}
	return shown
}
