package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/verdict"
)

// leadIn is how many instructions before a call are shown with it at a terminal:
// those that fetch what it goes through, and test its type.
const leadIn = 7

// code writes the machine code around the calls of each function that the study
// asks for. The run's manifest has the rest of it.
func (p *page) code(a *verdict.Analysis) {
	if len(a.Manifest.Code) == 0 {
		return
	}
	p.heading("Machine code, of the programs that the arms ran")
	for i := range a.Manifest.Code {
		c := &a.Manifest.Code[i]
		p.line("")
		p.wrap("  ", codeTitle(c))
		at := 0
		for _, in := range c.Instructions {
			at = max(at, utf8.RuneCountInString(in.At))
		}
		shown := aroundCalls(c.Instructions)
		for j, in := range c.Instructions {
			if shown[j] && j > 0 && !shown[j-1] {
				p.line("    …")
			}
			if shown[j] {
				p.instruction(in, at)
			}
		}
	}
}

func (p *page) instruction(in record.Instruction, at int) {
	mark, s := " ", plain
	if in.Call {
		mark, s = "▸", bold
	}
	p.line("  %s %s%s  %s", p.in(s, mark), p.in(dim, in.At), strings.Repeat(" ", at-utf8.RuneCountInString(in.At)), p.in(s, in.Text))
}

// codeTitle says whose code it is and how it calls.
func codeTitle(c *record.Code) string {
	return fmt.Sprintf("%s in %s: calls %s", c.Func, strings.Join(c.Arms, ", "), c.Calls)
}

// aroundCalls picks calls and what leads in to them.
func aroundCalls(all []record.Instruction) []bool {
	shown := make([]bool, len(all))
	for i, in := range all {
		for j := max(0, i-leadIn); in.Call && j <= i; j++ {
			shown[j] = true
		}
	}
	return shown
}
