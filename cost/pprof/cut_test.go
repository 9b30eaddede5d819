package pprof_test

import (
	"bytes"
	rpprof "runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost/pprof"
)

// shape is a number of stacks of one form: so many places, the outermost of which
// has so many functions.
type shape struct {
	stacks        int64
	places, inner int
}

// shaped makes a CPU profile, of the runtime if it names what is mapped.
func shaped(mapped bool, shapes []shape) *bytes.Buffer {
	fn := &profile.Function{ID: 1, Name: "main.f"}
	raw := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Function:   []*profile.Function{fn},
	}
	if mapped {
		raw.Mapping = []*profile.Mapping{{ID: 1, File: "/bin/shop"}}
	}
	place := func(functions int) *profile.Location {
		at := &profile.Location{ID: uint64(len(raw.Location) + 1), Line: make([]profile.Line, functions)}
		for i := range at.Line {
			at.Line[i].Function = fn
		}
		raw.Location = append(raw.Location, at)
		return at
	}
	for _, s := range shapes {
		sample := &profile.Sample{Value: []int64{s.stacks, 10e6 * s.stacks}}
		for range s.places - 1 {
			sample.Location = append(sample.Location, place(1))
		}
		sample.Location = append(sample.Location, place(s.inner))
		raw.Sample = append(raw.Sample, sample)
	}
	var b bytes.Buffer
	if err := raw.Write(&b); err != nil {
		panic(err)
	}
	return &b
}

// TestCutStacks tells stacks that are as long as the runtime lets them be.
func TestCutStacks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ours   bool
		shapes []shape
		want   string // "" is no warning
	}{
		{"short", false, []shape{{1000, 63, 1}}, ""},
		{"few", false, []shape{{990, 30, 1}, {10, 64, 1}}, ""},
		{"more", false, []shape{{980, 30, 1}, {20, 64, 1}}, "2.0 % of the stacks have 64 frames"},
		{"inlined", false, []shape{{980, 30, 1}, {20, 62, 5}}, "2.0 % of the stacks have 64 frames"},
		{"longer", false, []shape{{900, 64, 1}, {100, 65, 1}}, ""},
		{"longest", false, []shape{{900, 64, 1}, {50, 65, 1}, {50, 128, 1}}, "5.0 % of the stacks have 128 frames"},
		{"unbounded", false, []shape{{500, 128, 1}, {500, 200, 1}}, ""},
		{"sampled by the kernel", true, []shape{{100, 64, 1}}, ""},
		{"empty", false, nil, ""},
	} {
		p, err := pprof.Read(shaped(!tt.ours, tt.shapes))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		switch {
		case tt.want == "" && len(p.Warnings) != 0:
			t.Errorf("%s: got %v, want no warning", tt.name, p.Warnings)
		case tt.want != "" && (len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0].Error(), tt.want)):
			t.Errorf("%s: got %v, want %q", tt.name, p.Warnings, tt.want)
		}
	}
}

//go:noinline
func dig(n int) {
	if n == 0 {
		burn()
		return
	}
	dig(n - 1)
	sink.Add(1) // what follows a call keeps its frame
}

// TestCutByRuntime holds what is taken for the runtime's bound against the runtime.
func TestCutByRuntime(t *testing.T) {
	for deep, want := range map[int]int{10: 0, 300: 1} {
		var in bytes.Buffer
		if err := rpprof.StartCPUProfile(&in); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(500 * time.Millisecond); time.Now().Before(until); {
			dig(deep)
		}
		rpprof.StopCPUProfile()
		p, err := pprof.Read(&in)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0.0
		for _, s := range p.Stacks {
			seen += s.Count
		}
		if seen < 5 {
			t.Skipf("the machine gave this test too little CPU: %g stacks", seen)
		}
		if len(p.Warnings) != want {
			t.Errorf("calls %d deep: got warnings %v, want %d", deep, p.Warnings, want)
		}
	}
}
