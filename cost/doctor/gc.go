package doctor

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// gcRule asks whether the collector runs too often for the memory there is.
func gcRule() Rule {
	return Rule{
		Name:      "gc",
		Question:  "Does the collector take more than the memory it saves is worth?",
		Threshold: "more than 10 % of the CPU; or a live heap beyond nine tenths of GOMEMLIMIT",
		Remedy:    "allocate less (tare cost shows which owners allocate). Or allow a larger heap between collections: GOGC, or GOMEMLIMIT with GOGC=off if the service has the memory to itself",
		Verify:    "start the service with the setting and ask tare doctor again: cycles and price fall as predicted",
		needs:     []Part{CPUProfile, BusyService},
		check:     checkGC,
	}
}

func checkGC(e *Evidence) ([]Finding, *Missing) {
	if f, ok := e.starved(); ok {
		return []Finding{f}, nil
	}
	own := sum(e.CPU, symptom.Collecting)
	if own.Value == 0 {
		return nil, nil
	}
	by, per := e.per()
	price := Price{Value: own.Value, Low: own.Value - own.Margin(), High: own.Value + own.Margin(), Unit: unit.Nanoseconds, Per: per, Of: "CPU", Share: own.Value / e.cpu().Value}.times(1 / by)
	f := Finding{
		Severity: e.weighCPU(price, 0.10), Price: &price,
		Title: fmt.Sprintf("garbage collection takes %s of the CPU", unit.Format(price.Share, unit.Share)),
	}
	behind := sum(e.CPU, symptom.Background).Value
	f.Evidence = []Row{
		{What: "in the background", Value: behind / by, Unit: unit.Nanoseconds},
		{What: "by goroutines that allocate", Value: (own.Value - behind) / by, Unit: unit.Nanoseconds},
	}
	if bytes := sum(e.Allocs, nil); bytes.Value > 0 {
		f.Evidence = append(f.Evidence, Row{What: "allocated per " + per, Value: bytes.Value / by, Unit: unit.Bytes})
	}
	f.Evidence = append(f.Evidence, e.heapRows()...)
	f.Evidence = append(f.Evidence, e.predictions(price)...)
	return []Finding{f}, nil
}

// heap is what decides how often the collector runs.
type heap struct {
	live, next float64 // bytes after a collection, and at the next
	cycles     float64 // a second
}

func (e *Evidence) heap() (heap, bool) {
	if !e.has(MemoryStatistics) || e.Window.Duration <= 0 {
		return heap{}, false
	}
	first, last := e.Memory[0], e.Memory[len(e.Memory)-1]
	h := heap{next: last.NextGC, cycles: (last.Cycles - first.Cycles) / e.Window.Duration.Seconds()}
	h.live = sum(e.live(), nil).Value
	margin := 1.96 * math.Sqrt(h.live*sampling) // it is sampled
	switch half := h.next / 2; {
	case h.live <= 0, h.live > h.next && h.live-margin <= half:
		h.live = half // where little is live, it may be far off
	case h.live > h.next:
		h.live = h.next // at a memory limit there is next to nothing between the two
	}
	return h, true
}

func (e *Evidence) heapRows() []Row {
	h, ok := e.heap()
	if !ok {
		return nil
	}
	rows := []Row{
		{What: "collections a second", Value: h.cycles, Unit: unit.PerSecond},
		{What: "live heap, about", Value: h.live, Unit: unit.Bytes},
		{What: "heap at which the next collection begins", Value: h.next, Unit: unit.Bytes},
	}
	last := e.Memory[len(e.Memory)-1]
	if forced := last.Forced - e.Memory[0].Forced; forced > 0 {
		rows = append(rows, Row{What: "of the collections, asked for by runtime.GC", Value: forced, Unit: unit.Count})
	}
	if len(last.Pauses) > 0 {
		rows = append(rows, Row{What: "longest pause", Value: float64(slices.Max(last.Pauses)), Unit: unit.Nanoseconds})
	}
	return rows
}

// predictions say what other settings would make of a price. What the collector
// does in a cycle depends on the live heap; how often it does it, on the room
// between that and the next cycle's size, in proportion.
func (e *Evidence) predictions(p Price) []Row {
	h, ok := e.heap()
	room := h.next - h.live
	if !ok || room <= 0 {
		return nil
	}
	percent := 100.0
	if v, err := strconv.ParseFloat(e.last().Environment["GOGC"], 64); err == nil && v > 0 {
		percent = v
	} else if h.live > 4<<20 {
		percent = 100 * room / h.live // as the program has set it
	}
	var rows []Row
	limit, limited := e.last().MemoryLimit()
	switch {
	case e.last().Environment["GOGC"] == "off": // there is none to make larger
	case limited && h.live+4*room > limit:
		rows = append(rows, note("GOMEMLIMIT leaves no room for four times the GOGC: the heap would come to "+unit.Format(h.live+4*room, unit.Bytes)))
	default:
		rows = append(rows, Row{
			What:  fmt.Sprintf("predicted with GOGC=%.0f in place of %.0f (heap to %s)", 4*percent, percent, unit.Format(h.live+4*room, unit.Bytes)),
			Value: p.Value / 4, Unit: unit.Nanoseconds,
		})
	}
	if limit := e.last().Spare(); limit > 1.5*h.next {
		rows = append(rows, Row{
			What:  fmt.Sprintf("predicted with GOGC=off and GOMEMLIMIT=%dMiB", int(limit)>>20),
			Value: p.Value * room / (limit - h.live), Unit: unit.Nanoseconds,
		})
	}
	return rows
}

// last are the process's newest facts, none if they were not gathered.
func (e *Evidence) last() *proc.Facts {
	if len(e.Process) == 0 {
		return &proc.Facts{}
	}
	return &e.Process[len(e.Process)-1]
}

// starved reports whether the memory limit leaves the collector no room: it then
// runs all the time and frees nothing.
func (e *Evidence) starved() (Finding, bool) {
	limit, ok := e.last().MemoryLimit()
	h, known := e.heap()
	if !ok || !known || h.live <= 0.9*limit {
		return Finding{}, false
	}
	return Finding{
		Severity: Serious, Title: "the live heap fills GOMEMLIMIT: the collector runs without end",
		Evidence: append([]Row{{What: "GOMEMLIMIT", Value: limit, Unit: unit.Bytes}}, e.heapRows()...),
		Remedy:   "raise GOMEMLIMIT, or keep less in memory: beyond it the collector may take up to half of the CPU and the service creeps",
	}, true
}
