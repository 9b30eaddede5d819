package report

import (
	"fmt"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/stats/unit"
)

// leadIn is how many instructions before a call are shown with it: those that fetch
// what it goes through, and test its type.
const leadIn = 7

// codeFold is the machine code of each function that the study asks for, around its
// calls first and then whole.
func codeFold(all []record.Code) doc.Fold {
	f := doc.Fold{Summary: "Machine code, of the programs that the arms ran", ID: "code"}
	for i := range all {
		c := &all[i]
		f.Blocks = append(f.Blocks,
			doc.Heading{Level: 3, Text: fmt.Sprintf("%s in %s: calls %s", c.Func, strings.Join(c.Arms, ", "), c.Calls)},
			doc.Code{Text: listing(c.Instructions, aroundCalls(c.Instructions))},
			doc.Fold{Summary: "All of it: " + unit.Plural(len(c.Instructions), "instruction"), Lookup: true, Blocks: []doc.Block{doc.Code{Text: listing(c.Instructions, nil)}}})
	}
	return f
}

// listing writes instructions in lines, calls marked; shown nil is all of them.
func listing(all []record.Instruction, shown []bool) string {
	at := 0
	for _, in := range all {
		at = max(at, doc.Width(in.At))
	}
	var out strings.Builder
	for i, in := range all {
		if shown != nil && !shown[i] {
			continue
		}
		if i > 0 && shown != nil && !shown[i-1] {
			out.WriteString("  …\n")
		}
		mark := " "
		if in.Call {
			mark = "▸"
		}
		fmt.Fprintf(&out, "%s %s%s  %s\n", mark, in.At, strings.Repeat(" ", at-doc.Width(in.At)), in.Text)
	}
	return out.String()
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
