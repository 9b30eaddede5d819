package pprof_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

// TestSampled holds how often stacks were seen against the scaling of the runtime,
// which counts one sampled object of a size as rate/size if that is small.
func TestSampled(t *testing.T) {
	for _, tc := range []struct {
		name                       string
		kind                       pprof.Kind
		period                     int64
		objects, size, want, ratio float64
	}{
		{"small", pprof.Allocs, 0, 8192, 64, 1, 0.001},
		{"by another rate", pprof.Allocs, 64 << 10, 8192, 64, 8, 0.001},
		{"large", pprof.Allocs, 0, 3, 64 << 20, 3, 0},
		{"by a rate of one", pprof.Allocs, 1, 8192, 64, 8192, 0},
		{"nothing", pprof.Allocs, 0, 0, 64, 0, 0},
		{"CPU", pprof.CPU, 0, 8192, 64, 8192, 0},
	} {
		var b bytes.Buffer
		stack := cost.Stack{Frames: []cost.Frame{{Func: "main.work"}}, Count: tc.objects, Value: max(1, tc.objects) * tc.size}
		if err := pprof.New(tc.kind, time.Second, []cost.Stack{stack}).Write(&b); err != nil {
			t.Fatal(err)
		}
		raw, err := profile.Parse(&b)
		if err != nil {
			t.Fatal(err)
		}
		if tc.period > 0 {
			raw.PeriodType, raw.Period = &profile.ValueType{Type: "space", Unit: "bytes"}, tc.period
		}
		b.Reset()
		if err := raw.Write(&b); err != nil {
			t.Fatal(err)
		}
		p, err := pprof.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Sampled()[0].Count; math.Abs(got-tc.want) > tc.ratio*tc.want {
			t.Errorf("%s: %g objects of %g bytes were sampled %g times, want %g", tc.name, tc.objects, tc.size, got, tc.want)
		}
		if got := p.Stacks[0].Count; got != tc.objects {
			t.Errorf("%s: the profile has %g objects after that, want %g", tc.name, got, tc.objects)
		}
	}
}
