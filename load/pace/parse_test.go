package pace_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/load/pace"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want *pace.Schedule
	}{
		{"1000", pace.Constant(1000)},
		{"1000/s", pace.Constant(1000)},
		{"2.5k/s", pace.Constant(2500)},
		{"1M", pace.Constant(1e6)},
		{"constant:0.5", pace.Constant(0.5)},
		{"poisson:10", pace.Poisson(10, 7)},
		{"poisson:10/s", pace.Poisson(10, 7)},
		{"ramp:100-5k/30s", pace.Ramp(100, 5000, 30*time.Second)},
		{"ramp:5000-0/1m30s", pace.Ramp(5000, 0, 90*time.Second)},
		{"steps:100,200,400/10s", pace.Steps(10*time.Second, 100, 200, 400)},
	} {
		if got, err := pace.Parse(c.in, 7); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", c.in, got, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `"" is not a number`},
		{"x", `"x" is not a number`},
		{"-1", "not within 0 and"},
		{"1e99", "not within 0 and"},
		{"NaN", "not within 0 and"},
		{"0", "a rate of 0 needs an end"},
		{"poisson:k", `"k" is not a number`},
		{"ramp:1-2", "the duration is missing"},
		{"ramp:1/3s", "from one rate to another"},
		{"ramp:1-2-3/3s", "from one rate to another"},
		{"ramp:1-2/x", `"x" is not a duration`},
		{"steps:1,2/-1s", `"-1s" is not a duration`},
		{"steps:1,,2/1s", `"" is not a number`},
		{"steps:0,0/1s", "no request"},
		{"warp:9", `"warp" is not a kind`},
	} {
		got, err := pace.Parse(c.in, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), pace.Forms) {
			t.Errorf("Parse(%q) = %+v, %v, want an error with %q and the forms", c.in, got, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1000", "poisson:5k", "ramp:1-2/3s", "ramp:9-0/1ns", "steps:1,0,2/1s", "1e-300/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := pace.Parse(text, 1)
		if err != nil {
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("Parse(%q) is not valid: %v", text, err)
		}
		length, ends := s.Length()
		c := s.Cursor(0, 1)
		var last time.Duration
		for n := range int64(100) {
			at, ok := c.Next()
			if !ok {
				if !s.Random && ends && s.Count(length) != n {
					t.Fatalf("%q starts %d times, Count says %d", text, n, s.Count(length))
				}
				break
			}
			if at < last || ends && at >= length {
				t.Fatalf("%q: start at %v after %v, of %v", text, at, last, length)
			}
			last = at
		}
	})
}
