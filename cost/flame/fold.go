package flame

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
)

// Fold writes a line a stack, outermost first: the owner and cause, then
// the functions; and the value.
func Fold(w io.Writer, stacks []cost.Stack) error {
	out := bufio.NewWriter(w)
	clean := strings.NewReplacer(";", ",", " ", "_", "\n", "_", "\r", "_")
	rules := cost.Learn(stacks)
	for _, s := range stacks {
		owner, cause := rules.Charge(s.Frames)
		names := []string{owner.Name, cause.String()}
		for _, f := range slices.Backward(s.Frames) {
			names = append(names, f.Func)
		}
		for i, n := range names {
			names[i] = clean.Replace(n)
		}
		fmt.Fprintf(out, "%s %.0f\n", strings.Join(names, ";"), s.Value)
	}
	return out.Flush()
}
