package doctor

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/compiler"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// Evidence is what was gathered of a service. Every part is optional: nil is not
// gathered, empty is nothing seen.
type Evidence struct {
	Subject string
	Window  cost.Window   // that CPU, Allocs and Contention stand for
	Latency time.Duration // a request's mean time, if the load measured it
	Busy    int           // connections on which the load kept a request in flight

	CPU        []cost.Stack
	Allocs     []cost.Stack
	Contention []cost.Stack // of who held locks that others waited for
	Waits      []cost.Wait
	Traced     cost.Window // that Waits stand for

	Live   [][]cost.Stack // heap that the last collection had left, at the beginning and the end
	Counts []Count        // of goroutines, at several times under constant load
	Births map[string]cost.Frame
	Leaked []cost.Stack // goroutines that the collector found to wait for ever

	Memory  []Memory     // at the beginning and the end
	Process []proc.Facts // at the beginning and the end

	Probe     *Probe
	Decisions []compiler.Decision

	// Reasons say of parts that were not gathered why; of Traffic, why there was none
	// though the service did something.
	Reasons map[Part]string

	Warnings []string // caveats of what was gathered
}

// Part is a part of the evidence, as a person would ask for it.
type Part string

// Parts of the evidence.
const (
	CPUProfile        Part = "a CPU profile"
	AllocationProfile Part = "an allocation profile"
	LiveHeap          Part = "a heap profile"
	ExecutionTrace    Part = "an execution trace"
	GoroutineCounts   Part = "goroutine profiles"
	MemoryStatistics  Part = "the runtime's memory statistics"
	ProcessFacts      Part = "the process's facts in /proc"
	HalfHeader        Part = "a probe with half a header"
	Source            Part = "the program's source"
	BusyService       Part = "a busy service"
	CPUQuota          Part = "a CPU quota"
	Traffic           Part = "requests meanwhile"
	Bodies            Part = "requests with bodies"
)

// fewest is how many stacks of a CPU profile make a busy service: shares of
// fewer say nothing.
const fewest = 20

// has reports whether a part was gathered.
func (e *Evidence) has(p Part) bool {
	switch p {
	case CPUProfile:
		return e.CPU != nil
	case BusyService:
		return e.cpu().Count >= fewest
	case Traffic:
		return e.Reasons[Traffic] == "" && e.served()
	case Bodies:
		return len(e.places(e.anywhere(), symptom.Reading, unit.Nanoseconds)) > 0
	case AllocationProfile:
		return e.Allocs != nil
	case LiveHeap:
		return len(e.Live) >= 2
	case ExecutionTrace:
		return e.Waits != nil && e.Traced.Duration > 0
	case GoroutineCounts:
		return len(e.Counts) >= 3
	case MemoryStatistics:
		return len(e.Memory) >= 2
	case ProcessFacts:
		return len(e.Process) >= 2
	case CPUQuota:
		return len(e.Process) >= 2 && e.Process[1].Quota.CPUs > 0
	case HalfHeader:
		return e.Probe != nil
	case Source:
		return e.Decisions != nil
	}
	return false
}

// served reports whether the service did anything for others than those who
// profile it.
func (e *Evidence) served() bool {
	request := func(s *cost.Stack) bool { return cost.InRequest(s.Frames) && !symptom.Instrument(s.Frames) }
	for _, stacks := range [][]cost.Stack{e.CPU, e.Allocs} {
		for i := range stacks {
			if request(&stacks[i]) {
				return true
			}
		}
	}
	for i := range e.Waits {
		if request(&e.Waits[i].Stack) {
			return true
		}
	}
	return e.Window.Requests > 0 || e.has(BusyService)
}

// Count is how many goroutines there were, by where they were.
type Count struct {
	After      time.Duration // since the first
	Goroutines []cost.Stack
}

// Memory is what the runtime said of its heap; sizes are in bytes.
type Memory struct {
	Cycles    float64 // collections since the program began
	Forced    float64 // of these, asked for by runtime.GC
	Allocated float64 // since the program began
	NextGC    float64 // size at which the next collection begins

	Pauses []time.Duration // of the latest collections, in no order
}

// Probe is what became of a connection on which only half a header was sent.
type Probe struct {
	Addr   string
	Waited time.Duration // until the server gave up, or the probe did
	Closed bool          // it was the server
	Answer string        // the status line, if the server sent one
}

// Save writes the evidence, compressed.
func (e *Evidence) Save(w io.Writer) error {
	z := gzip.NewWriter(w)
	if err := json.NewEncoder(z).Encode(e); err != nil {
		return fmt.Errorf("writing evidence: %w", err)
	}
	return z.Close()
}

// Bounds of saved evidence. A few kilobytes unpack to gigabytes, and three bytes of
// it make a value of a hundred.
const (
	mostBytes    = 256 << 20 // unpacked
	mostElements = 8 << 20   // objects, fields and list elements: about five for a frame of a stack
)

// ErrTooLarge says that saved evidence is more than is read of it.
var ErrTooLarge = errors.New("too large")

// Load reads what Save wrote. It refuses what is far larger than that can be with
// ErrTooLarge.
func Load(r io.Reader) (*Evidence, error) {
	e, err := load(r)
	if err != nil {
		return nil, fmt.Errorf("reading evidence: %w", err)
	}
	return e, nil
}

func load(r io.Reader) (*Evidence, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostBytes {
		return nil, fmt.Errorf("%w: more than %d MiB", ErrTooLarge, mostBytes>>20)
	}
	// Braces and commas in names count as well: there are few.
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("["))+bytes.Count(text, []byte(",")) > mostElements {
		return nil, fmt.Errorf("%w: more than %d elements", ErrTooLarge, mostElements)
	}
	var e Evidence
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, err
	}
	return &e, nil
}

// per is what sums over the window are divided by, and its name.
func (e *Evidence) per() (float64, string) {
	if e.Window.Requests > 0 {
		return e.Window.Requests, "request"
	}
	if s := e.Window.Duration.Seconds(); s > 0 {
		return s, "second"
	}
	return 1, "profile"
}

// live is the heap that the last collection left, at the end.
func (e *Evidence) live() []cost.Stack {
	if len(e.Live) == 0 {
		return nil
	}
	return e.Live[len(e.Live)-1]
}

// requests is how many there were in a time, and 0 if nobody counted them.
func (e *Evidence) requests(d time.Duration) float64 { return e.Window.Over(d).Requests }
