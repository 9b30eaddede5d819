package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
)

// disassemble reads the machine code that the study asks for out of the arms'
// programs. Arms that run the same program share a listing.
func (r *runner) disassemble(ctx context.Context) error {
	if len(r.Study.Disassemble) == 0 {
		return nil
	}
	first := map[string]int{} // by build ID: the program's first listing
	for _, a := range r.Study.Arms {
		p := r.programs[a.Name]
		if p.Go == "" {
			continue
		}
		if i, ok := first[p.BuildID]; ok {
			for ; i < len(r.code) && r.code[i].BuildID == p.BuildID; i++ {
				r.code[i].Arms = append(r.code[i].Arms, a.Name)
			}
			continue
		}
		first[p.BuildID] = len(r.code)
		code, err := arm.Disassemble(ctx, p.Path, r.Study.Disassemble)
		if err != nil {
			return fmt.Errorf("arm %s: %w", a.Name, err)
		}
		for _, c := range code {
			r.code = append(r.code, listed(a.Name, p.BuildID, c))
		}
	}
	return nil
}

func listed(name, buildID string, c arm.Code) record.Code {
	out := record.Code{Arms: []string{name}, BuildID: buildID, Func: c.Func, Calls: c.Calls()}
	for _, i := range c.Instructions {
		out.Instructions = append(out.Instructions, record.Instruction{At: i.At, Text: i.Text, Call: i.Calls()})
	}
	return out
}

// calls are the facts about how an arm's disassembled functions call others.
func (r *runner) calls(name string) map[string]string {
	facts := map[string]string{}
	for _, c := range r.code {
		if slices.Contains(c.Arms, name) {
			facts["calls of "+c.Func] = c.Calls
		}
	}
	return facts
}

// addFacts puts more facts beside those that an arm reports.
func addFacts(t *record.Trial, more map[string]string) {
	if t.Facts == nil && len(more) > 0 {
		t.Facts = map[string]string{}
	}
	maps.Copy(t.Facts, more)
}
