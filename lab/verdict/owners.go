package verdict

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict/estimate"
)

// Account says who spent what under one workload, a request, as one source saw
// it: owners by arms. Values are means over the arm's captures, so that owners
// add up; intervals are of level 95 %, come of how captures differ, and each
// holds for itself.
type Account struct {
	Workload string       `json:"workload"`
	Source   study.Source `json:"source"`
	Arms     []Spent      `json:"arms"`   // the control first, then in the study's order; those that were looked at
	Owners   []Owner      `json:"owners"` // by the most that any arm spends on them
}

// Spent is what a whole arm spent.
type Spent struct {
	Arm     string       `json:"arm"`
	N       int          `json:"n"` // captures
	CPU     Estimate     `json:"cpu_ns"`
	Bytes   float64      `json:"bytes"` // allocated
	Objects float64      `json:"objects"`
	Waiting float64      `json:"wait_ns,omitzero"`    // of a trace
	Share   float64      `json:"seen_share,omitzero"` // of the process's CPU time that the source saw itself; 0 = not known
	Causes  []cost.Share `json:"causes"`              // the largest first; they add up to CPU
}

// Owner is a row of an account.
type Owner struct {
	Kind    string `json:"kind"`
	Name    string `json:"owner"`
	Where   string `json:"where,omitzero"`
	Package string `json:"package,omitzero"` // as of cost.Item
	In      []Part `json:"in"`               // by Account.Arms
}

// MarshalJSON leaves out the arms that the owner is not in.
func (o Owner) MarshalJSON() ([]byte, error) {
	type plain Owner
	o.In = slices.DeleteFunc(slices.Clone(o.In), func(p Part) bool { return p.N == 0 && p.Change == nil })
	return json.Marshal(plain(o))
}

// Part is what an owner spent in an arm.
type Part struct {
	Arm     string       `json:"arm"`
	N       int          `json:"n"` // captures in which it was seen; 0 = it is not in this arm, as far as one can see
	Self    Estimate     `json:"self_ns"`
	GC      float64      `json:"gc_share_ns"` // its part of the collector's background work
	Bytes   float64      `json:"bytes"`
	Objects float64      `json:"objects"`
	Waiting float64      `json:"wait_ns,omitzero"`
	Causes  []cost.Share `json:"causes"`
	// Change is Self less that of the control in the same rounds; nil for the
	// control, without shared rounds, and for what neither has.
	Change *Estimate `json:"change_ns,omitzero"`
}

// Changed reports whether the owner spends more or less than in the control, as far
// as the interval tells.
func (p *Part) Changed() bool { return p.Change != nil && !p.Change.Interval.Contains(0) }

// accounts are the run's, by workload and source.
func accounts(run *record.Run) []Account {
	s := &run.Manifest.Study
	var all []Account
	for _, w := range s.Workloads {
		for _, source := range []study.Source{study.Pprof, study.EBPF, study.Trace} {
			if a := newAccount(run, w, source); len(a.Arms) > 0 {
				all = append(all, a)
			}
		}
	}
	return all
}

func newAccount(run *record.Run, w study.Workload, source study.Source) Account {
	a := Account{Workload: w.Name, Source: source, Owners: []Owner{}}
	s := &run.Manifest.Study
	names := []string{s.Control}
	for _, arm := range s.Arms {
		if arm.Name != s.Control {
			names = append(names, arm.Name)
		}
	}
	var looks [][]sighting
	for _, name := range names {
		if seen := byRound(run.Captures, w.Name, name, source); len(seen) > 0 {
			looks = append(looks, seen)
			a.Arms = append(a.Arms, newSpent(name, seen))
		}
	}
	controlled := len(a.Arms) > 0 && a.Arms[0].Arm == s.Control
	for _, id := range identities(looks) {
		o := Owner{Kind: id.kind, Name: id.name, Where: id.where, Package: id.pkg}
		for i := range looks {
			o.In = append(o.In, newPart(a.Arms[i].Arm, id, looks[i]))
			if i > 0 && controlled && (o.In[0].N > 0 || o.In[i].N > 0) {
				o.In[i].Change = change(id, looks[i], looks[0])
			}
		}
		a.Owners = append(a.Owners, o)
	}
	slices.SortStableFunc(a.Owners, func(x, y Owner) int { return cmp.Compare(y.most(), x.most()) })
	return a
}

