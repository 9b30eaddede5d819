package pprof_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

var names = []struct{ raw, want string }{
	{"main.(*T[...]).Serve·fm", "main.(*T[...]).Serve·fm"},
	{`main.(struct { a int; b "x" }).f`, `main.(struct { a int; b "x" }).f`},
	{"red \x1b[31m", `red \x1b[31m`},
	{"bell\aand\ttab", `bell\aand\ttab`},
	{"two\r\nlines;1 9", `two\r\nlines;1 9`},
	{"gnp.\u202eog.\u200b\u2028", `gnp.\u202eog.\u200b\u2028`},
	{"\u009b31m\x7f", `\u009b31m\x7f`},
	{"it's \\ \ufffd \xff\n", "it's \\ \ufffd \\xff\\n"},
}

// TestVisible checks that no name comes in with what a terminal obeys or a file of
// lines is broken by.
func TestVisible(t *testing.T) {
	for _, tt := range names {
		raw := &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
			Mapping:    []*profile.Mapping{{ID: 1, File: tt.raw}},
			Function:   []*profile.Function{{ID: 1, Name: tt.raw, SystemName: tt.raw, Filename: tt.raw}},
		}
		raw.Location = []*profile.Location{
			{ID: 1, Mapping: raw.Mapping[0]}, // without a function
			{ID: 2, Mapping: raw.Mapping[0], Line: []profile.Line{{Function: raw.Function[0], Line: 1}}},
		}
		raw.Sample = []*profile.Sample{{Location: raw.Location, Value: []int64{1, 1}}}
		var b bytes.Buffer
		if err := raw.Write(&b); err != nil {
			t.Fatal(err)
		}
		p, err := pprof.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		read := p.Stacks[0].Frames
		if read[0].Func != "["+tt.want+"]" || read[1].Func != tt.want || read[1].File != tt.want {
			t.Errorf("%q: read as %#v, want %q", tt.raw, read, tt.want)
		}

		own := []cost.Stack{{Frames: []cost.Frame{{Func: "main.f"}}}, {Frames: []cost.Frame{{Func: tt.raw, File: tt.raw}}}}
		made := pprof.New(pprof.CPU, time.Second, own).Stacks[1].Frames[0]
		if made.Func != tt.want || made.File != tt.want {
			t.Errorf("%q: made %#v, want %q", tt.raw, made, tt.want)
		}
		if own[1].Frames[0].Func != tt.raw {
			t.Errorf("%q: the caller's stacks were changed to %q", tt.raw, own[1].Frames[0].Func)
		}
	}
}
