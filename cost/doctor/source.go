package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/compiler"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// defersRule asks after deferred calls in loops. Others cost next to nothing:
// only those of which there may be any number are kept on the heap.
func defersRule() Rule {
	return Rule{
		Name:      "defers",
		Question:  "Are calls deferred in loops?",
		Threshold: "more than 1 % of the CPU for keeping and fetching them",
		Remedy:    "make the loop's body a function of its own, so that each deferred call runs where its turn ends; or call it plainly",
		Verify:    verifyCost,
		needs:     []Part{CPUProfile, BusyService},
		check: func(e *Evidence) ([]Finding, *Missing) {
			price := e.spent(symptom.Deferring)
			// Calls that are not kept on the heap return through deferreturn, too.
			if price.Value == 0 || sum(e.CPU, symptom.Keeping).Value == 0 {
				return nil, nil
			}
			rows := e.places(e.CPU, symptom.Deferring, unit.Nanoseconds)
			for _, d := range e.Decisions {
				if d.Kind == compiler.Defer && e.ranIn(d.File) {
					rows = append(rows, Row{What: "the compiler keeps a defer on the heap", Where: shortPlace(cost.Frame{File: d.File, Line: d.Line}), Unit: Words})
				}
			}
			return []Finding{{Severity: e.weighCPU(price, 0.01), Price: &price, Evidence: rows,
				Title: fmt.Sprintf("calls deferred in loops take %s of the CPU", unit.Format(price.Share, unit.Share))}}, nil
		},
	}
}

// ranIn reports whether a CPU stack has a function of that file.
func (e *Evidence) ranIn(file string) bool {
	return slices.ContainsFunc(e.CPU, func(s cost.Stack) bool {
		return slices.ContainsFunc(s.Frames, func(f cost.Frame) bool { return sameFile(f.File, file) })
	})
}

// escapesRule joins what the compiler says of the heap with the bytes measured.
func escapesRule() Rule {
	return Rule{
		Name:      "escapes",
		Question:  "Which values that escape to the heap matter?",
		Threshold: "more than 1 % of the CPU, for allocating and collecting it",
		Remedy:    "share what does not change between requests by one pointer in place of a copy for each; pass values down in place of capturing them in a literal that outlives the call",
		Verify:    "go build -gcflags=-m is silent on the line; tare cost: its bytes go away",
		needs:     []Part{Source, CPUProfile, BusyService, AllocationProfile},
		check:     checkEscapes,
	}
}

// place is a line of a source file.
type place struct {
	file string
	line int
}

func checkEscapes(e *Evidence) ([]Finding, *Missing) {
	decided := map[place][]string{}
	for _, d := range e.Decisions {
		if d.Kind == compiler.Escape {
			at := place{path.Base(d.File), d.Line}
			decided[at] = append(decided[at], d.File+"\x00"+d.Text)
		}
	}
	bytes := map[cost.Frame]float64{}
	for i := range e.Allocs {
		s := &e.Allocs[i]
		if len(s.Frames) == 0 || symptom.Instrument(s.Frames) || decided[place{path.Base(s.Frames[0].File), s.Frames[0].Line}] == nil {
			continue
		}
		bytes[s.Frames[0]] += s.Value
	}
	by, per := e.per()
	var found []Finding
	for f, n := range bytes {
		texts := textsOf(decided[place{path.Base(f.File), f.Line}], f.File)
		if len(texts) == 0 {
			continue
		}
		price := e.spent(symptom.AllocatingAt(f))
		rows := []Row{{What: "allocated in " + f.Name(), Where: shortPlace(f), Value: n / by, Unit: unit.Bytes}}
		for _, text := range texts {
			rows = append(rows, note("the compiler: "+text))
		}
		found = append(found, Finding{
			Severity: e.weighCPU(price, 0.01), Price: &price, Evidence: rows,
			Title: fmt.Sprintf("%s: %s per %s", titleOf(texts, f), unit.Format(n/by, unit.Bytes), per),
		})
	}
	return dearestFirst(found), nil
}

// titleOf names what escapes on a line, or the line where there are several: which
// of them the bytes are is not known.
func titleOf(texts []string, f cost.Frame) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return fmt.Sprintf("%s, where %d values escape to heap", shortPlace(f), len(texts))
}

// textsOf picks what was said of a file among what was said of all files of that
// name.
func textsOf(said []string, file string) []string {
	var texts []string
	for _, s := range said {
		if where, text, _ := strings.Cut(s, "\x00"); sameFile(file, where) {
			texts = append(texts, text)
		}
	}
	return texts
}

// sameFile reports whether a profile's file is the one on disk. A program built
// with -trimpath has its module's path in place of a directory, so the file's
// own directory and name must do.
func sameFile(profiled, onDisk string) bool {
	if profiled == onDisk {
		return true
	}
	return path.Base(profiled) == path.Base(onDisk) && path.Base(path.Dir(profiled)) == path.Base(path.Dir(onDisk))
}