// most is the most that any arm spends on the owner, waiting if it is not CPU.
func (o *Owner) most() (most float64) {
	for _, p := range o.In {
		most = max(most, p.Self.Value, p.Waiting)
	}
	return most
}

func newSpent(arm string, looks []sighting) Spent {
	out := Spent{Arm: arm, N: len(looks)}
	n := float64(len(looks))
	var cpu []float64
	causes := map[string]float64{}
	for _, l := range looks {
		b := l.seen.Bill
		cpu = append(cpu, b.CPU)
		out.Bytes += b.Bytes / n
		out.Objects += b.Objects / n
		out.Share += l.seen.Share / n
		for _, it := range b.Items {
			out.Waiting += it.Wait / n
			addCauses(causes, it.Causes, n)
		}
	}
	out.CPU, out.Causes = estimate.Mean(cpu), sortedCauses(causes)
	return out
}

func addCauses(sum map[string]float64, of []cost.Share, n float64) {
	for _, c := range of {
		sum[c.Cause] += c.Value / n
	}
}

func sortedCauses(sum map[string]float64) []cost.Share {
	all := []cost.Share{}
	for name, v := range sum {
		all = append(all, cost.Share{Cause: name, Value: v})
	}
	slices.SortFunc(all, func(a, b cost.Share) int { return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Cause, b.Cause)) })
	return all
}

// identity is an owner as it is known from one capture to the next. Which
// handlers are middlewares one capture may see and another not.
type identity struct{ kind, name, where, pkg string }

func (id identity) is(it *cost.Item) bool { return it.Owner == id.name && it.Where == id.where }

// identities are all owners that were seen, in the order in which they were.
func identities(looks [][]sighting) []identity {
	var all []identity
	at := map[[2]string]int{}
	for _, arm := range looks {
		for _, l := range arm {
			for _, it := range l.seen.Bill.Items {
				k := [2]string{it.Owner, it.Where}
				i, known := at[k]
				if !known {
					at[k] = len(all)
					all = append(all, identity{it.Kind, it.Owner, it.Where, it.Package})
				} else if it.Kind == cost.Middleware.String() {
					all[i].kind = it.Kind
				}
			}
		}
	}
	return all
}

// of finds the owner's item in a capture; a zero one if it was not seen.
func (id identity) of(l sighting) (it cost.Item, seen bool) {
	for i := range l.seen.Bill.Items {
		if id.is(&l.seen.Bill.Items[i]) {
			return l.seen.Bill.Items[i], true
		}
	}
	return cost.Item{}, false
}

func newPart(arm string, id identity, looks []sighting) Part {
	p := Part{Arm: arm}
	n := float64(len(looks))
	var self, margins []float64
	causes := map[string]float64{}
	for _, l := range looks {
		it, seen := id.of(l)
		if seen {
			p.N++
		}
		self, margins = append(self, it.Self), append(margins, it.Margin)
		p.GC += it.GC / n
		p.Bytes += it.Bytes / n
		p.Objects += it.Objects / n
		p.Waiting += it.Wait / n
		addCauses(causes, it.Causes, n)
	}
	p.Self, p.Causes = estimate.Sampled(self, margins), sortedCauses(causes)
	return p
}

// change is what the owner spends more than in the control, by shared rounds.
func change(id identity, arm, control []sighting) *Estimate {
	var d, margins []float64
	for _, l := range arm {
		i := slices.IndexFunc(control, func(c sighting) bool { return c.Round == l.Round })
		if i < 0 {
			continue
		}
		a, _ := id.of(l)
		c, _ := id.of(control[i])
		d, margins = append(d, a.Self-c.Self), append(margins, math.Hypot(a.Margin, c.Margin))
	}
	if len(d) == 0 {
		return nil
	}
	e := estimate.Sampled(d, margins)
	return &e
}
