// Package env reads what on this machine disturbs measuring.
//
// A [Fact] is one property of the machine, of the system on it, or of what else
// runs there: its value now, a [Verdict], why it matters and what would remedy
// it. [Read] looks at the machine that it runs on and takes about a second,
// since what other programs use is the difference between two looks.
//
// Facts come from /proc and /sys, read without privileges and without changing
// anything. Elsewhere than on Linux there is neither: the facts that the Go
// runtime knows are given, and one fact names what could not be read. A fact
// that this system hides has the verdict [Unknown]; it is never left out, so
// that nobody takes silence for quiet.
//
// A verdict is a rule of thumb on one property. It neither corrects nor
// discards a measurement; how far a machine's own noise reaches is measured,
// as the noise floor, not inferred from here.
package env

import (
	"context"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"
)

// Verdict says what a fact means for measuring.
type Verdict string

// The verdicts, from the gravest.
const (
	Disturbs Verdict = "disturbs" // figures move because of it
	Unknown  Verdict = "unknown"  // it could not be read
	Note     Verdict = "note"     // to know when comparing with other machines, or under special loads
	OK       Verdict = "ok"
)

// Grave orders verdicts: 0 for Disturbs, growing as they get more harmless.
func (v Verdict) Grave() int {
	return slices.Index([]Verdict{Disturbs, Unknown, Note, OK}, v)
}

// Fact is one property of the machine.
type Fact struct {
	Name    string  `json:"name"`
	Value   string  `json:"value"` // for people
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`             // it matters to measuring
	Remedy  string  `json:"remedy,omitzero"` // "" where nothing needs one, or nothing helps
}

// What unknown facts say.
const (
	untold    = "not reported"
	unsampled = "not sampled: the look was cut short"
)

// unknown makes a fact one that could not be read, for the reason.
func (f Fact) unknown(reason string) Fact {
	f.Verdict, f.Value, f.Remedy = Unknown, reason, ""
	return f
}

// Machine is where facts are read from. [This] is the one that tare runs on; a
// test makes one of canned files. It may be read from several goroutines when
// its functions may be called from several.
type Machine struct {
	Root     fs.FS    // proc and sys are below it; nil on a system that has neither
	System   string   // as runtime.GOOS
	PID      int      // of this process, which with its children does not count as disturbance
	CPUs     int      // that this process may use
	MaxProcs int      // GOMAXPROCS
	Go       string   // version of the running program's toolchain
	Environ  []string // key=value, as os.Environ

	// Pause waits, less when ctx ends, and returns for how long.
	Pause func(ctx context.Context, d time.Duration) time.Duration
	// Nap has the kernel put a thread to sleep and returns for how long it slept.
	Nap func(d time.Duration) time.Duration
}

// This is the machine that the program runs on.
func This() Machine {
	m := Machine{
		System: runtime.GOOS, PID: os.Getpid(), CPUs: runtime.NumCPU(), MaxProcs: runtime.GOMAXPROCS(0),
		Go: runtime.Version() + " " + runtime.GOARCH, Environ: os.Environ(), Pause: pause, Nap: nap,
	}
	if m.System == "linux" {
		m.Root = os.DirFS("/")
	}
	return m
}

// Read returns the facts of this machine. It takes a second, less when ctx
// ends: then the facts that need two looks are unknown.
func Read(ctx context.Context) []Fact { return This().Read(ctx) }

// between is the time between the two looks. Most counters tick at 10 ms, so
// that 1 % of a CPU is the least that can be seen.
const between = time.Second

// Read returns the facts of a machine, grouped by subject.
func (m Machine) Read(ctx context.Context) []Fact {
	if m.Root == nil {
		return kept(&survey{Machine: m}, portable())
	}
	s := &survey{Machine: m, before: m.takeReading()}
	s.span = m.Pause(ctx, between)
	s.after = m.takeReading()
	if apart := s.after.at - s.before.at; s.before.at > 0 && apart > s.span {
		s.span = apart // looking takes time, too, and a lot where others have the CPUs
	}
	return kept(s, slices.Concat(hardware(), neighbours(), limits(), memory(), network(), kernel(), portable()))
}

// item reads one fact. The zero Fact says that the machine has no such thing.
type item func(*survey) Fact

// survey is a machine looked at twice.
type survey struct {
	Machine
	before, after reading
	span          time.Duration
}

// sampled reports whether the two looks are far enough apart to compare.
func (s *survey) sampled() bool { return s.span >= between/4 }

func kept(s *survey, items []item) []Fact {
	var facts []Fact
	for _, read := range items {
		f := read(s)
		if f.Name == "" {
			continue
		}
		if f.Verdict == OK {
			f.Remedy = ""
		}
		facts = append(facts, f)
	}
	return facts
}

func pause(ctx context.Context, d time.Duration) time.Duration {
	start := time.Now()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return time.Since(start)
}
