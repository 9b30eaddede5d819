package pprof_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

// TestScale reads what was written after it: values are scaled, nothing else is; and
// a stack that was added is there beside the others.
func TestScale(t *testing.T) {
	f := &profile.Function{ID: 9, Name: "main.main", SystemName: "main.main", Filename: "main.go"}
	m := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x9000, File: "/bin/shop", HasFunctions: true}
	at := &profile.Location{ID: 2, Mapping: m, Address: 0x1234, Line: []profile.Line{{Function: f, Line: 7}}}
	raw := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample:        []*profile.Sample{{Location: []*profile.Location{at}, Value: []int64{3, 30e6}}},
		DurationNanos: int64(time.Second), Period: 10e6,
		Mapping: []*profile.Mapping{m}, Location: []*profile.Location{at}, Function: []*profile.Function{f},
	}
	var in, out bytes.Buffer
	if err := raw.Write(&in); err != nil {
		t.Fatal(err)
	}
	p, err := pprof.Read(&in)
	if err != nil {
		t.Fatal(err)
	}
	p.Scale(1.25)
	if got := p.Stacks[0]; got.Value != 37.5e6 || got.Count != 3 {
		t.Errorf("scaled: got %v seen %v times, want 3.75e+07 and 3", got.Value, got.Count)
	}
	p.Add(cost.MonitorStack(5e6))
	if err := p.Label(&out); err != nil {
		t.Fatal(err)
	}
	whole := *bytes.NewBuffer(out.Bytes())
	back, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	s := back.Sample[0]
	if s.Value[0] != 3 || s.Value[1] != 37.5e6 || s.Location[0].Address != 0x1234 || back.Mapping[0].File != "/bin/shop" {
		t.Errorf("written: got values %v at %#x of %q, want 3 and 37500000 at 0x1234 of /bin/shop", s.Value, s.Location[0].Address, back.Mapping[0].File)
	}
	again, err := pprof.Read(&whole)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Stacks) != 2 || again.Stacks[0].Frames[0].Func != "main.main" || again.Stacks[1].Value != 5e6 ||
		again.Stacks[1].Frames[0].Func != cost.SystemMonitor || again.Duration != time.Second || len(p.Stacks) != 2 {
		t.Errorf("read again: %+v for %v, want the stack that was added as the second of two, for 1s", again.Stacks, again.Duration)
	}
}
