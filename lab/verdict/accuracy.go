package verdict

import (
	"maps"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict/estimate"
	"github.com/tarehq/tare/stats"
)

// Accuracy is what one part of an arm cost by its own count, and what the
// sources charged to it in the same requests of the same processes. The part
// called Rest is all else: it has no count of its own and is held against the
// arm that lacks the parts.
type Accuracy struct {
	Workload string   `json:"workload"`
	Arm      string   `json:"arm"`
	Part     string   `json:"part"`
	Against  string   `json:"against,omitzero"` // of Rest: the arm that lacks the parts
	Quantity Quantity `json:"quantity"`
	Band     float64  `json:"band"` // how far the attributed may be off
	By       []Held   `json:"by"`
	// Apart is by how much more the first source is off than the second in the same
	// rounds; nil with one source.
	Apart *Estimate `json:"apart,omitzero"`
}

// Rest is the part that is all but what the arm counts.
const Rest = "all else"

// Quantity is what is attributed.
type Quantity string

// The quantities.
const (
	CPUTime Quantity = "CPU"
	Memory  Quantity = "bytes"
	Waiting Quantity = "waiting"
)

// Held is what a source made of it.
type Held struct {
	Source     study.Source `json:"source"`
	Owner      string       `json:"owner,omitzero"` // to whom it was charged; "" = nobody by that name was seen
	N          int          `json:"n"`              // captures
	Truth      float64      `json:"truth"`          // mean over these captures, in ns or bytes a request
	Attributed float64      `json:"attributed"`     // likewise
	Off        Estimate     `json:"off"`            // attributed less truth; the interval is of level 90 %, as equivalence takes
	Verdict    Nearness     `json:"verdict"`
}

// Nearness is the verdict on an attribution.
type Nearness string

// The verdicts.
const (
	Within  Nearness = "within"    // the 90 % interval lies inside the band
	Beyond  Nearness = "off"       // the 95 % interval lies outside of it
	Unknown Nearness = "undecided" // neither
)

// accuracies holds what the sources charged against what the arms say.
func accuracies(run *record.Run) []Accuracy {
	s := &run.Manifest.Study
	if s.Attribute.Truth.Path == "" {
		return nil
	}
	var all []Accuracy
	for _, w := range s.Workloads {
		for _, arm := range s.Arms {
			h := holder{run, s.Attribute.Truth, w.Name, arm.Name}
			parts := h.parts()
			for _, part := range parts {
				all = append(all, h.part(part)...)
			}
			if bare := s.Attribute.Truth.Bare[arm.Name]; bare != "" && len(parts) > 0 {
				all = append(all, h.rest(parts, bare)...)
			}
		}
	}
	return all
}

// holder holds one arm's attribution against its truth.
type holder struct {
	run           *record.Run
	truth         study.Truth
	workload, arm string
}

