package comment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// Profiles says how many profiles were to explain the differences, and what became of them.
// The zero value: none were planned, for a reason that is not known.
type Profiles struct {
	Planned, Usable int
	Unplanned       string        // why none are planned: what that needs, or who refused them
	Lost            string        // the first arm of which none counts, and why; "" = there is no such arm
	Budget          time.Duration // that has time for all; 0: the budget left none out
}

// absence says why there is no owner to show.
func (p *Profiles) absence(changes []Change) string {
	const unknown = "Which owners changed is not known: "
	switch {
	case p.Planned == 0 && len(changes) == 0:
		return unknown + cmp.Or(p.Unplanned, "the study takes no profiles") + "."
	case len(changes) == 0:
		return unknown + p.shortfall()
	case !slices.ContainsFunc(changes, Change.tested):
		return unknown + "the profiles saw too little of the services to compare owners. " + p.remedy()
	case p.Budget > 0:
		return fmt.Sprintf("No owner's cost differs by more than chance in %d of %s. %s", p.Usable, unit.Plural(p.Planned, "profile"), p.remedy())
	}
	return "No owner's cost differs by more than chance."
}

// shortfall says why a side of the comparison has no profile.
func (p *Profiles) shortfall() string {
	switch {
	case p.Lost != "":
		const most = 300 // columns
		return doc.Cut(strings.TrimSuffix(strings.Join(strings.Fields(p.Lost), " "), "."), most) + "."
	case p.Budget > 0:
		return fmt.Sprintf("the budget left time for %d of %s. %s", p.Usable, unit.Plural(p.Planned, "profile"), p.remedy())
	}
	return fmt.Sprintf("the run ended before its %s.", unit.Plural(p.Planned, "profile"))
}

// remedy says what shows more.
func (p *Profiles) remedy() string {
	if p.Budget > 0 {
		return fmt.Sprintf("--budget %s has time for all.", p.Budget)
	}
	return "A higher rate, or more and longer captures (attribute in the study file), show more."
}

// tested reports whether an owner was seen often enough to be compared.
func (c Change) tested() bool {
	return slices.ContainsFunc([]*diff.Result{c.CPU, c.Bytes}, func(r *diff.Result) bool {
		return r != nil && slices.ContainsFunc(r.Owners, func(o diff.Row) bool { return o.Tested })
	})
}