// parts are those that the arm counted in any capture.
func (h holder) parts() []string {
	seen := map[string]bool{}
	for _, c := range h.run.Captures {
		if c.Workload == h.workload && c.Arm == h.arm && len(c.Invalid) == 0 {
			for name := range c.Truth {
				seen[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// sources are those that tell a quantity.
func (q Quantity) sources() []study.Source {
	switch q {
	case Memory:
		return []study.Source{study.Pprof}
	case Waiting:
		return []study.Source{study.Trace}
	}
	return []study.Source{study.Pprof, study.EBPF}
}

// readTruth is the quantity by a part's own count.
func (q Quantity) readTruth(t record.Truth) float64 {
	switch q {
	case Memory:
		return t.Bytes
	case Waiting:
		return t.Waiting
	}
	return t.CPU
}

// charged is the quantity that an owner was charged with.
func (q Quantity) charged(it cost.Item) float64 {
	switch q {
	case Memory:
		return it.Bytes
	case Waiting:
		return it.Wait
	}
	return it.Self
}

// band is how far a quantity may be off.
func (h holder) band(q Quantity, truth float64) float64 {
	switch q {
	case Memory:
		return max(h.truth.Bytes*truth, float64(h.truth.LeastBytes))
	case Waiting:
		return max(h.truth.Waiting*truth, float64(h.truth.Least))
	}
	return max(h.truth.CPU*truth, float64(h.truth.Least))
}

// part holds what a part cost against what was charged to it.
func (h holder) part(name string) []Accuracy {
	var all []Accuracy
	for _, q := range []Quantity{CPUTime, Memory, Waiting} {
		a := Accuracy{Workload: h.workload, Arm: h.arm, Part: name, Quantity: q}
		var off [][]float64
		for _, source := range q.sources() {
			held, d := h.held(name, q, source)
			if held.N == 0 || held.Truth == 0 {
				continue
			}
			a.By, off = append(a.By, held), append(off, d)
		}
		if len(a.By) == 0 {
			continue
		}
		a.Band = h.band(q, a.By[0].Truth)
		for i := range a.By {
			a.By[i].judge(off[i], a.Band)
		}
		a.Apart = h.apart(name, q)
		all = append(all, a)
	}
	return all
}

// held is what a source charged to a part, and how far off each capture was.
func (h holder) held(name string, q Quantity, source study.Source) (held Held, off []float64) {
	looks := byRound(h.run.Captures, h.workload, h.arm, source)
	held = Held{Source: source, N: len(looks)}
	for _, l := range looks {
		it := findPart(l, name)
		if it.Owner != "" {
			held.Owner = it.Owner
		}
		told, charged := q.readTruth(l.Truth[name]), q.charged(it)
		held.Truth += told / float64(len(looks))
		held.Attributed += charged / float64(len(looks))
		off = append(off, charged-told)
	}
	return held, off
}

// judge reports whether what is off lies inside a band.
func (h *Held) judge(off []float64, band float64) {
	c := stats.Compare(off, stats.Rule{Threshold: band})
	h.Off = Estimate{Value: c.Effect, Interval: c.Equivalence, Level: estimate.Level(2 * stats.StudyAlpha)}
	h.Verdict = Unknown
	switch i := c.Interval; {
	case c.Equivalence.Within(band):
		h.Verdict = Within
	case i.Lo > band || i.Hi < -band:
		h.Verdict = Beyond
	}
}

// findPart finds the owner that a part is: a middleware or handler whose name ends
// in the part's, whatever the case; a zero item if there is none.
func findPart(l sighting, part string) cost.Item {
	for _, it := range l.seen.Bill.Items {
		if isPart(it, part) {
			return it
		}
	}
	return cost.Item{}
}

func isPart(it cost.Item, part string) bool {
	handles := it.Kind == cost.Middleware.String() || it.Kind == cost.Handler.String()
	return handles && strings.EqualFold(it.Owner[strings.LastIndexByte(it.Owner, '.')+1:], part)
}

// apart is by how much more two sources are off in the same round, the first less
// the second; nil where there are no two. They looked at processes of their own, so
// it is not what they charged that compares.
func (h holder) apart(name string, q Quantity) *Estimate {
	sources := q.sources()
	if len(sources) < 2 {
		return nil
	}
	var d []float64
	second := byRound(h.run.Captures, h.workload, h.arm, sources[1])
	for _, l := range byRound(h.run.Captures, h.workload, h.arm, sources[0]) {
		for _, o := range second {
			if o.Round == l.Round {
				d = append(d, h.off(l, name, q)-h.off(o, name, q))
			}
		}
	}
	if len(d) == 0 {
		return nil
	}
	e := estimate.Mean(d)
	return &e
}

// off is how much more a look charged a part with than its own count says.
func (h holder) off(l sighting, name string, q Quantity) float64 {
	return q.charged(findPart(l, name)) - q.readTruth(l.Truth[name])
}

// rest holds all but the parts against the arm that lacks them, by rounds.
func (h holder) rest(parts []string, bare string) []Accuracy {
	var all []Accuracy
	for _, q := range []Quantity{CPUTime, Memory} {
		a := Accuracy{Workload: h.workload, Arm: h.arm, Part: Rest, Against: bare, Quantity: q}
		for _, source := range q.sources() {
			without := byRound(h.run.Captures, h.workload, bare, source)
			held := Held{Source: source}
			var off []float64
			for _, l := range byRound(h.run.Captures, h.workload, h.arm, source) {
				i := slices.IndexFunc(without, func(o sighting) bool { return o.Round == l.Round })
				if i < 0 {
					continue
				}
				has, had := q.except(l, parts), q.except(without[i], nil)
				held.N++
				held.Attributed += has
				held.Truth += had
				off = append(off, has-had)
			}
			if held.N == 0 {
				continue
			}
			n := float64(held.N)
			held.Attributed, held.Truth = held.Attributed/n, held.Truth/n
			if len(a.By) == 0 {
				a.Band = max(h.band(q, held.Truth), h.bands(parts, q))
			}
			held.judge(off, a.Band)
			a.By = append(a.By, held)
		}
		if len(a.By) > 0 {
			all = append(all, a)
		}
	}
	return all
}

// bands is how far the parts may be off in all: as the whole is known, so far may
// what is left of it.
func (h holder) bands(parts []string, q Quantity) (sum float64) {
	for _, name := range parts {
		for _, source := range q.sources() {
			if held, _ := h.held(name, q, source); held.N > 0 && held.Truth > 0 {
				sum += h.band(q, held.Truth)
				break
			}
		}
	}
	return sum
}

// except is what all owners but some parts spent: bytes, or CPU time in code,
// since system calls, scheduling and the collector do change when a request
// takes longer or allocates more.
func (q Quantity) except(l sighting, parts []string) (sum float64) {
	for _, it := range l.seen.Bill.Items {
		if slices.ContainsFunc(parts, func(p string) bool { return isPart(it, p) }) {
			continue
		}
		if it.Kind == cost.Runtime.String() || it.Kind == cost.Other.String() {
			continue // the profiler is among these
		}
		if q == Memory {
			sum += it.Bytes
			continue
		}
		for _, c := range it.Causes {
			if !shifts(c.Cause) {
				sum += c.Value
			}
		}
	}
	return sum
}

// shifts reports whether a cause depends on what else a process does.
func shifts(cause string) bool {
	switch cause {
	case cost.Kernel.String(), cost.Scheduling.String(), cost.GC.String(), cost.Alloc.String(), cost.Locks.String(), cost.Channels.String():
		return true
	}
	return false
}
